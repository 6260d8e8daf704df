"""Clocks that are set: nothing goes because of one that is wrong for a while."""

from pathlib import Path

import pytest
from live_ledger_kit import OFFSET, Clock, query, request, rows, stay, write

from lorapick.core.ledger.report import Asked
from lorapick.live.ledger.reader import report_of
from lorapick.model.ledger import OccupancyRow

DAY = 86_400.0


def test_a_clock_that_is_wrong_for_a_while_removes_nothing(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.sqlite", Clock()
    made = write(path, [request(number, 99.0) for number in range(20)], clock)
    for offset in (30 * DAY, 0.0):
        clock.offset = OFFSET + offset
        for _ in range(10):
            clock.now += 5.0
            made.turn()
    made.close()
    assert rows(path, "SELECT count(*) FROM requests") == [(20,)]
    for offset in (30 * DAY, 0.0):
        clock.offset = OFFSET + offset
        write(path, [request(99, clock.now)], clock).close()
    assert rows(path, "SELECT count(*) FROM requests") == [(22,)]


def test_a_clock_that_stays_is_trusted_after_a_day(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.sqlite", Clock()
    made = write(path, [request(1, 99.0)], clock)
    clock.offset += 30 * DAY
    for hours, left in ((1.0, 1), (23.0, 1), (1.0, 0)):
        clock.now += hours * 3600.0 - 10.0
        made.turn()
        clock.now += 10.0
        made.turn()
        assert rows(path, "SELECT count(*) FROM requests") == [(left,)]


def test_a_clock_that_is_set_back_takes_the_begin_with_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.sqlite", Clock()
    made = write(path, [stay(1), OccupancyRow(t=100.0, used=1, slot_seconds=0.0)], clock)
    clock.offset -= 3600.0
    for _ in range(2):
        clock.now += 10.0
        made.put([OccupancyRow(t=clock.now, used=1, slot_seconds=clock.now - 100.0)])
        made.turn()
    found = rows(path, "SELECT started, seen FROM runs")
    assert found == [(clock.wall() - 10.0, clock.wall())]
    with query(path) as ask:  # as versions before wrote it
        ask("UPDATE runs SET started = seen + 3400")
        ask("COMMIT")
    held = report_of(path, Asked(clock.wall() - 3600.0, clock.wall() + 3600.0)).conservation
    assert held.seconds >= 0.0
    assert held.counted == pytest.approx(1.0)
