"""The slow twin, and the reason given to a client when nobody can serve."""

import pytest

from lorapick.core.picking.query import Query
from lorapick.core.picking.verdicts import Judged, judge, oracle, verdicts, why_nobody
from lorapick.core.picking.weighted import Weighted
from lorapick.model.picks import Pick
from lorapick.model.pods import SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.settings import PickingSettings
from lorapick.testing.playbook import Playbook

POLICY = Weighted(PickingSettings())


def picked(pod, reason=None):
    return Pick(request_id="r", adapter=None, pod=pod, score=None, tier=None, reason=reason)


def test_judge_skips_freed_rows_and_scores_only_who_may_serve():
    book = Playbook(pods=["a", "b", "c"])
    book.gone("a")
    book.silent("b", SilentWhy.REFUSED)
    judged = judge(Query("r", None), book.fleet.state.columns, now=0.0, policy=POLICY)
    assert [(pod.row, pod.reason) for pod in judged] == [(1, Reason.CIRCUIT_OPEN), (2, None)]
    assert judged[0].score is None and judged[1].score == pytest.approx(0.8)


def test_the_oracle_names_nobody_when_all_are_vetoed():
    book = Playbook(pods=["a"])
    book.drain("a")
    assert oracle(Query("r", None), book.fleet.state.columns, now=0.0, draw=0.0, policy=POLICY) is None


def test_the_mildest_reason_is_given():
    def why(*reasons):
        return why_nobody([Judged(0, reason, None) for reason in reasons])

    assert why(Reason.CIRCUIT_OPEN, Reason.PRESSURE_HARD, Reason.QUEUE_FULL) is Reason.QUEUE_FULL
    assert why(Reason.PRESSURE_CRITICAL, Reason.PRESSURE_HARD, Reason.PRESSURE_SOFT) is Reason.PRESSURE_SOFT
    assert why(Reason.STALE, Reason.DRAINING, Reason.ADAPTER_UNREGISTERED) is Reason.NO_POD
    assert why() is Reason.NO_POD


def test_without_a_winner_the_decisions_reason_is_each_pods():
    book = Playbook(pods=["a", "b"])
    book.drain("b")
    rows = verdicts(Query("r", None), book.fleet.state.columns, now=0.0, policy=POLICY, pick=picked(None, Reason.SHED))
    assert [(row.pod, row.won, row.reason) for row in rows] == [
        ("a", False, Reason.SHED),
        ("b", False, Reason.DRAINING),
    ]


def test_who_scored_no_worse_than_the_winner_lost_a_tie():
    book = Playbook(pods=["a", "b", "c"])
    for pod, use in {"a": 0.5, "b": 0.1, "c": 0.9}.items():
        book.report(pod, gpu_utilization=use)
    rows = verdicts(Query("r", None), book.fleet.state.columns, now=0.0, policy=POLICY, pick=picked("a"))
    assert {row.pod: row.reason for row in rows} == {"a": None, "b": Reason.LOST_TIE, "c": Reason.OUTSCORED}
    assert rows[0].pod == "a", "the winner comes first although it did not score best"
