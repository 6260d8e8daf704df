"""The choice itself: winner, ties, session, fallbacks; the two ways are compared in tests/properties."""

import math

import pytest

from lorapick.core.picking.pick import LOOP_ROWS, NOBODY, pick, pick_by_columns, pick_by_loop
from lorapick.core.picking.query import Query
from lorapick.core.picking.round_robin import RoundRobin
from lorapick.core.picking.weighted import Weighted
from lorapick.model.settings import PickingSettings
from lorapick.testing.playbook import Playbook

POLICY = Weighted(PickingSettings())


def fleet(*gpu):
    """One pod per utilisation."""
    book = Playbook(pods=[f"p{index:02d}" for index in range(len(gpu))])
    for index, use in enumerate(gpu):
        book.report(f"p{index:02d}", gpu_utilization=use)
    return book.fleet.state.columns


WAYS = [pick_by_loop, pick_by_columns]


@pytest.mark.parametrize("way", WAYS)
def test_the_best_score_wins_and_the_next_best_are_fallbacks(way):
    columns = fleet(0.5, 0.1, 0.9, 0.3)
    choice = way(Query("r", None), columns, now=0.0, draw=0.9, policy=POLICY, fallbacks=2)
    assert (choice.row, choice.fallbacks) == (1, (3, 0))
    assert choice.score == POLICY.score(Query("r", None), columns, row=1, rows=[0, 1, 2, 3])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("draw", "row"), [(0.0, 0), (0.4, 1), (0.999, 2)])
def test_the_draw_chooses_among_equals_in_row_order(way, draw, row):
    columns = fleet(0.1, 0.1, 0.1, 0.7)
    choice = way(Query("r", None), columns, now=0.0, draw=draw, policy=POLICY, fallbacks=3)
    assert choice.row == row
    assert choice.fallbacks == (*(other for other in (0, 1, 2) if other != row), 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_session_beats_the_score(way):
    query = Query("r", None)
    query.session_row = 2
    choice = way(query, fleet(0.5, 0.1, 0.9), now=0.0, draw=0.0, policy=POLICY, fallbacks=2)
    assert (choice.row, choice.fallbacks) == (2, (1, 0))
    assert choice.score == pytest.approx(0.5 + 0.15 + 0.15 * 0.1)


@pytest.mark.parametrize("way", WAYS)
def test_nobody(way):
    columns = fleet(0.5)
    choice = way(Query("r", None), columns, now=99.0, draw=0.0, policy=POLICY, fallbacks=2)
    assert choice is NOBODY
    assert (choice.row, choice.fallbacks) == (-1, ()) and math.isnan(choice.score)


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_fleet(way):
    columns = Playbook().fleet.state.columns
    assert way(Query("r", None), columns, now=0.0, draw=0.0, policy=POLICY, fallbacks=2) is NOBODY
    assert pick(Query("r", None), columns, now=0.0, draw=0.0, policy=RoundRobin(PickingSettings())) is NOBODY


@pytest.mark.parametrize("way", WAYS)
def test_no_fallbacks_wanted_or_none_left(way):
    columns = fleet(0.5, 0.1)
    assert way(Query("r", None), columns, now=0.0, draw=0.0, policy=POLICY, fallbacks=0).fallbacks == ()
    assert way(Query("r", None), columns, now=0.0, draw=0.0, policy=POLICY, fallbacks=9).fallbacks == (0,)


class NotANumber(Weighted):
    """A policy that is wrong about one pod."""

    def score_rows(self, query, view, *, rows):
        return [math.nan, *super().score_rows(query, view, rows=rows)[1:]]

    def scores(self, query, columns, *, may):
        scores = super().scores(query, columns, may=may)
        scores[0] = math.nan
        return scores


@pytest.mark.parametrize("way", WAYS)
def test_a_score_is_a_number(way):
    with pytest.raises(ValueError, match="policy 'weighted' scored some pod NaN"):
        way(Query("r", None), fleet(0.1, 0.2), now=0.0, draw=0.0, policy=NotANumber(PickingSettings()), fallbacks=2)


def test_small_fleets_are_looped_and_large_ones_are_not():
    """Either way the answer is the same; this only walks both doors."""
    for rows in (LOOP_ROWS, LOOP_ROWS + 1):
        columns = fleet(*[0.5] * (rows - 1), 0.1)
        assert pick(Query("r", None), columns, now=0.0, draw=0.5, policy=POLICY).row == rows - 1
    with pytest.raises(AssertionError):
        pick(Query("r", None), columns, now=0.0, draw=1.0, policy=POLICY)
