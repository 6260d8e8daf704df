"""How long loads take, as seen from outside, and which are under way."""

from lorapick.core.residency.cells import Cell
from lorapick.core.residency.loading import LoadClock, LoadsUnderWay, loads_seen
from lorapick.model.tiers import Tier


def load(clock, *, at, seen):
    """One load from disk that begins at `at` and shows to be over at `seen`."""
    cell = Cell(0.0)
    cell.begun = at
    cell.expected = clock.expect(Tier.DISK, 0.7, now=at)
    clock.seen(cell, now=seen)
    return cell.expected


def test_the_configured_time_stands_until_three_loads_were_seen():
    clock = LoadClock()
    assert [load(clock, at=float(t), seen=t + 0.1) for t in range(4)] == [0.7, 1.7, 2.7, 3.1]


def test_loads_that_were_seen_to_end_are_told_by_tier_with_what_is_known_of_them():
    clocks = [LoadClock(), LoadClock(), LoadClock()]
    assert loads_seen(clocks, Tier.DISK) is None
    for number, seconds in enumerate((0.5, 0.25, 0.3)):
        load(clocks[0], at=10.0 * number, seen=10.0 * number + seconds)
    load(clocks[1], at=0.0, seen=0.95)
    seen = loads_seen(clocks, Tier.DISK)
    assert (seen.loads, round(seen.mean, 6), seen.quickest) == (4, 0.5, 0.5)
    assert loads_seen(clocks, Tier.CPU) is None
    assert loads_seen(clocks[1:], Tier.DISK).quickest is None, "one load is too few"


def test_the_two_least_bounds_are_not_believed():
    clock = LoadClock()
    for number, seconds in enumerate((0.5, 0.001, 0.002, 0.3)):
        load(clock, at=10.0 * number, seen=10.0 * number + seconds)
    assert clock.expect(Tier.DISK, 0.7, now=100.0) == 100.3
    assert clock.expect(Tier.CPU, 0.1, now=100.0) == 100.1, "tiers are apart"


def test_loads_come_one_after_another_and_a_late_bound_is_no_longer_than_configured():
    clock = LoadClock()
    for number in range(3):
        load(clock, at=10.0 * number, seen=10.0 * number + 0.25)
    assert [clock.expect(Tier.DISK, 0.7, now=50.0) for _ in range(3)] == [50.25, 50.5, 50.75]
    assert clock.expect(Tier.DISK, 0.125, now=50.0) == 50.875
    clock.restart()
    assert clock.expect(Tier.DISK, 0.7, now=50.0) == 50.25


def test_what_nobody_saw_begin_teaches_nothing():
    clock, cell = LoadClock(), Cell(0.0)
    for _ in range(3):
        clock.seen(cell, now=1.0)
    assert clock.expect(Tier.DISK, 0.7, now=2.0) == 2.7


def test_who_loads_where():
    loads, cells = LoadsUnderWay(), [Cell(0.0), Cell(0.0)]
    for row, cell in zip((3, 1), cells, strict=True):
        loads.expect(cell, 5.0 + row)
        loads.begin(row, "legal", cell=cell)
    assert (loads.rows("legal"), loads.until(3, "legal"), loads.until(2, "legal")) == ([1, 3], 8.0, None)
    assert loads.next_due == 6.0
    loads.end(1, "legal")
    loads.look_again()
    assert (loads.next_due, [*loads]) == (8.0, [(3, "legal", cells[0])])
    loads.end(3, "legal")
    loads.end(3, "legal")
    loads.look_again()
    assert (loads.next_due, loads.rows("legal")) == (float("inf"), [])
    loads.check()
