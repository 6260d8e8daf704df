"""The doctor over simulated fleets: a small war story, whose experiment it names, and its twin that is well."""

import asyncio

import pytest

from lorapick.core.doctor.findings import Urgency
from lorapick.core.picking.policies import POLICIES
from lorapick.live.doctor import Doctor
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.published import PublishedViews
from lorapick.sim.run import Options, run
from lorapick.sim.scenario_text import parse_scenario

pytestmark = pytest.mark.twin  # plays for too long for `make test`

FLEET = """
name: small
title: The war story in small
source: the article, section 08
assumes: ["two pods, 23 minutes, the split at once"]
fleet: {pods: 2, slots: SLOTS, cpu_slots: 16, mode: drain, hardware: h100-llama70b-int4, max_num_seqs: 80, max_queue: 8}
adapters: {count: 6, rank: 16, popularity: {zipf: 1.0}}
arrivals: {rate: 5/s, process: poisson, tokens: {prompt: 200, output: [4, 8]}}
settings: {slo: {latency_p95: 2500ms}}
run: {from: "10:00", to: "END", warm_up: 5m, window: 1m, seed: 3}
policy: weighted
"""
SPLIT = """
phases:
  - {at: 10:16, change: {split: {top: 4, into: "{name}-8f31", share: 0.5}}}
"""


class Simulated:
    """What views ask of a driver, over the fleet of a simulation that is over."""

    def __init__(self, world, *, started_at=0.0):
        self.fleet, self.kernel, self.started_at = world.fleet, world.kernel, started_at

    def now(self):
        return self.kernel.now


def examined(text):
    """The doctor's answer at the end of a run."""
    scenario = parse_scenario(text, file="small.yaml", policies=POLICIES)
    worlds = []
    run(scenario, options=Options(prepare=worlds.append, bounds=False))
    driver = Simulated(worlds[0])
    return asyncio.run(Doctor(PublishedViews(driver), DriverOperations(driver)).answer())


def test_the_war_story_is_told_with_its_split():
    answer = examined(FLEET.replace("SLOTS", "3").replace("END", "10:23") + SPLIT)
    found = {finding.check: finding for finding in answer.diagnosis.findings}
    split = found["split"]
    assert {name.removesuffix("-8f31") for name in split.adapters} == {
        pair.old for shift in answer.picture.shifts for pair in shift.pairs
    }
    assert all(pair.new == f"{pair.old}-8f31" for shift in answer.picture.shifts for pair in shift.pairs)
    assert "active adapters per slot 10/6 = 1.67 > 0.8" in found["churn"].arithmetic
    (times,) = [line for line in found["churn"].arithmetic if line.startswith("a load takes")]
    assert "(the quickest of " in times
    assert found["churn"].remedies[0].action.startswith("end or merge what was split off")


def test_its_twin_that_is_well_has_nothing():
    answer = examined(FLEET.replace("SLOTS", "4").replace("END", "10:12"))
    assert [finding for finding in answer.diagnosis.findings if finding.urgency is not Urgency.INFO] == []
    assert answer.picture.shifts == ()
    assert any("active adapters" in figure for figure in answer.diagnosis.figures)
