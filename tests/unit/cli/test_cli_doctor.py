"""`lorapick doctor`: words, exit codes, saved answers; against a real admin API."""

from collections.abc import Iterator

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli.doctor import register
from lorapick.core.doctor.findings import Diagnosis
from lorapick.core.doctor.picture import AlertPicture, Picture, PodPicture
from lorapick.live.doctor import DoctorAnswer
from lorapick.model.signals import FleetSignals, Signals
from lorapick.testing.published import ValuesPublished, small_fleet
from lorapick.testing.served import served

SICK = Picture(
    watched=900.0,
    signals=Signals(now=0.0, fleet=FleetSignals(requests_per_second=5.0, swaps_per_second=0.0, error_ratio=0.2)),
    pods=(PodPicture(name="pod-1", ready=True),),
    alerts=(AlertPicture(name="convoy", facts={"waiting": 3.0}),),
)


@pytest.fixture(scope="module")
def published() -> ValuesPublished:
    return small_fleet()


@pytest.fixture(scope="module")
def admin(published: ValuesPublished) -> Iterator[str]:
    with served(published) as url:
        yield url


def run(*arguments: str) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [*arguments])


def test_a_picker_is_examined(admin: str) -> None:
    for flag in ("--admin", "--endpoint", "--url"):
        found = run(flag, admin)
        assert found.exit_code == 0
        assert "take no requests" in found.output
        assert "Looked at: 2 of 3 pods take requests" in found.output


def test_an_answer_can_be_saved_and_examined_again(admin: str, tmp_path) -> None:
    saved = run("--admin", admin, "--json")
    file = tmp_path / "saved.json"
    file.write_text(saved.output)
    assert run("--file", str(file)).output == run("--admin", admin).output


def test_what_harms_users_is_an_exit_code(tmp_path) -> None:
    file = tmp_path / "sick.json"
    file.write_bytes(msgspec.json.encode(DoctorAnswer(diagnosis=Diagnosis(), picture=SICK)))
    found = run("--file", str(file))
    assert found.exit_code == 1
    lines = found.output.splitlines()
    assert lines[0] == "NOW  20 % of the requests fail or are refused [errors]"
    assert lines[1] == "       failed and refused / ended in the last minute 20 % > 1 %"
    assert lines[2].startswith("     - `lorapick explain --refused` says why")
    assert any(line.startswith("WARN a convoy") for line in lines)
    assert lines[-1].startswith("Unknown: ")


def test_of_a_well_fleet_that_is_said(tmp_path) -> None:
    file = tmp_path / "well.json"
    file.write_bytes(msgspec.json.encode({"picture": {"pods": [{"name": "a", "ready": True}]}}))
    found = run("--file", str(file))
    assert (found.exit_code, found.output.splitlines()[:2]) == (
        0,
        ["Nothing is wrong.", "Looked at: 1 of 1 pod take requests."],
    )
    file.write_bytes(b'{"picture": {}}')
    assert "Nothing is known of this fleet." in run("--file", str(file)).output


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"picture": 1}', b"\xff\xfe"])
def test_what_is_no_answer_is_refused(content: bytes, tmp_path) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    found = run("--file", str(file))
    assert found.exit_code == 2
    assert "holds no answer of the doctor" in found.output
    assert "lorapick doctor --json" in found.output


def test_a_file_that_is_not_there_is_named() -> None:
    found = run("--file", "nowhere.json")
    assert (found.exit_code, "--file nowhere.json: no such file" in found.output) == (2, True)


def test_without_a_picker_it_says_how_to_have_one() -> None:
    found = run("--admin", "http://127.0.0.1:1")
    assert (found.exit_code, "lorapick up" in found.output) == (2, True)


def test_escape_sequences_do_not_reach_the_terminal(tmp_path) -> None:
    file = tmp_path / "hostile.json"
    evil = "\x1b[31mEVIL\x07"
    hostile = {"adapters": [{"name": evil, "problem": evil}], "pods": [{"name": "a", "ready": True}]}
    file.write_bytes(msgspec.json.encode({"picture": hostile}))
    said = run("--file", str(file)).output
    assert "\x1b" not in said and "?[31mEVIL?" in said
