"""The benchmark of docs/forecast.md, for one day of the trace: models come in the order that they claim."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_day_of_the_trace_is_played():
    command = [sys.executable, "-m", "bench.forecast_models"]
    options = ["--days", "5-5", "--seeds", "1", "--rates", "0.5", "--slots", "16", "--json"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True, timeout=100)
    cold = {row["model"]: row["cold_per_1000"] for row in json.loads(done.stdout)}
    assert list(cold) == ["none", "last_hour", "last_hour, capped", "seasonal", "blend", "perfect"]
    assert 0 <= cold["perfect"] < cold["blend"] < cold["last_hour"] < 20
