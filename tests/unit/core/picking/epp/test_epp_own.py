"""Scorers of lorapick's own in profiles."""

import pytest

from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook
from lorapick.testing.profiles import book_with, profile, scores


def test_residency():
    fleet = book_with(profile("lorapick-residency-scorer"), pods="abc")
    fleet.use("legal", "a")
    fleet.arrive("foo", id="there", subset=("b",))
    fleet.start("there")
    assert scores(fleet) == {"a": 0.8, "b": 0.3, "c": 0.3}
    assert scores(fleet, "foo")["b"] == 1.0
    assert scores(fleet, "base") == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_the_weighted_sum_is_the_policys():
    book, plain = book_with(profile("lorapick-weighted-scorer"), pods="ab"), Playbook(pods="ab", adapters=["legal"])
    for each in (book, plain):
        each.report("a", gpu_utilization=0.3)
        each.use("legal", "a")
        each.arrive("legal", id="asked")
    assert book.verdict("asked", "a").score == pytest.approx(plain.verdict("asked", "a").score, rel=0.1)
    assert book.effects[0].target == plain.effects[0].target


def test_the_least_seconds():
    fleet = book_with(profile("lorapick-cost-scorer"), pods="abc")
    assert scores(fleet, "base") == {"a": 1.0, "b": 1.0, "c": 1.0}
    fleet.use("legal", "b")
    assert scores(fleet) == {"a": 0.0, "b": 1.0, "c": 0.0}


def test_admission_is_aware_only_with_one_of_them():
    for scorer, aware in (("lorapick-residency-scorer", True), ("lora-affinity-scorer", False)):
        fleet = book_with(profile(scorer), pods="ab")
        assert fleet.fleet.state.policy.coalesces is aware
        assert fleet.fleet.state.gates.on is aware
        fleet.arrive("legal", id="first", subset=("b",))
        fleet.arrive("legal", id="second")
        assert (fleet.effects[0].target.pod == "b") or not aware, "requests follow the load under way"


def test_a_load_is_not_followed_to_where_a_filter_forbids():
    fleet = book_with(profile("lorapick-residency-scorer", filters=["prefill-filter"]), pods="ab")
    assert fleet.arrive("legal") == ["r1 refused: 503 no_pod"]
    assert Settings(picking=PickingSettings()).picking.profiles is None
