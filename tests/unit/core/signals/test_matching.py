"""One comparison of two stretches: pairs, evidence, what is charged for the search."""

from math import comb, log

import numpy as np
import pytest

from lorapick.core.signals.matching import Stretch, _charge, weigh

BEFORE = np.array([4000.0, 2000.0, 1000.0, 500.0, 250.0])


def stretch(after, new, *, before=BEFORE, just_before=None):
    before = np.asarray(before, dtype=float)
    return Stretch(
        before=before,
        after=np.asarray(after, dtype=float),
        rest=(100.0, 100.0),
        new=np.asarray(new, dtype=float),
        ratio=1.0,
        dispersion=1.0,
        drift=0.01,
        just_before=float(before.sum()) + 100.0 if just_before is None else just_before,
        level_error=0.1,
    )


def test_exact_halves_are_paired_in_order():
    halved = stretch([2000, 1000, 1000, 500, 250], [2000, 1000])
    weighed = weigh(halved, least=6.0)
    (found,) = weighed.found
    assert found.pairs == ((0, 0), (1, 1))
    assert found.share == pytest.approx(0.5)
    assert weighed.explained == pytest.approx(1.0)
    assert weighed.evidence > 60


def test_a_pair_may_be_anywhere():
    (found,) = weigh(stretch([4000, 2000, 500, 500, 250], [500]), least=6.0).found
    assert found.pairs == ((2, 0),)


def test_two_shares_are_two_findings():
    weighed = weigh(stretch([2000, 1000, 800, 400, 250], [2000, 1000, 200, 100]), least=6.0)
    assert sorted(pair for found in weighed.found for pair in found.pairs) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_traffic_on_top_has_no_pairs():
    weighed = weigh(stretch(BEFORE, [2000, 1000]), least=6.0)
    assert weighed.found == ()
    assert weighed.best < 0


def test_a_split_of_all_is_judged_by_the_level():
    halves = weigh(stretch(BEFORE / 2, BEFORE / 2), least=6.0)
    assert len(halves.found[0].pairs) == 5
    # The same counts, where all traffic was half as much right before: new traffic while the old ebbed.
    assert weigh(stretch(BEFORE / 2, BEFORE / 2, just_before=3900.0), least=6.0).found == ()


def test_what_is_lost_by_whom_nobody_took_from_stays_unexplained():
    weighed = weigh(stretch([2000, 1000, 100, 50, 25], [2000, 1000]), least=6.0)
    assert weighed.explained < 0.6 or not weighed.found


def test_the_search_is_charged_for_its_choices():
    run = [(each, each) for each in range(10)]
    scattered = [(0, 0), (2, 1), (4, 2)]
    assert _charge(200, run) == pytest.approx(log(2) + log(200) + log(comb(201, 2)))
    assert _charge(200, run) < _charge(200, [(20 * each, each) for each in range(10)])
    assert _charge(5, scattered) <= log(2) + log(comb(5, 3))
