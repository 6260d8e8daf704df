"""Errors, knees, peaks, pairs of ranks, and the aims."""

import pytest
from calibration_kit import outcome

from lorapick.plan.calibration.aims import score
from lorapick.plan.calibration.scoring import Verdict, knees, peaks, rank_pairs, spread_of


def by_slots(*points, **values):
    """Runs of one traffic: (slots, measured TTFT, our TTFT)."""
    return [outcome(slots=slots, ttft=ttft, ours={"ttft": ours}, **values) for slots, ttft, ours in points]


def in_overload(*points, **values):
    """Runs of one traffic that is too much: (slots, measured requests/s, ours)."""
    return [
        outcome(slots=slots, served=served, rates=(10.0,), ours={"served": ours}, **values)
        for slots, served, ours in points
    ]


def test_errors_are_relative_to_what_was_measured():
    each = outcome(tpot=0.020, ours={"tpot": 0.022, "served": 0.9, "ttft": 0.1})
    assert each.tpot_error == pytest.approx(0.1)
    assert each.served_error == pytest.approx(-0.1)
    assert each.ttft_error == pytest.approx(1.0)
    silent = outcome(ours={"tpot": None, "ttft": None, "served": 0.0})
    assert (silent.tpot_error, silent.ttft_error, silent.served_error) == (None, None, -1.0)


def test_what_errors_come_to():
    found = spread_of([0.1, None, -0.3, 0.05])
    assert found.runs == 3
    assert (found.mean, found.worst, found.bias, found.middle) == pytest.approx((0.15, 0.3, -0.05, 0.05))
    nothing = spread_of([None])
    assert (nothing.runs, nothing.mean, nothing.worst, nothing.bias, nothing.middle) == (0, None, None, None, None)


def test_a_run_that_was_cut_short_is_compared_if_it_was_steady():
    steady, waiting, growing = outcome(), outcome(ttft_p99=30.0), outcome(rates=(10.0,))
    assert [each.comparable for each in (steady, waiting, growing)] == [True, True, True]
    short = [type(each)(run=each.run, played=100.0, ours=each.ours) for each in (steady, waiting, growing)]
    assert [each.comparable for each in short] == [True, False, False]


def test_a_knee_inside_its_bracket():
    (knee,) = knees(by_slots((8, 20.0, 9.0), (16, 3.0, 1.1), (32, 0.2, 0.9), (64, 0.1, 0.1)))
    assert (knee.over, knee.within, knee.ours, knee.closed) == (16, 32, 32, True)
    assert knee.verdict is Verdict.RIGHT


@pytest.mark.parametrize(("ours_at_16", "ours_at_32", "ours"), [(0.5, 0.2, 16), (3.0, 1.5, 64)])
def test_a_knee_outside_of_its_bracket(ours_at_16, ours_at_32, ours):
    (knee,) = knees(by_slots((64, 0.1, 0.1), (16, 3.0, ours_at_16), (32, 0.2, ours_at_32)))
    assert (knee.within, knee.ours, knee.verdict) == (32, ours, Verdict.WRONG)


def test_knees_with_one_end_only():
    never, always = by_slots((8, 9.0, 9.0), (16, 5.0, 5.0)), by_slots((8, 0.1, 0.2), adapters=4)
    (four, ten) = knees([*never, *always])
    assert (ten.over, ten.within, ten.ours, ten.closed, ten.verdict) == (16, None, None, False, Verdict.RIGHT)
    assert (four.over, four.within, four.ours, four.closed, four.verdict) == (None, 8, 8, False, Verdict.RIGHT)


def test_a_slot_count_that_got_worse_again_above_the_knee_is_not_below_it():
    (knee,) = knees(by_slots((8, 9.0, 9.0), (16, 0.2, 0.2), (128, 40.0, 40.0)))
    assert (knee.over, knee.within, knee.ours) == (8, 16, 16)


def test_nobody_served_is_not_enough():
    (knee,) = knees(by_slots((8, 0.2, None), (16, 0.2, 0.2)))
    assert (knee.within, knee.ours) == (8, 16)


def test_a_peak_at_a_middle_slot_count():
    (peak,) = peaks(in_overload((8, 20.0, 30.0), (16, 30.0, 31.0), (32, 29.0, 33.0), (64, 25.0, 20.0)))
    assert (peak.slots, peak.measured, peak.ours, peak.verdict) == ((8, 16, 32, 64), 16, 32, Verdict.RIGHT)


def test_a_peak_at_an_end():
    wrong = in_overload((8, 20.0, 40.0), (16, 30.0, 31.0), (32, 29.0, 33.0))
    nothing = in_overload((8, 31.0, 31.0), (16, 30.0, 30.0), (32, 29.0, 33.0), adapters=20)
    two = in_overload((8, 31.0, 31.0), (16, 30.0, 30.0), adapters=30)
    light = [outcome(slots=slots, adapters=40, rates=(1e-6,)) for slots in (8, 16, 32)]
    assert [peak.verdict for peak in peaks([*wrong, *nothing, *two, *light])] == [Verdict.WRONG, Verdict.OPEN]


def test_pairs_differ_in_the_rank_only():
    outcomes = [
        outcome(rank=32, ttft=2.0, ours={"ttft": 0.5}),
        outcome(rank=16, ttft=1.0, ours={"ttft": 1.0}),
        outcome(rank=32, slots=16),
        outcome(rank=32, slots=64, adapters=70),
        outcome(rank=16, slots=64, adapters=70, ours={"ttft": None}),
    ]
    first, second = rank_pairs(outcomes)
    assert (first.ranks, first.measured, first.ours) == ((16, 32), 2.0, 0.5)
    assert second.ours is None
    assert rank_pairs([type(each)(run=each.run, played=1.0, ours=each.ours) for each in outcomes]) == ()


def test_aims_that_are_met_and_missed():
    outcomes = [
        *by_slots((8, 9.0, 9.0), (16, 0.2, 0.2), adapters=12),
        *by_slots((8, 9.0, 0.1), (16, 0.2, 0.1), adapters=12, rank=32),
        outcome(tpot=0.010, ours={"tpot": 0.016, "served": 1.04}),
    ]
    reached = {aim.words.split(",")[0]: (aim.reached, aim.met) for aim in score(outcomes).aims}
    assert reached == {
        "mean TPOT error": ("12.0% over 5 runs, worst 60%", False),
        "mean error of requests/s served": ("4.0% over 1 runs, worst 4%", True),
        "slot knee inside the bracket": ("1 of 2", False),
        "slot knee where the table has one end only": ("1 of 1", True),
        "overload throughput peaking at a middle slot count": (None, None),
        "a higher largest rank raising TTFT": ("0 of 2", False),
    }


def test_scores_by_group_and_by_band():
    found = score([outcome(model="a", ttft=20.0), outcome(model="b", served=0.1), outcome(model="b", slots=16)])
    assert [each.group[0] for each in found.groups] == ["a", "b"]
    assert [(each.served.runs, each.served_overloaded.runs) for each in found.groups] == [(1, 0), (1, 1)]
    assert [(band.least, band.ttft.runs) for band in found.bands] == [(0.0, 2), (1.0, 0), (10.0, 1), (100.0, 0)]
    assert found.bands[-1].below is None


def test_nothing_to_score():
    found = score([])
    assert found.compared == 0 and all(aim.met is None for aim in found.aims)
