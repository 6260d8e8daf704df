"""Simulated runs through the shipped rules with the real promtool: which alert comes when, none where all is well."""

import pytest

from lorapick.model.units import Seconds
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.scenario import shortened
from lorapick.testing.rules_replay import Fired, replay

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
BEGAN = (10 * 60 + 15) * 60.0
"""Time of day at which the experiment does."""


def firsts(fired: list[Fired]) -> dict[str, Seconds]:
    """When each alert first came, of whatever pod."""
    first: dict[str, Seconds] = {}
    for each in fired:
        first.setdefault(each.alert, each.first)
    return first


def test_the_war_story_is_told_from_its_first_minutes_on_and_latency_comes_last(tmp_path):
    scenario = load_scenario("war-story-small")
    result = replay(scenario, every=15.0, step=60.0, directory=tmp_path)
    began = BEGAN - scenario.run.begin
    rules, own = firsts(result.fired), firsts(result.own)
    theirs = (
        "LorapickActiveAdapters",
        "LorapickNewAdapters",
        "LorapickResidency",
        "LorapickSwapRate",
        "LorapickLatency",
    )
    ours = ("active_adapters", "new_adapters", "residency", "swap_rate", "latency")
    for first, names in ((rules, theirs), (own, ours)):
        active, new, residency, swaps, latency = names
        assert min(first.values()) > began, "nobody cries before the experiment begins"
        assert max(first[active], first[new]) <= began + 5 * 60
        # Half a swap per second is 8 s of residency at 4 slots, so residency tells it before.
        assert max(first[active], first[new]) < first[residency] < first[swaps] < first[latency]


def test_a_day_with_a_restart_and_a_new_customer_raises_nothing(tmp_path):
    scenario = shortened(load_scenario("healthy-week"), 86_400.0)
    result = replay(scenario, every=60.0, step=60.0, directory=tmp_path)
    assert result.fired == []
    assert result.own == []
