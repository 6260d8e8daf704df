"""Splits, replacements, new traffic on top and traffic of every day: what each is called, and when.

Names are random; who was split from whom is known from the place in the course.
"""

import numpy as np
import pytest

from lorapick.core.signals.shifts import find
from lorapick.core.signals.traffic import TrafficTable
from lorapick.model.shifts import ShiftKind
from lorapick.testing.courses import Course, added, split, steady, zipf

FLEET = zipf(40)
AT = 72
SPLIT, REPLACED, ADDED, UNCLEAR = ShiftKind.SPLIT, ShiftKind.REPLACED, ShiftKind.ADDED, ShiftKind.UNCLEAR


def places(course, shift):
    """(old, new) of the pairs, by their places in the course."""
    number = {name: place for place, name in enumerate(course.names)}
    return sorted((number[pair.old], number[pair.new]) for pair in shift.pairs)


def kinds(course, minute):
    return [shift.kind for shift in find(course.table(minute))]


def slow_burn():
    """The war story: from 10:15 (minute 75) the top 20 give ever more to a twin each, one half after 4 h 45 min."""
    rates = split(steady(400, FLEET), range(20), at=75, share=0.5, over=285)
    rates[75:] *= 1.05
    return rates


# -- experiments


@pytest.mark.parametrize("seed", range(3))
def test_the_slow_burn_is_named_within_80_minutes_and_stays_named(seed):
    course = Course(slow_burn(), seed=seed)
    for minute in (155, 390):
        (found,) = find(course.table(minute))
        assert found.kind is SPLIT
        assert found.since == pytest.approx(75 * 60, abs=180)
        assert len(found.new) == len(found.pairs) == 20
        right = sum((old, old + 40) in places(course, found) for old in range(20))
        assert right >= 14  # neighbours in the tail are alike
        assert found.lost == pytest.approx(found.share, rel=0.25)
    assert found.taken == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_sudden_split_is_named_within_4_minutes_with_its_pairs(seed):
    course = Course(split(steady(80, FLEET), range(20), at=AT, share=0.5), seed=seed)
    (found,) = find(course.table(AT + 4))
    assert (found.kind, len(found.pairs)) == (SPLIT, 20)
    assert set(places(course, found)) >= {(old, old + 40) for old in range(6)}
    assert found.taken == pytest.approx(0.5, abs=0.05)


def test_a_split_of_everything_is_seen_by_the_traffic_that_stays_the_same():
    course = Course(split(steady(100, FLEET), range(40), at=AT, share=0.5), seed=1)
    assert UNCLEAR in kinds(course, AT + 2)
    (found,) = find(course.table(AT + 10))
    assert (found.kind, len(found.pairs)) == (SPLIT, 40)


def test_two_experiments_at_once_are_told_apart_from_each_other_and_from_a_tenant():
    rates = split(split(steady(110, FLEET), range(10), at=AT, share=0.5), range(10, 20), at=AT, share=0.2)
    course = Course(rates, seed=3)
    (found,) = find(course.table(105))
    assert found.kind is SPLIT
    assert set(places(course, found)) >= {(old, old + 40) for old in range(8)}
    tenant = Course(added(split(steady(110, FLEET), range(10), at=AT, share=0.5), zipf(5) * 4, at=AT), seed=3)
    (found,) = find(tenant.table(105))
    assert (found.kind, len(found.new)) == (SPLIT, 15)
    assert set(places(tenant, found)) >= {(old, old + 40) for old in range(10)}


def test_an_experiment_after_another_one_is_found_too():
    rates = split(split(steady(180, FLEET), range(10), at=AT, share=0.5), range(10, 20), at=132, share=0.3)
    first, second = find(Course(rates, seed=1).table(170))
    assert (first.kind, second.kind) == (SPLIT, SPLIT)
    assert (len(first.pairs), len(second.pairs)) == (10, 10)
    assert (first.taken, second.taken) == (pytest.approx(0.5, abs=0.03), pytest.approx(0.3, abs=0.05))


def test_an_experiment_with_three_variants_is_found():
    rates = split(split(steady(120, FLEET), range(10), at=AT, share=1 / 3), range(10), at=AT, share=0.5)
    (found,) = find(Course(rates, seed=0).table(90))
    assert (found.kind, len(found.new)) == (SPLIT, 20)
    assert len(found.pairs) > 10


def test_what_is_over_is_told_no_more():
    rates = split(steady(200, FLEET), range(20), at=AT, share=0.5)
    rates[120:, :20] += rates[120:, 40:]
    rates[120:, 40:] = 0
    course = Course(rates, seed=2)
    assert kinds(course, 115) == [SPLIT]
    assert kinds(course, 190) == []


# -- rollouts


def test_a_new_name_for_half_of_the_fleet_is_a_replacement():
    course = Course(split(steady(100, FLEET), range(0, 40, 2), at=AT, share=1.0), seed=0)
    for minute in (AT + 4, 95):
        (found,) = find(course.table(minute))
        assert (found.kind, len(found.pairs)) == (REPLACED, 20)


@pytest.mark.parametrize("step", [3, 10, 20])
def test_one_version_after_another_is_a_replacement_of_each(step):
    rates = steady(240, FLEET)
    for number in range(8):
        rates = split(rates, [number], at=AT + step * number, share=1.0)
    course = Course(rates, seed=0)
    for minute in (AT + 6, 120, 235):
        found = find(course.table(minute))
        assert found
        assert {shift.kind for shift in found} == {REPLACED}
    assert sum(len(shift.pairs) for shift in found) == 8


# -- what is none


@pytest.mark.parametrize("new", [[5.0], zipf(20) * 15, FLEET * 25], ids=["one", "twenty", "twin"])
@pytest.mark.parametrize("over", [0, 60])
def test_a_new_tenant_is_new_traffic(new, over):
    course = Course(added(steady(200, FLEET), new, at=AT, over=over), seed=4)
    for minute in (75, 80, 100):
        assert not {*kinds(course, minute)} & {SPLIT, REPLACED}
    assert kinds(course, 195) == [ADDED]


def test_a_new_tenant_while_all_other_traffic_ebbs_is_no_split():
    ebb = np.linspace(1.0, 0.4, 300)[:, None]
    course = Course(added(steady(300, FLEET) * ebb, zipf(30) * 10, at=AT, over=60), seed=5)
    for minute in (80, 120, 180, 290):
        assert not {*kinds(course, minute)} & {SPLIT, REPLACED}


def test_the_tail_of_every_traffic_is_nothing():
    course = Course(steady(300, zipf(3000, 1.5)), seed=6)
    table = course.table(295)
    late = sum(first > 3600 for first in table.first_seen.values())
    assert late > 20
    assert find(table) == ()


def test_a_day_with_its_ebb_is_nothing():
    minutes = np.arange(400)[:, None]
    phases = np.random.default_rng(1).uniform(0, 2 * np.pi, 200)
    for phase in (phases, phases[:1]):
        day = 1 + 0.6 * np.sin(2 * np.pi * minutes / 1440 + phase[None, :])
        assert kinds(Course(steady(400, zipf(200)) * day, seed=7), 395) == []


@pytest.mark.parametrize(("leaves", "comes"), [(100, 130), (100, 106), (106, 100), (130, 100)])
def test_a_customer_who_leaves_and_one_who_comes_at_another_time_are_no_pair(leaves, comes):
    rates = steady(200, FLEET)
    rates[leaves:, 3] *= 0.2
    course = Course(added(rates, [0.8 * rates[0, 3]], at=comes), seed=8)
    assert not {*kinds(course, 195)} & {SPLIT, REPLACED}


# -- too little


def test_without_a_time_before_nothing_is_new():
    assert find(TrafficTable(0.0)) == ()
    course = Course(split(steady(30, FLEET), range(20), at=10, share=0.5), seed=1)
    assert kinds(course, 25) == []


def test_a_table_of_silence_is_no_error():
    rates = steady(60, FLEET)
    rates[:40] = 0.0
    rates[40:, :3] = 1.0
    for minute in (1, 20, 41, 60):
        find(Course(rates, seed=1).table(minute))
