"""From a file to an answer."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from live_ledger_kit import OFFSET, Clock, load, query, request, stay, write, writer

from lorapick.core.ledger.report import Asked
from lorapick.live.ledger import reader
from lorapick.live.ledger.answers import View, answer
from lorapick.live.ledger.file import LedgerError, open_to_read
from lorapick.live.ledger.reader import report_of
from lorapick.model.ledger import OccupancyRow

WINDOW = Asked(OFFSET + 80.0, OFFSET + 101.0)
SLOW = request(9, 100.0, arrived=91.0, dispatched=91.0, load_wait=6.0, served=3.0, hit=False, load=5)
EVICTED = stay(4, until=90.0, why="capacity", evicted_by="y", evicted_by_load=3, requests=2, last_request=70.0)
RELOAD = load(5, begun=91.0, over=97.0, result="done", request="r9", after_stay=4)
ROWS = [
    *(request(number, 95.0) for number in range(5)),
    request(20, 79.0, served=2.0, arrived=77.0, dispatched=77.0),
    request(21, 90.0, adapter="z", pod="b"),
    SLOW,
    EVICTED,
    RELOAD,
    stay(6, since=91.0, load=5),
    OccupancyRow(t=80.0, used=1, slot_seconds=0.0),
    OccupancyRow(t=100.0, used=1, slot_seconds=19.0),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of the rows above, in its second run."""
    write(tmp_path / "ledger.sqlite", [load(5), stay(4)], Clock(40.0)).close()
    clock = Clock(60.0)
    second = writer(tmp_path / "ledger.sqlite", clock)
    clock.now = 101.0
    second.put(ROWS)
    second.turn()
    return tmp_path / "ledger.sqlite"


def test_one_question_one_answer(path: Path) -> None:
    report = report_of(path, WINDOW)
    assert (report.window.served, report.window.p95, report.before.served, report.before.p95) == (7, 9.0, 1, 2.0)
    (cost,) = report.evictions
    assert (cost.adapter, cost.pod, cost.by, cost.evictions, cost.reloads) == ("x", "a", "y", 1, 1)
    assert cost.waited == pytest.approx(6.0)
    assert report.watched_since == OFFSET + 40.0


def test_conservation_in_the_report(path: Path) -> None:
    held = report_of(path, WINDOW).conservation
    assert (held.stays, held.at_start) == (2, 1)
    assert held.counted == pytest.approx(19 / 20)
    assert (held.seconds, held.mean_residency, held.per_second) == (21.0, 10.0, pytest.approx(2 / 21))
    assert held.slots_in_use == pytest.approx(20 / 21)


def test_only_an_adapter_or_a_pod(path: Path) -> None:
    assert report_of(path, WINDOW._replace(adapter="z")).window.served == 1
    only = report_of(path, WINDOW._replace(pod="a"))
    assert (only.window.served, only.conservation.counted) == (6, None)
    assert report_of(path, WINDOW._replace(pod="nowhere")).conservation.stays == 0


def test_rows_as_they_are(path: Path) -> None:
    requests = answer(path, View.REQUESTS, asked=WINDOW._replace(most=2)).requests
    assert requests is not None
    assert (len(requests), requests[0].id) == (2, "r9")
    (loaded,) = answer(path, View.LOADS, asked=WINDOW).loads or ()
    (evicted,) = answer(path, View.EVICTIONS, asked=WINDOW).evictions or ()
    assert (loaded.after_stay, requests[0].load) == (evicted.id, loaded.id)
    assert (evicted.evicted_by, evicted.until, evicted.why) == ("y", OFFSET + 90.0, "capacity")


def test_numbers_of_two_runs_do_not_meet(path: Path) -> None:
    loads = answer(path, View.LOADS, asked=Asked(OFFSET, OFFSET + 200.0)).loads or ()
    assert len({row.id for row in loads}) == len(loads) == 2


def test_a_copy_that_cannot_be_written_is_read(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "ledger.sqlite"
    copy.parent.mkdir()
    with query(path) as ask:
        ask("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, copy)
    copy.chmod(0o444)
    copy.parent.chmod(0o555)
    try:
        assert report_of(copy, WINDOW).window.served == 7
    finally:
        copy.parent.chmod(0o755)


@pytest.mark.parametrize(
    ("content", "told"), [(None, "no ledger at"), (b"", "is empty"), (b"nonsense" * 999, "is it a ledger of lorapick")]
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "ledger.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LedgerError, match=told):
        report_of(path, WINDOW)


def test_too_long_a_time_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_REQUESTS", 6)
    with pytest.raises(LedgerError, match="7 requests ended in this time, at most 6"):
        report_of(path, WINDOW)


def test_reading_changes_nothing(path: Path) -> None:
    with closing(open_to_read(path)) as file, pytest.raises(Exception, match="readonly"):
        file.execute("DELETE FROM requests")
