"""Every question of the dashboard, of the runbooks and of the autoscalers gets an answer from a real Prometheus.

The series are of a fleet that thrashes, written as OpenMetrics and loaded with promtool. A question that finds nothing
is a panel that is empty when somebody needs it.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_kit import Server, prometheus, promtool

from lorapick.dash.autoscaling import PRESSURE, WASTE
from lorapick.dash.boards.rows import rows
from lorapick.dash.queries import Queries
from lorapick.dash.rules import Thresholds, rules_document
from lorapick.dash.runbooks import runbook_directory
from lorapick.live.families import LATENCY_BUCKETS, PICK_BUCKETS, STAY_BUCKETS
from lorapick.model.alerts import Alert
from lorapick.model.settings import SloSettings

pytestmark = pytest.mark.system
PODS = ("pod-01", "pod-02")
MINUTES = 20
EVERY = 15
NOW = "p"
"""Instance of the only picker."""


def gauges() -> dict[str, float]:
    """Series that stay, by name and labels."""
    fleet = {
        "active_adapters_per_slot": 1.9, "slot_pressure": 1.9, "fleet_useful_time_ratio": 0.3, "new_adapters": 20,
        "new_adapters_traffic_share": 0.3, "critical_queues": 1, "pins_wanted": 4, "pins_missing": 1,
        "pins_without_place": 0, "placement_moves_last_minute": 2, 'info{version="0",policy="cost"}': 1,
        'distinct_active_adapters{window="10m"}': 55, 'distinct_active_adapters{window="1h"}': 60,
        'requests_waiting{for="held_for_load"}': 5, 'requests_waiting{for="held_for_slot"}': 2,
        "peers_up": 0, "peers_known": 1, 'kubernetes_up{kind="pods"}': 0, 'kubernetes_objects{kind="pods"}': 4,
        'tls_not_after_seconds{server="extproc"}': 9e9,
        'slo_seconds{objective="latency_p95"}': 2, 'slo_seconds{objective="ttft_p95"}': 0.5,
        'adapter_slots_used{adapter="legal"}': 2, 'adapter_slots_used{adapter="other"}': 6,
    }  # fmt: skip
    fleet |= {f'alert{{alert="{alert}"}}': float(alert is Alert.THRASH) for alert in Alert}
    pod = {
        "slots": 4, "slots_used": 4, "queue_depth": 7, "queue_critical": 1, "pressure_tier": 1, "ready": 1,
        "scrape_age_seconds": 0.7, "swap_queue_depth": 3, "loads_in_flight": 1, "mean_residency_seconds": 7,
    }  # fmt: skip
    return fleet | {f'{name}{{pod="{each}"}}': value for name, value in pod.items() for each in PODS}


def counters() -> dict[str, float]:
    """Series that grow, each by so much a second."""
    fleet = {
        'requests_total{outcome="served",reason="none"}': 24, 'requests_total{outcome="failed",reason="none"}': 0.5,
        'requests_total{outcome="rejected",reason="shed"}': 0.5, "arrivals_total": 25,
        'decisions_total{outcome="dispatched",reason="none"}': 25, "quarantines_total": 0.01,
        'picks_total{adapter="legal",tier="gpu_idle"}': 9, 'picks_total{adapter="other",tier="disk"}': 16,
        'hits_total{adapter="legal",tier="gpu_idle"}': 8, 'faults_total{kind="scoring_error"}': 0,
        'passed_total{why="no_body"}': 0.1, "envoy_requests_total": 25.1, "envoy_without_picker_total": 0,
        'placement_commands_total{kind="load",why="pin"}': 0.1, 'placement_refusals_total{reason="load_budget"}': 0.1,
        'adapter_evictions_total{adapter="legal"}': 0.3, 'adapter_latency_seconds_sum{adapter="legal"}': 30,
        'adapter_latency_seconds_count{adapter="legal"}': 12,
        'peers_claims_total{outcome="won"}': 0.1,
        'splits_total{result="split"}': 0.5, 'prefills_failed_total{pod="pod-01",why="failed"}': 0.2,
    }  # fmt: skip
    pod = {
        'swaps_total{pod="P",from="cpu"}': 1.2, 'loads_total{pod="P",by="inferred",from="cpu"}': 1.3,
        'evictions_total{pod="P",by="capacity"}': 0.6, 'busy_seconds_total{pod="P"}': 0.95,
        'useful_seconds_total{pod="P"}': 0.2, 'hit_to_evict_seconds_sum{pod="P"}': 2,
        'hit_to_evict_seconds_count{pod="P"}': 0.6, 'pressure_changes_total{pod="P",tier="soft"}': 0.01,
        'load_failures_total{pod="P"}': 0.01, 'loads_coalesced_total{pod="P"}': 0.5,
    }  # fmt: skip
    grow = fleet | {name.replace('"P"', f'"{each}"'): value for name, value in pod.items() for each in PODS}
    for each in PODS:
        grow |= histogram("residency_seconds", STAY_BUCKETS, rate=0.6, labels=f'pod="{each}"')
    grow |= histogram("latency_seconds", LATENCY_BUCKETS, rate=24)
    grow |= histogram("ttft_seconds", LATENCY_BUCKETS, rate=24)
    grow |= histogram("hold_seconds", LATENCY_BUCKETS, rate=3, labels='for="held_for_load"')
    return grow | histogram("pick_seconds", PICK_BUCKETS, rate=25)


def histogram(name: str, bounds: tuple[float, ...], *, rate: float, labels: str = "") -> dict[str, float]:
    """Evenly spread over its buckets."""
    edges = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    between = "," if labels else ""
    return {
        f'{name}_bucket{{{labels}{between}le="{edge}"}}': rate * (number + 1) / len(edges)
        for number, edge in enumerate(edges)
    }


def openmetrics(begin: float) -> str:
    """All of it, as text. Types are left unknown, so that parts of histograms may stand alone."""
    lines: list[str] = []
    times = [begin + EVERY * step for step in range(60 * MINUTES // EVERY + 1)]
    families: dict[str, list[tuple[str, float, bool]]] = {}
    for grows, series in ((False, gauges()), (True, counters())):
        for name, value in series.items():
            families.setdefault(name.partition("{")[0], []).append((name, value, grows))
    families["process_cpu_seconds_total"] = [("process_cpu_seconds_total", 0.2, True)]
    for family, series in families.items():
        full = family if family.startswith("process") else f"lorapick_{family}"
        lines.append(f"# TYPE {full} unknown")
        for name, value, grows in series:
            labels = name.partition("{")[2].removesuffix("}")
            shown = f'{full}{{{labels}{"," if labels else ""}instance="{NOW}",job="lorapick"}}'
            lines += [f"{shown} {value * (t - begin) if grows else value:.6g} {t:.0f}" for t in times]
    return "\n".join([*lines, "# EOF", ""])


END = float(int(time.time()) // 60 * 60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("prometheus")
    (directory / "series.txt").write_text(openmetrics(END - 60 * MINUTES))
    made = promtool("tsdb", "create-blocks-from", "openmetrics", "series.txt", "data", cwd=directory)
    assert made.returncode == 0, made.stdout + made.stderr
    with prometheus(directory) as running:
        yield running


def filled(expr: str) -> str:
    """The expression with Grafana's variables as Grafana would fill them in."""
    return expr.replace("$__rate_interval", "2m").replace("$pod", ".*")


def test_every_panel_has_data(server):
    asks = [(drawn.title, ask) for row in rows(Thresholds()) for drawn in row.panels for ask in drawn.asks]
    assert len(asks) > 50
    empty = [f"{title}: {ask.expr}" for title, ask in asks if not server.query(filled(ask.expr), END)]
    assert [each for each in empty if "DCGM" not in each] == []


def test_a_chosen_pod_is_the_only_one_shown(server):
    ask = Queries("1m", 'pod=~"pod-01"')
    for expr in (ask.swaps_by_pod(), ask.residency_by_pod(), ask.useful_by_pod(), ask.gauge("slots")):
        assert [row["metric"] for row in server.query(expr, END)] == [{"pod": "pod-01"}], expr


def test_every_record_has_data(server):
    records = {rule["record"]: rule["expr"] for rule in recorded()}
    # What rests on other records has data once Prometheus has recorded those: here they are put in by hand.
    for name, expr in records.items():
        full = expr
        for other, inner in reversed(records.items()):
            full = re.sub(rf"(?<![\w:]){re.escape(other)}(?![\w:])", f"({inner})", full)
        assert server.query(full, END), f"{name}: {full}"


def recorded() -> list[dict[str, str]]:
    thresholds = Thresholds(slo=SloSettings(latency_p95=2.0, ttft_p95=0.5))
    found: list[dict[str, str]] = rules_document(thresholds, runbooks="")["groups"][0]["rules"]
    return found


def test_figures_are_those_of_the_series(server):
    ask = Queries("1m")

    def value(expr: str) -> float:
        (row,) = server.query(expr, END)
        return float(row["value"][1])

    assert value(ask.swaps()) == pytest.approx(1.2, rel=0.01)
    assert value(ask.residency()) == pytest.approx(4 / 0.6, rel=0.01)
    assert value(ask.hit_ratio()) == pytest.approx(8 / 25, rel=0.01)
    assert value(ask.believed_hit_ratio()) == pytest.approx(9 / 25, rel=0.01)
    assert value(ask.useful()) == pytest.approx(0.2 / 0.95, rel=0.01)
    assert value(ask.error_ratio()) == pytest.approx(1 / 25, rel=0.01)
    assert value(ask.critical_share()) == 1.0
    assert value(ask.swap_queue()) == 6.0
    assert value(PRESSURE) == pytest.approx(1.9)
    assert value(WASTE) == pytest.approx(1 - 0.2 / 0.95, rel=0.01)


def test_questions_of_runbooks_are_understood_and_answered(server):
    quiet = {"up == 0", "increase(lorapick_quarantines_total[10m])"}
    for page in sorted(runbook_directory().glob("*.md")):
        (block,) = re.findall(r"^```promql\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines():
            assert server.query(line, END) or line in quiet, f"{page.name}: {line}"


def test_without_a_picker_autoscalers_get_no_number(server):
    long_ago = END - 3600
    assert server.query(WASTE, long_ago) == []
    assert server.query(PRESSURE, long_ago) == []


def test_prometheus_itself_loads_the_rules(tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules_document(Thresholds(), runbooks="http://x")))
    (tmp_path / "data").mkdir()
    with prometheus(tmp_path, config="rule_files: [rules.yaml]\n") as running:
        groups = running.groups()
    assert {group["name"] for group in groups} == {"lorapick-records", "lorapick-alerts"}


UNSEEN = ("DCGM", "lorapick_passed_total", "process_cpu_seconds")
"""What no simulation can show: GPUs, a transport, a process."""
LONG = ("lorapick_new_adapters",)
"""What a simulated quarter of an hour cannot show: which adapters are new is known after an hour."""


def test_panels_show_the_war_story(tmp_path):
    empty, swaps = played(tmp_path, "war-story", "--until", "16m", "--set", "arrivals.rate=12/s")
    assert [each for each in empty if not any(word in each for word in UNSEEN + LONG)] == []
    assert swaps > 0.1


def test_panels_show_experiments_as_they_begin(tmp_path):
    """War-story-small until 10 minutes after the split."""
    empty, _ = played(tmp_path, "war-story-small", "--until", "80m")
    assert [each for each in empty if not any(word in each for word in UNSEEN)] == []


def played(directory: Path, *scenario: str) -> tuple[list[str], float]:
    """Questions of the board that find nothing at the end of a scenario, and the swaps per pod and second there."""
    command = [sys.executable, "-m", "lorapick.cli.main", "simulate", *scenario, "-p", "weighted"]
    command += ["--series-every", "30s", "--series", "series.txt"]
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=180, check=False)
    assert run.returncode == 0, run.stderr
    made = promtool("tsdb", "create-blocks-from", "openmetrics", "series.txt", "data", cwd=directory)
    assert made.returncode == 0, made.stdout + made.stderr
    end = last_time(directory / "series.txt")
    asks = [(drawn.title, ask) for row in rows(Thresholds()) for drawn in row.panels for ask in drawn.asks]
    with prometheus(directory) as running:
        empty = [f"{title}: {ask.expr}" for title, ask in asks if not running.query(filled(ask.expr), end)]
        (swaps,) = running.query(Queries("2m").swaps(), end)
    return empty, float(swaps["value"][1])


def last_time(file: Path) -> float:
    """Of the last sample."""
    with file.open("rb") as lines:
        lines.seek(-4096, os.SEEK_END)
        return float(lines.read().splitlines()[-2].rpartition(b" ")[2])
