"""Merged beside added: the weights that a re-merge touches, and where both lose the same."""

import pytest

from lorapick.plan.bill.merged import DEFAULTS, lost_added, lost_merged, merge_seconds, merged_report
from lorapick.plan.work import Assumptions
from lorapick.pod.values import MergePolicy

REPORT = merged_report({})
ASSUMED = Assumptions(DEFAULTS, {})


def test_a_merge_touches_all_the_weights():
    assert REPORT["bytes that a re-merge touches"].value == 140_000_000_000
    assert merge_seconds(ASSUMED) == pytest.approx(MergePolicy().seconds)
    assert REPORT["one change of adapter"].value == 2 * merge_seconds(ASSUMED)
    assert merge_seconds(Assumptions(DEFAULTS, {"gpus": 4, "passes": 2})) == pytest.approx(merge_seconds(ASSUMED) / 2)


@pytest.mark.parametrize(("name", "shown"), [("least-overhead", "3.0 %"), ("most-overhead", "5.0 %")])
def test_both_lose_the_same_where_they_cross(name, shown):
    every = REPORT[f"merging pays above, at {shown}"].value
    assert lost_merged(ASSUMED, every) == pytest.approx(lost_added(ASSUMED[name]))


def test_mixed_traffic_is_no_place_for_merging():
    assert REPORT["GPU time they need"].value > 10 * REPORT["GPU time that adding takes, at 5.0 %"].value


def test_one_adapter_never_changes():
    assert merged_report({"adapters": 1})["changes in mixed traffic"].value == 0


@pytest.mark.parametrize("name", ["bandwidth", "least-overhead", "gpus", "adapters"])
def test_zeros_are_refused_here(name):
    with pytest.raises(ValueError, match=name):
        merged_report({name: 0})
