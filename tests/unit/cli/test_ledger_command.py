"""`lorapick ledger` over a file: in words, as JSON, as rows, as Parquet; and what it refuses."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli.ledger import register
from lorapick.live.ledger.writer import LedgerWriter
from lorapick.model.ledger import LedgerRow, LoadRow, OccupancyRow, RequestRow, ResidencyRow
from lorapick.model.ledger_report import LedgerReport
from lorapick.model.requests import Outcome
from lorapick.model.settings import LedgerSettings

AT = 1_795_960_800.0
"""2026-11-29 14:00 UTC."""
WINDOW = ("--from", "2026-11-29T14:00Z", "--to", "2026-11-29T15:00Z")


def served(number: int, seconds: float, **fields: object) -> RequestRow:
    ended = AT + 600.0 + number
    given = {"model": "legal", "adapter": "legal", "pod": "pod-1", "dispatched": ended - seconds, "served": seconds}
    given |= {"outcome": Outcome.SERVED, "status": 200, "hit": True, "tier": "gpu_idle"}
    return RequestRow(id=f"req-{number}", arrived=ended - seconds, ended=ended, **(given | fields))


def rows() -> list[LedgerRow]:
    """An hour in which one eviction hurt."""
    back = AT + 690.0
    slow = served(99, 9.0, load_wait=6.0, served=3.0, hit=False, tier="disk", load=5, prefill=1.0, decode=2.0)
    shed = {"outcome": Outcome.REJECTED, "status": 429, "reason": "shed", "pod": None, "dispatched": None, "hit": None}
    return [
        *(served(number, 1.0) for number in range(18)),
        served(50, 2.0, **shed),
        slow,
        served(98, 7.0, adapter="tax", model="tax", drain=5.0, served=2.0, prefilled_by="p-0"),
        LoadRow(id=3, pod="pod-1", adapter="tax", begun=AT, over=AT + 1, tier="cpu", caused_by="controller", why="pin"),
        ResidencyRow(
            id=4,
            pod="pod-1",
            adapter="legal",
            since=AT - 99,
            until=AT,
            why="capacity",
            evicted_by="tax",
            evicted_by_load=3,
        ),
        ResidencyRow(id=6, pod="pod-1", adapter="tax", since=AT, load=3),
        LoadRow(
            id=5,
            pod="pod-1",
            adapter="legal",
            begun=back,
            over=back + 6,
            tier="disk",
            caused_by="request",
            request="req-99",
            result="done",
            after_stay=4,
        ),
        OccupancyRow(t=AT, used=1, slot_seconds=0.0),
        OccupancyRow(t=AT + 3600, used=1, slot_seconds=3600.0),
    ]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that a picker wrote from 13:00 to 15:00."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    now = [AT - 3600.0]
    writer = LedgerWriter(path, LedgerSettings(keep=366 * 86_400.0), clock=lambda: now[0], wall=lambda: now[0])
    now[0] = AT + 3600.0
    writer.put(rows())
    writer.turn()
    writer.close()
    return path


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)], env={"COLUMNS": "160", "TZ": "UTC"})


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_which_evictions_made_p95_worse(ledger: Path) -> None:
    said = run(*WINDOW, "--file", ledger)
    assert said.exit_code == 0
    for line in (
        "2026-11-29 14:00:00 to 15:00:00 UTC",
        "this time 20 1 s 7 s 95.0% 1 rejected",
        "refused, which is in no latency: 1 shed; `lorapick ledger requests --outcome rejected`",
        "the hour before 0 - - - -",
        "the 2 requests beyond P95, in the mean, beside the others",
        "load_wait 3 s 0 ms waited for its adapter to be loaded",
        "prefill 1 s - ",
        "legal pod-1 tax 1 1 2 6 s 5 s 11 s",
        "without the costliest 1: P95 2 s, P50 1 s",
        "no load at all: P95 2 s, P50 1 s",
        "1 stays in slots, 0 of them from before: mean residency 60 min x 0.0002778 a second = 1 slots in use",
        "counted as adapters come and leave: 1",
    ):
        assert " ".join(line.split()) in " ".join(said.output.split()), said.output


def queued(path: Path, slots: float) -> str:
    """What is said of an hour in which requests for three adapters waited at the picker."""
    now = [AT - 60.0]
    writer = LedgerWriter(path, LedgerSettings(keep=366 * 86_400.0), clock=lambda: now[0], wall=lambda: now[0])
    now[0] = AT + 3600.0
    waits = {"queue": 9.0, "served": 1.0}
    writer.put([served(number, 10.0, adapter=f"a{number % 3}", **waits) for number in range(9)])
    writer.put([ResidencyRow(id=number, pod="pod-1", adapter=f"a{number}", since=AT) for number in range(int(slots))])
    for t, seconds in ((AT, 0.0), (AT + 3600.0, 3600.0 * slots)):
        writer.put([OccupancyRow(t=t, used=int(slots), slot_seconds=seconds)])
    writer.turn()
    writer.close()
    return " ".join(run(*WINDOW, "--file", path).output.split())


def test_waiting_for_a_slot_is_told_as_the_cost_of_too_few_slots(tmp_path: Path) -> None:
    said = queued(tmp_path / "few.sqlite", 2.0)
    assert "90% of it is queue: no pod had a slot for the adapter, or room for the request" in said
    assert "3 adapters were asked for, and 2 slots were in use: waiting for a slot is the cost of too few slots" in said
    assert "which is thrash" in said
    said = queued(tmp_path / "enough.sqlite", 4.0)
    assert "thrash" not in said
    assert "pods were full of requests" in said


def test_several_runs_in_one_file_are_told(tmp_path: Path, ledger: Path) -> None:
    assert "runs of a picker" not in run(*WINDOW, "--file", ledger).output
    path = tmp_path / "ledger.sqlite"
    for start in (AT + 10.0, AT + 600.5):
        now = [start]
        writer = LedgerWriter(path, LedgerSettings(keep=366 * 86_400.0), clock=lambda: now[0], wall=lambda: now[0])  # noqa: B023
        writer.turn()
        now[0] = start + 60.0
        writer.turn()
        writer.close()
    said = " ".join(run(*WINDOW, "--file", path).output.split())
    assert "2 runs of a picker are in this time" in said
    assert "--from 2026-11-29T14:10:01Z is the last alone" in said
    last = run("--from", "2026-11-29T14:10:01Z", "--to", "2026-11-29T15:00Z", "--file", path)
    assert "runs of a picker" not in last.output


def test_refused_requests_can_be_found_with_their_reason(ledger: Path) -> None:
    said = run("requests", *WINDOW, "--file", ledger, "--outcome", "rejected").output.splitlines()
    assert len(said) == 2
    assert "reason" in said[0].split()
    assert [word for word in said[1].split() if word in ("rejected", "shed")] == ["rejected", "shed"]
    assert run("requests", *WINDOW, "--file", ledger, "--outcome", "refused").exit_code == 2


def test_as_json(ledger: Path) -> None:
    report = msgspec.json.decode(run(*WINDOW, "--file", ledger, "--json").output, type=LedgerReport)
    assert (report.window.served, report.evictions[0].seconds, report.beyond.requests) == (20, 11.0, 2)


def test_only_one_adapter(ledger: Path) -> None:
    said = run(*WINDOW, "--file", ledger, "--adapter", "tax").output
    assert "adapter tax" in said
    assert "this time 1 7 s 7 s" in " ".join(said.split())


def test_a_time_of_which_nothing_is_known(ledger: Path) -> None:
    said = run("--from", "2026-11-29T09:00Z", "--to", "2026-11-29T10:00Z", "--file", ledger).output
    assert "the ledger has nothing before 2026-11-29 13:00:00" in said
    assert "no request was served in this time" in said
    assert "no adapter was in a slot in this time" in said


def test_rows(ledger: Path) -> None:
    requests = run("requests", *WINDOW, "--file", ledger, "--most", "2").output
    assert "req-99" in requests and "req-98" in requests and "req-50" not in requests
    assert "pod-1 after p-0" in requests
    assert "the last 2; --most shows more" in requests
    loads = run("loads", *WINDOW, "--file", ledger).output
    assert "request req-99" in loads and "controller: pin" in loads
    evictions = run("evictions", "--from", "2026-11-29T13:30Z", "--to", "2026-11-29T14:30Z", "--file", ledger).output
    assert "99 s" in evictions and "tax" in evictions
    assert run("evictions", "--file", ledger).output.startswith("no evictions from")


def test_names_of_clients_are_letters_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    writer = LedgerWriter(path, LedgerSettings(keep=366 * 86_400.0), clock=lambda: AT, wall=lambda: AT)
    evil = "\x1b[/b]"
    stay = ResidencyRow(
        id=1, pod=evil, adapter=evil, since=AT, until=AT + 1.0, why="capacity", evicted_by=evil, evicted_by_load=2
    )
    reload = LoadRow(
        id=3, pod=evil, adapter=evil, begun=AT + 2, over=AT + 8, tier="disk", caused_by="controller", why=evil
    )
    reload = msgspec.structs.replace(reload, after_stay=1)
    slow = served(1, 9.0, pod=evil, adapter=evil, model=evil, load_wait=6.0, hit=False, load=3, dispatched=AT + 2)
    writer.put([stay, reload, msgspec.structs.replace(slow, ended=AT + 9.0, arrived=AT + 2), served(2, 1.0)])
    writer.turn()
    writer.close()
    for view in ((), ("requests",), ("loads",), ("evictions",)):
        said = run(*view, *WINDOW, "--file", path)
        assert said.exit_code == 0
        assert "\x1b" not in said.output and "?[/b]" in said.output
    assert "\x1b" not in run(*WINDOW, "--file", path, "--adapter", evil).output


def test_an_end_that_is_yet_to_come_is_told_beside_the_answer(ledger: Path) -> None:
    said = run("requests", "--from", "2026-11-29T14:00Z", "--to", "9998-01-01T00:00Z", "--file", ledger, "--json")
    assert said.stderr == "--to 9998-01-01T00:00Z is yet to come; this is up to now\n"
    assert len(msgspec.json.decode(said.stdout)) == 21


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31"])
def test_a_year_out_of_range_is_refused_in_words(ledger: Path, text: str) -> None:
    said = run("--from", text, "--file", ledger)
    assert said.exit_code == 2
    assert "years go from 1970" in said.stderr


def test_rows_as_json(ledger: Path) -> None:
    found = msgspec.json.decode(run("loads", *WINDOW, "--file", ledger, "--json").output, type=list[LoadRow])
    assert [load.adapter for load in found] == ["legal", "tax"]


def test_export(ledger: Path, tmp_path: Path) -> None:
    said = run("export", tmp_path / "out", "--file", ledger)
    assert f"{tmp_path}/out/requests.parquet: 21 rows" in said.output
    assert min(os.listdir(tmp_path / "out")) == "loads.parquet"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--from", "noon"), "'noon' is no time; write a time of day (14:00)"),
        (("--from", "2026-11-29T14:00Z", "--to", "2026-11-29T13:00Z"), "it ends before it begins"),
        (("--file", "/nowhere/ledger.sqlite"), "no ledger at /nowhere/ledger.sqlite"),
        (("--admin", "http://127.0.0.1:9"), "no picker answers"),
        (("export", "out", "--file", "/nowhere/ledger.sqlite"), "no ledger at"),
    ],
)
def test_refusals(arguments: tuple[str, ...], told: str, capfd: pytest.CaptureFixture[str]) -> None:
    said = run(*arguments)
    assert said.exit_code == 2
    assert told in said.output + capfd.readouterr().err


def test_a_target_that_cannot_be_written(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = run("export", tmp_path / "file", "--file", ledger)
    assert (said.exit_code, "cannot be written" in said.output) == (2, True)
