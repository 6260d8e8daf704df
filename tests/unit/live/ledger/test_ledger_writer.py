"""The file: whole after a kill, bounded, and never the picker's trouble."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from live_ledger_kit import OFFSET, Clock, load, query, request, rows, stay, write, writer

from lorapick.live.ledger import writer as module
from lorapick.live.ledger.file import LedgerError, open_to_read, open_to_write
from lorapick.live.ledger.schema import VERSION
from lorapick.live.ledger.trimming import used
from lorapick.model.ledger import MarkKind, MarkRow


def test_rows_have_the_time_of_day(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.sqlite"
    made = write(path, [request(1, 99.0), load(1), MarkRow(t=90.0, kind=MarkKind.PIN, subject="x", facts={"n": 1.0})])
    assert rows(path, "SELECT id, arrived, ended, dispatched, outcome, hit FROM requests") == [
        ("r1", OFFSET + 98.0, OFFSET + 99.0, OFFSET + 98.0, "served", 1)
    ]
    assert rows(path, "SELECT t, kind, facts FROM marks") == [(OFFSET + 90.0, "pin", '{"n":1.0}')]
    assert rows(path, "SELECT begun, over FROM loads") == [(OFFSET + 50.0, None)]
    assert (made.written, made.faults()) == (3, 0)


def test_a_row_told_again_is_the_same_row(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    write(path, [load(1), stay(2), load(1, over=60.0, result="done"), stay(2, until=70.0, why="capacity")])
    assert rows(path, "SELECT id, over FROM loads") == [(1, OFFSET + 60.0)]
    assert rows(path, "SELECT id, why FROM residencies") == [(2, "capacity")]


def test_a_clock_that_is_set_is_followed(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "ledger.sqlite"
    made = write(path, [request(1, 99.0)], clock)
    clock.offset += 0.05
    made.put([request(2, 99.0)])
    made.turn()
    clock.offset += 3600.0
    made.put([request(3, 99.0)])
    made.turn()
    ends = [ended - OFFSET - 99.0 for (ended,) in rows(path, "SELECT ended FROM requests")]
    assert ends == pytest.approx([0.0, 0.0, 3600.05])


def test_what_the_run_before_had_open_ends_unknown_when_it_was_last_seen(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.sqlite", Clock(100.0)
    before = write(path, [load(1), stay(2), stay(3, until=60.0, why="restart")], clock)
    before.close()
    after = write(path, [stay(2, since=500.0)], Clock(501.0))
    assert rows(path, "SELECT result, over FROM loads") == [("unknown", OFFSET + 100.0)]
    assert rows(path, "SELECT run, id, why, until FROM residencies ORDER BY run, id") == [
        (1, 2, "unknown", OFFSET + 100.0),
        (1, 3, "restart", OFFSET + 60.0),
        (2, 2, None, None),
    ]
    assert after.faults() == 0


def test_the_oldest_go_when_the_file_is_full(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.sqlite", Clock(0.0)
    made = writer(path, clock, max_size=2**20)
    for number in range(12_000):
        clock.now = float(number)
        made.put([request(number, clock.now, model="m" * 40)])
        if number % 100 == 0:
            made.turn()
    made.turn()
    assert made.faults() == 0
    assert path.stat().st_size <= 2**20
    (first, last, count) = rows(path, "SELECT min(ended), max(ended), count(*) FROM requests")[0]
    assert last == OFFSET + 11_999
    assert 1000 < count == last - first + 1
    assert path.with_name("ledger.sqlite-wal").stat().st_size < 10 * 2**20


def test_the_aged_go_and_give_their_room_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.sqlite", Clock(1000.0)
    made = writer(path, clock, keep=60.0)
    made.put([*(request(number, 1000.0, model="m" * 500) for number in range(9000)), load(1, over=900.0), stay(2)])
    made.turn()
    full = path.stat().st_size
    for _ in range(40):
        clock.now += 10.0
        made.turn()
    assert rows(path, "SELECT (SELECT count(*) FROM requests), (SELECT count(*) FROM loads)") == [(0, 0)]
    assert rows(path, "SELECT count(*) FROM residencies") == [(1,)]
    made.close()
    with closing(open_to_read(path)) as file:
        assert used(file) < full / 4


def test_a_full_disk_is_no_trouble_and_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite's own bound on pages stands in for the disk: the same error."""
    path = tmp_path / "ledger.sqlite"
    made = write(path, [request(1, 99.0)])
    assert made._file is not None
    made._file.execute("PRAGMA max_page_count = 1")
    made.put([request(number, 99.0, model="m" * 3000) for number in range(50)])
    made.turn()
    assert (made.failures, made.lost) == (1, 0)
    assert "full" in caplog.text
    made.turn()
    assert rows(path, "SELECT count(*) FROM requests") == [(51,)]


def test_a_locked_file_is_waited_for_and_then_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "ledger.sqlite"
    made = write(path, [request(1, 99.0)])
    made._file.execute("PRAGMA busy_timeout = 10")  # type: ignore[union-attr]
    with query(path) as ask:
        ask("BEGIN IMMEDIATE")
        made.put([request(2, 99.0)])
        made.turn()
        assert made.failures == 1
        ask("ROLLBACK")
    made.turn()
    assert rows(path, "SELECT count(*) FROM requests") == [(2,)]
    assert [record.levelname for record in caplog.records if record.name == module.__name__] == ["ERROR"]


def test_a_fault_of_ours_does_not_end_the_thread(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "ledger.sqlite"
    made = writer(path, Clock(), write_every=0.05)
    made.put(["no row at all"])  # type: ignore[list-item]
    made.turn()
    made.put(["no row at all"])  # type: ignore[list-item]
    made.turn()
    assert (made.failures, made.lost) == (2, 2)
    made.start()
    made.put([request(1, 99.0)])
    made.close()
    assert rows(path, "SELECT (SELECT count(*) FROM requests), lost FROM runs") == [(1, 2)]
    assert caplog.text.count("a fault of ours") == 1


def test_a_file_of_the_first_format_is_brought_up_to_date_by_who_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    write(path, [request(1, 99.0)]).close()
    with query(path) as ask:
        for name in ("prefilled_by", "arm", "would_pod", "would_be"):
            ask(f"ALTER TABLE requests DROP COLUMN {name}")
        ask("PRAGMA user_version = 1")
    with pytest.raises(LedgerError, match="has the old format 1"):
        open_to_read(path)
    write(path, [msgspec.structs.replace(request(2, 99.0), prefilled_by="p")]).close()
    assert rows(path, "SELECT prefilled_by FROM requests ORDER BY id") == [(None,), ("p",)]
    open_to_read(path).close()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (f"PRAGMA user_version = {VERSION + 1}", f"has format {VERSION + 1}"),
        ("PRAGMA user_version = 0", "has the old format 0"),
        ("PRAGMA application_id = 7", "another program"),
    ],
)
def test_a_file_that_is_not_ours_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: str, told: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    write(path, [request(1, 99.0)]).close()
    with query(path) as ask:
        ask(spoil)
    made = write(path, [request(2, 99.0)])
    assert made.failures == 1
    assert told in caplog.text
    assert rows(path, "SELECT count(*) FROM requests") == [(1,)]
    with pytest.raises(LedgerError, match=told):
        open_to_read(path)


def test_a_file_has_one_writer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "ledger.sqlite"
    first = write(path, [request(1, 99.0)])
    second = write(path, [request(2, 99.0)])
    assert (first.failures, second.failures) == (0, 1)
    assert "another picker writes it" in caplog.text


def test_a_file_that_is_deleted_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    made = write(path, [request(1, 99.0), stay(2)])
    path.unlink()
    made.put([request(3, 99.0), stay(2, until=99.0, why="capacity")])
    made.turn()
    assert rows(path, "SELECT id FROM requests") == [("r3",)]
    assert rows(path, "SELECT id, why FROM residencies") == [(2, "capacity")]
    assert made.faults() == 0


def test_what_finds_the_queue_full_is_lost_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_QUEUED", 2)
    made = writer(tmp_path / "ledger.sqlite", Clock())
    for number in range(5):
        made.put([request(number, 99.0)])
    assert (made.lost, made.faults()) == (3, 3)
    made.turn()
    assert rows(tmp_path / "ledger.sqlite", "SELECT lost FROM runs") == [(3,)]


def test_one_bad_row_does_not_spoil_the_others(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    made = write(path, [request(1, 99.0), request(2, 99.0, model="\ud800"), request(3, 99.0, output_tokens=2**70)])
    assert rows(path, "SELECT id FROM requests") == [("r1",)]
    assert (made.lost, made.failures) == (2, 0)


def test_a_place_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    made = write(tmp_path / "file" / "ledger.sqlite", [request(1, 99.0)])
    assert made.failures == 1
    assert "requests are served" in caplog.text


def test_the_thread_writes_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    made = writer(path, Clock(), write_every=0.05)
    made.start()
    made.put([request(1, 99.0)])
    made.close()
    assert rows(path, "SELECT count(*) FROM requests") == [(1,)]
    assert "ledger" not in [thread.name for thread in threading.enumerate()]


CHILD = """
import sys, time
from pathlib import Path
sys.path.insert(0, {kit!r})
from live_ledger_kit import request
from lorapick.live.ledger.writer import LedgerWriter
from lorapick.model.settings import LedgerSettings
made = LedgerWriter(Path({path!r}), LedgerSettings(write_every=0.05), clock=time.monotonic)
made.start()
number = 0
while True:
    made.put([request(number, time.monotonic()) for number in range(number, number + 20)])
    number += 20
    time.sleep(0.001)
    if made.written > 200:
        print(made.written, flush=True)
"""


def test_a_picker_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    script = CHILD.format(kit=str(Path(__file__).parent), path=str(path))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        written = int(child.stdout.readline())
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    ids = [int(name[1:]) for (name,) in rows(path, "SELECT id FROM requests ORDER BY rowid")]
    assert len(ids) >= written
    assert ids == [*range(len(ids))]
    after = write(path, [request(0, time.monotonic())], Clock(time.monotonic()))
    assert after.faults() == 0
    assert rows(path, "SELECT count(*) FROM runs") == [(2,)]


def test_a_bound_is_sqlites_own(tmp_path: Path) -> None:
    with closing(open_to_write(tmp_path / "ledger.sqlite", max_size=2**20)) as file:
        assert file.execute("PRAGMA max_page_count").fetchone() == (256,)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert file.execute("PRAGMA auto_vacuum").fetchone() == (2,)
