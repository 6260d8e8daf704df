"""`lorapick simulate --series`: a simulated picker's metrics over time."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.cli.simulate_series import MONDAY, series_of
from lorapick.testing.rules_replay import seconds_of

QUICK = ["--set", "run={for: 62s, warm_up: 2s}"]


def lorapick(*arguments):
    return CliRunner().invoke(program(arguments), arguments, env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("series") / "series.om"
    shown = lorapick("simulate", "code-4", *QUICK, "-p", "weighted", "--series", str(path))
    assert shown.exit_code == 0, shown.output
    return path.read_text().splitlines()


def test_the_file_ends_as_openmetrics_must(lines):
    assert lines[-1] == "# EOF"
    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(types) == len({line.split()[2] for line in types}), "each type is told once"


def test_every_look_has_its_time_and_the_picker_is_up(lines):
    times = {line.rsplit(" ", 1)[1] for line in lines if line.startswith("up{")}
    assert sorted(map(float, times)) == [MONDAY + 15.0 * number for number in range(5)]
    assert all('job="lorapick",instance="simulated"' in line for line in lines if not line.startswith("#"))


def test_counters_grow_and_first_bytes_are_seen(lines):
    for name in (r'lorapick_requests_total\{outcome="served"', r"lorapick_ttft_seconds_count"):
        values = [float(line.split()[-2]) for line in lines if re.match(name, line)]
        assert values == sorted(values) and values[-1] > 20


def test_prometheus_reads_it(lines):
    # The older format differs in what follows the value, and in the names of counters' families.
    text = "\n".join(line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#")) + "\n"
    assert sum(1 for family in text_string_to_metric_families(text) for _ in family.samples) > 500


def test_labels_are_escaped():
    sample = Sample("m", {"a": 'x"\\\n'}, 1.0)
    assert series_of(sample) == r'm{a="x\"\\\n",job="lorapick",instance="simulated"}'


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--seeds", "2"], "--series is of one run"),
        (["-p", "weighted", "-p", "round-robin"], "--series is of one run"),
        (["--series-every", "soon"], "--series-every is 'soon'"),
        (["--series-every", "10ms"], "it must be between 1s and 1h"),
    ],
)
def test_flags_that_cannot_be_are_refused(tmp_path, flags, words):
    shown = lorapick("simulate", "code-4", *QUICK, "--series", str(tmp_path / "x"), *flags)
    assert shown.exit_code == 2
    assert words in shown.output


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    shown = lorapick("simulate", "code-4", *QUICK, "--series", str(tmp_path / "no" / "x"))
    assert shown.exit_code == 2
    assert "cannot be written" in shown.output


@pytest.mark.parametrize(("text", "seconds"), [("15s", 15.0), ("1h15m", 4500.0), ("1d30s", 86_430.0), ("500ms", 0.5)])
def test_durations_of_promtool_are_read(text, seconds):
    assert seconds_of(text) == seconds
