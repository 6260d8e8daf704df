"""The benchmark of docs/disaggregation.md, for a moment: adapters are where they are used, and loads few."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.twin
def test_the_corners_are_played():
    options = ["--until", "36", "--no-capacity", "--json"]
    command = [sys.executable, "-m", "bench.disagg", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=110)
    found = json.loads(done.stdout)
    rows = {row["row"]: row for row in found["corners"]}
    plain, alone, aware, both = list(rows.values())[:4]
    assert both["split_share"] == alone["split_share"] == 1.0
    assert min(both["hits"], both["prefill_hits"], aware["hits"]) > 0.95
    assert max(plain["hits"], alone["hits"], alone["prefill_hits"]) < 0.8
    assert both["loads_per_1000"] < plain["loads_per_1000"] / 10 < alone["loads_per_1000"]
    assert both["tpot_p95_ms"] < aware["tpot_p95_ms"] < plain["tpot_p95_ms"]
    calm = {row["row"]: row["calm_ttft"] for row in found["assumptions"]}
    assert calm["links: 2 Gbit/s, 0.2 GB/s of them"][1] > 5 * calm["as above"][1] > 5 * calm["as above"][0]
