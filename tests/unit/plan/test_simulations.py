"""Jobs and families."""

import pytest

from lorapick.plan.scenario_files import load_scenario
from lorapick.plan.simulations import Job, capacities, jobs_for, play_all, points
from lorapick.sim.report import encoded
from lorapick.sim.run import run


@pytest.fixture(scope="module")
def tiny():
    return load_scenario(
        "code-4", overrides={"run": "{for: 6s, warm_up: 1s}", "expect": "[]", "fleet.pods": "1", "arrivals.rate": "3/s"}
    )


def test_every_policy_with_every_seed(tiny):
    jobs = jobs_for(tiny, policies=("weighted", "random"), seeds=(3, 4))
    assert [(job.policy, job.seed) for job in jobs] == [("weighted", 3), ("weighted", 4), ("random", 3), ("random", 4)]


def test_other_processes_give_the_same_bytes(tiny):
    jobs = jobs_for(tiny, policies=("weighted",), seeds=(1, 2))
    here = [encoded(run(tiny, policy="weighted", seed=seed)) for seed in (1, 2)]
    assert [encoded(report) for report in play_all(jobs, workers=2)] == here


def test_points_of_a_family():
    assert [*points({"a": ("1", "2"), "b": ("x", "y")})] == [
        {"a": "1", "b": "x"}, {"a": "1", "b": "y"}, {"a": "2", "b": "x"}, {"a": "2", "b": "y"},
    ]  # fmt: skip


def test_capacities_come_in_the_order_of_the_jobs(tiny):
    told = []
    jobs = [Job(scenario=tiny, policy=policy, seed=1) for policy in ("round-robin", "weighted")]
    found = capacities(jobs, 0.8, workers=1, progress=told.append)
    assert [each.policy for each in found] == ["round-robin", "weighted"]
    assert all(each.rate is not None and each.tried[0].factor == 1.0 for each in found)
    assert told == sorted(told)
