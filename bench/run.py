"""All benchmarks, one after the other; results go to docs/benchmarks.md with machine and date.

    python -m bench.run [--only pick,gateway,rate,idle,scrape,sim,eventlog,thrash,pins,disagg,disagg_live]

Run it on a machine that does nothing else. Each benchmark prints JSON; the page shows the figures beside their aims.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
BENCHMARKS = {
    "pick": ["--json"],
    "gateway": [],
    "rate": [],
    "idle": [],
    "scrape": [],
    "sim": ["--brief", "--json"],
    "eventlog": [],
    "thrash": ["--json"],
    "pins": ["--json"],
    "disagg": ["--json"],
    "disagg_live": ["--requests", "300", "--rate", "10", "--json"],
}
AIMS: dict[str, list[tuple[str, str, str]]] = {
    "pick": [
        ("pick_8", "microseconds of one pick among 8 pods", "≤ 15"),
        ("pick_growth_ns_per_pod", "nanoseconds more per further pod", "≤ 60"),
        ("bytes_per_pod_in_columns", "bytes per pod in columns, 200 adapters", "stated"),
        ("bytes_per_pod_in_all", "bytes per pod, Python objects included", "stated"),
    ],
    "gateway": [
        ("rps_against_trivial", "requests/s against a trivial grpc.aio picker with the same messages", "≥ 0.8"),
        ("rps_against_trivial_lean", "the same, against one that is not shown response headers", "≥ 0.8"),
        ("rps_against_envoy", "requests/s against Envoy alone", "-"),
        ("added_p50_ms", "P50 added at 200 requests/s, ms", "≤ 1.0"),
        ("added_p99_ms", "P99 added at 200 requests/s, ms", "-"),
    ],
    "rate": [
        ("cores_least", "cores of the picker at 500 requests/s on 10 pods, in the cheapest mode (llm-d: 4.9)", "< 0.5"),
        ("cores_most", "the same, in the dearest", "< 0.5"),
        ("decision_p50_ms_most", "P50 of a decision, ms (llm-d: 3.6)", "-"),
        ("decision_p95_ms_most", "P95 of a decision, ms (llm-d: 78.6)", "< 5"),
    ],
    "idle": [
        ("cores_1s", "cores for 100 idle pods, scraped every second", "< 0.1"),
        ("cores_50ms", "the same every 50 ms (llm-d: 7.5)", "stated"),
        ("interval_50ms", "ms between two scrapes that came of the latter", "50"),
    ],
    "scrape": [
        ("scraper_cpu_s", "CPU seconds per 1,000 scrapes of a 57 kB page", "≤ 1.0"),
        ("parse_cpu_s", "of which parsing", "≤ 0.1"),
        ("parse_times_faster_than_prometheus", "parsing, times faster than Prometheus's client parser", "-"),
    ],
    "sim": [
        ("requests_per_s", "simulated requests per second of CPU, `saas-50`, the article's weights", "≥ 25,000"),
        ("per_step_requests_per_s", "the same with pods that make every step by itself", "≥ 5,000"),
        ("events_per_s", "events of the virtual clock per second of CPU", "-"),
        ("core_us", "microseconds of the core per request", "-"),
        ("pods_us", "microseconds of the pods per request", "-"),
        ("peak_mb", "peak memory, MB", "-"),
        ("peak_mb_4_times_as_long", "the same for a trace four times as long", "the same"),
        ("war_story_s", "CPU seconds of the war story, 09:00 to 16:00", "≤ 120"),
    ],
    "eventlog": [
        ("record_us", "microseconds per event, the file included", "-"),
        ("share_of_core", "of the time that the core takes for the same events", "-"),
        ("bytes_per_request", "bytes per request, its share of scrapes included", "-"),
    ],
    "thrash": [],
    "pins": [
        ("seconds", "seconds to count 50 million rows of logs in Parquet", "≤ 60"),
        ("cpu_seconds", "CPU seconds of that", "-"),
        ("most_rss_mb", "peak memory, MB", "≤ 2,000"),
    ],
    "disagg": [],
    "disagg_live": [
        ("loads_against_both", "loads per request of pairs, times those of pods that do both", "≤ 2.2"),
        ("not_decoding", "answers of pods that only prefill, in all runs", "0"),
        ("foreign", "KV or answers of another adapter, in all runs", "0"),
        ("late", "adapters of pairs that began to come when the KV was there", "0"),
        ("late_independently", "the same, chosen independently", "-"),
        ("elsewhere", "requests lost that were not in flight at a pod that was killed, in all runs", "0"),
    ],
}


def machine() -> str:
    """Processor, cores, Python and system in one line."""
    names = [
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    cpu = names[0] if names else platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def run(name: str) -> dict[str, Any]:
    """One benchmark's figures."""
    command = [sys.executable, "-m", f"bench.{name}", *BENCHMARKS[name]]
    print(f"running {' '.join(command[1:])}", file=sys.stderr, flush=True)
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=PAGE.parent.parent).stdout
    figures: dict[str, Any] = json.loads(out)
    return figures


def section(name: str, figures: dict[str, Any]) -> str:
    """One benchmark as a table of aims and all its figures."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    lines = [f"### {name}", "", f"`python -m bench.{name}`, {today}, {machine()}.", ""]
    if AIMS[name]:
        lines += ["| figure | measured | aim |", "|---|---|---|"]
        lines += [f"| {text} | {shown(figures[key])} | {aim} |" for key, text, aim in AIMS[name]]
        lines.append("")
    if "tables" in figures:
        return "\n".join([*lines, figures["tables"]])  # they say it all
    lines += ["```json", json.dumps(figures, indent=1), "```", ""]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write(sections: dict[str, str]) -> None:
    """Exchange the sections that were measured; the others and the words around them stay."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    kept = {part.split("\n", 1)[0]: f"### {part}" for part in old.split("### ")[1:]}
    kept.update(sections)
    body = "\n".join(kept[name].rstrip() + "\n" for name in BENCHMARKS if name in kept)
    PAGE.write_text(f"{before}{BEGIN}\n{body}{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    there = [name for name in BENCHMARKS if importlib.util.find_spec(f"bench.{name}")]
    parser.add_argument("--only", default=",".join(there), help=f"which, of {', '.join(there)}")
    wanted = parser.parse_args().only.split(",")
    unknown = [name for name in wanted if name not in there]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(there)}")
    write({name: section(name, run(name)) for name in wanted})


if __name__ == "__main__":
    main()
