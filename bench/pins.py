"""How long counting a month of request logs takes, and how much memory.

    python -m bench.pins [--rows 50000000] [--runs 3] [--json]

Rows are made with DuckDB in a temporary folder: a Parquet file of 30 days, 1,000 adapters with Zipf 1, steady traffic,
two numbers of tokens and a request's name, in order of time but for the last tenth, which is shuffled among a twentieth
of the month. Each is counted in a process of its own, with `LogOptions` as they are; a file with a tenth of the rows is
counted too. Bounds of the full size: 60 s, 2 GB on two cores.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from lorapick.plan.logs.counting import count_logs

ROWS = 50_000_000
ADAPTERS = 1_000
DAYS = 30
SEED = 1
EULER = 0.5772156649
"""The n-th harmonic number is near to log(n + 1/2) + this."""
START = 1_780_272_000
"""2026-06-01, in seconds since 1970."""


def make(path: Path, *, rows: int) -> None:
    """Write a file of logs."""
    harmonic = sum(1 / n for n in range(1, ADAPTERS + 1))
    place = f"if(i < {rows} * 0.9, i, i - (hash(i, 4, {SEED}) % greatest(1, {rows} // 20))::BIGINT)"
    drawn = f"exp((hash(i, 1, {SEED}) % 10000019) / 10000019.0 * {harmonic} - {EULER})"
    with duckdb.connect(config={"threads": 2, "memory_limit": "1500MB"}) as database:
        database.execute(f"SET temp_directory = '{path.parent}/made'")
        database.execute(
            f"""COPY (
                SELECT
                    'tenant-' || lpad(greatest(1, least({ADAPTERS}, round({drawn})))::INT::VARCHAR, 4, '0') AS adapter,
                    make_timestamp({START}000000 + ({place} * ({DAYS * 86_400e6} / {rows}))::BIGINT) AS arrived,
                    (50 + hash(i, 2, {SEED}) % 2000)::INT AS prompt_tokens,
                    (1 + hash(i, 3, {SEED}) % 500)::INT AS output_tokens,
                    'request-' || i::VARCHAR AS id
                FROM range({rows}) AS rows(i)
            ) TO '{path}' (FORMAT parquet)"""
        )


def count(path: Path) -> dict[str, Any]:
    """Count a file in this process."""
    begin, cpu = time.perf_counter(), time.process_time()
    summary = count_logs([str(path)])
    return {
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "requests": summary.requests,
        "adapters": len(summary.adapters),
        "sample": len(summary.sample.arrivals),
    }


def child(*arguments: str) -> str:
    """Run this module in a process of its own: what a process took is what its parent had, or more."""
    command = [sys.executable, "-m", "bench.pins", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(rows: int, *, runs: int, folder: Path) -> dict[str, Any]:
    """Medians over some runs."""
    path = folder / f"{rows}.parquet"
    child("--make", str(path), "--rows", str(rows))
    size = path.stat().st_size
    found = [json.loads(child("--count", str(path))) for _ in range(runs)]
    path.unlink()
    medians = {key: statistics.median(run[key] for run in found) for key in found[0]}
    return {"rows": rows, "file_mb": size / 1e6, "most_rss_mb": max(run["rss_mb"] for run in found), **medians}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.make:
        make(args.make, rows=args.rows)
        return
    if args.count:
        print(json.dumps(count(args.count)))
        return
    with tempfile.TemporaryDirectory(prefix="lorapick-bench-") as folder:
        sizes = (args.rows // 10, args.rows)
        found = [measure(rows, runs=args.runs, folder=Path(folder)) for rows in sizes]
    if args.json:
        smaller, larger = found
        print(json.dumps({**larger, "a_tenth": smaller}, indent=1))
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians of {args.runs}")
    print("      rows  Parquet MB  seconds  CPU seconds  peak MB  adapters")
    for each in found:
        print(
            f"{each['rows']:10,}{each['file_mb']:12.0f}{each['seconds']:9.1f}{each['cpu_seconds']:13.1f}"
            f"{each['most_rss_mb']:9.0f}{each['adapters']:10,}"
        )


if __name__ == "__main__":
    main()
