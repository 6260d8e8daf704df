import json
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import program

EXAMPLE = Path(__file__).parents[3] / "examples" / "lorapick.yaml"
NIGHT = """
discovery: {pods: []}
schedules:
  - {adapters: [legal, medical], cron: "30 2 * * *", timezone: Europe/Berlin, for: 8h}
"""


def run(*arguments: object) -> tuple[int, str, str]:
    words = ["schedules", *map(str, arguments)]
    result = CliRunner().invoke(program(words), words)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def night(tmp_path: Path) -> Path:
    file = tmp_path / "lorapick.yaml"
    file.write_text(NIGHT)
    return file


def test_the_example_on_local_clocks_and_in_utc() -> None:
    code, out, err = run(EXAMPLE, "--at", "2026-03-06T12:00", "--count", 2)
    assert (code, err) == (0, "")
    assert out == (
        "customer-support-es: 45 8 * * mon-fri in America/Mexico_City, on 2 pods with zone=west\n"
        "  fires on local clocks        in UTC             until\n"
        "  Fri 2026-03-06 08:45 -06:00  2026-03-06 14:45   Fri 2026-03-06 18:15 -06:00\n"
        "  Mon 2026-03-09 08:45 -06:00  2026-03-09 14:45   Mon 2026-03-09 18:15 -06:00\n"
        "  -- no clock change within a year\n"
    )


def test_firings_around_the_changes_of_clocks(night: Path) -> None:
    code, out, _ = run(night, "--at", "2026-03-06T04:00+01:00", "--count", 1)
    assert code == 0
    assert out.splitlines()[1:] == [
        "  active until Fri 2026-03-06 10:30 +01:00",
        "  fires on local clocks        in UTC             until",
        "  Sat 2026-03-07 02:30 +01:00  2026-03-07 01:30   Sat 2026-03-07 10:30 +01:00",
        "  Sat 2026-03-28 02:30 +01:00  2026-03-28 01:30   Sat 2026-03-28 10:30 +01:00",
        "  -- clocks: 2026-03-29 02:00 +01:00 becomes 2026-03-29 03:00 +02:00",
        "  Sun 2026-03-29 03:00 +02:00  2026-03-29 01:00   Sun 2026-03-29 11:00 +02:00  skipped: fires at the jump",
        "  Mon 2026-03-30 02:30 +02:00  2026-03-30 00:30   Mon 2026-03-30 10:30 +02:00",
        "  Sun 2026-10-25 02:30 +02:00  2026-10-25 00:30   Sun 2026-10-25 09:30 +01:00  comes twice: the first",
        "  -- clocks: 2026-10-25 03:00 +02:00 becomes 2026-10-25 02:00 +01:00",
        "  Mon 2026-10-26 02:30 +01:00  2026-10-26 01:30   Mon 2026-10-26 10:30 +01:00",
        "  Tue 2026-10-27 02:30 +01:00  2026-10-27 01:30   Tue 2026-10-27 10:30 +01:00",
    ]


def test_the_same_as_json(night: Path) -> None:
    code, out, _ = run(night, "--at", "2026-03-28T12:00", "--count", 1, "--json")
    (found,) = json.loads(out)
    assert code == 0
    assert (found["adapters"], found["for_seconds"], found["active_until"]) == (["legal", "medical"], 28800.0, None)
    assert found["firings"][0] == {
        "local": "2026-03-29T03:00:00+02:00",
        "utc": "2026-03-29T01:00:00Z",
        "until": "2026-03-29T11:00:00+02:00",
        "note": "skipped: fires at the jump",
    }
    assert found["clock_changes"][0] == {
        "utc": "2026-03-29T01:00:00Z",
        "before": "2026-03-29 02:00 +01:00",
        "after": "2026-03-29 03:00 +02:00",
    }
    assert all(
        datetime.fromisoformat(each["local"]) == datetime.fromisoformat(each["utc"]) for each in found["firings"]
    )


def test_without_a_time_it_begins_now(night: Path) -> None:
    before = datetime.now().astimezone()
    _, out, _ = run(night, "--json")
    assert datetime.fromisoformat(json.loads(out)[0]["firings"][0]["utc"]) > before


def test_a_file_without_schedules_says_so(tmp_path: Path) -> None:
    file = tmp_path / "lorapick.yaml"
    file.write_text("discovery: {pods: []}\n")
    assert run(file) == (0, f"{file} has no schedules\n", "")
    assert run(file, "--json") == (0, "[]\n", "")


@pytest.mark.parametrize(
    ("at", "words"), [("tomorrow", "is no time; write for example 2026-03-28T12:00"), ("9999-01-01", "out of range")]
)
def test_a_time_that_is_none_is_bad_input(night: Path, at: str, words: str) -> None:
    code, out, err = run(night, "--at", at)
    assert (code, out) == (2, "")
    assert err.startswith(f'lorapick schedules: --at "{at}"') and words in err


def test_a_configuration_with_problems_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "lorapick.yaml"
    file.write_text(NIGHT.replace("Europe/Berlin", "Europe/Atlantis").replace("30 2 *", "30 2 31"))
    code, _, err = run(file)
    assert code == 2
    assert "time zone of the IANA database" in err
    file.write_text(NIGHT.replace("30 2 * *", "30 2 31 feb"))
    assert 'no month of "feb" has a day 31, so it would never come' in run(file)[2]


@pytest.mark.parametrize("cron", ["30 2 31 feb *", "0 0 30 2 */2"])
def test_a_day_that_never_comes_is_found_by_the_check(tmp_path: Path, cron: str) -> None:
    file = tmp_path / "lorapick.yaml"
    file.write_text(NIGHT.replace("30 2 * * *", cron))
    code, _, err = run(file)
    assert code == 2
    assert f"{file}:4:" in err and "so it would never come" in err
