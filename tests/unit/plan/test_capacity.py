"""The search for the highest bearable rate, with the runs replaced by a rule."""

import pytest

from lorapick.plan import capacity as searching
from lorapick.plan.capacity import Capacity, Tried, beside, capacity, scaled
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.scenario import ExpectedCapacity
from lorapick.sim.workload.changes import Scale


@pytest.fixture
def limit(monkeypatch):
    """Factors up to `limit[0]` keep the limit."""
    edge = [1.0]

    def rule(scenario, factor, *, policy, seed, limit):
        return Tried(factor=factor, rate=10 * factor, p95=factor, lost=0.0, kept=factor <= edge[0])

    monkeypatch.setattr(searching, "_try", rule)
    return edge


@pytest.mark.parametrize("edge", [0.04, 0.9, 1.0, 1.3, 2.0, 5.7, 33.0])
def test_the_edge_is_found_within_two_percent(limit, edge):
    limit[0] = edge
    found = capacity(load_scenario("convoy"), policy="weighted", seed=1, limit=1.0)
    assert 10 * edge / searching.WIDTH <= found.rate <= 10 * edge
    assert len(found.tried) <= 14


def test_nothing_is_bearable(limit):
    limit[0] = 0.0
    assert capacity(load_scenario("convoy"), policy="weighted", seed=1, limit=1.0).rate is None


def test_everything_is_bearable(limit):
    limit[0] = 1e9
    assert capacity(load_scenario("convoy"), policy="weighted", seed=1, limit=1.0).rate == 640.0


def test_a_rate_that_is_refused_is_not_borne():
    # Queues of one on one pod, and nobody waits at the picker: many are refused, the few that are served are quick.
    scenario = load_scenario("code-4", overrides={
        "fleet": "{pods: 1, slots: 4, max_queue: 1, max_num_seqs: 1}", "run": "{for: 10s}", "arrivals.rate": "40/s",
        "settings.admission": "{max_wait: 0s}",
    })  # fmt: skip
    tried = searching._try(scenario, 1.0, policy="weighted", seed=1, limit=10.0)
    assert tried.p95 < 10.0 and tried.lost > 0.5
    assert not tried.kept


def test_bursts_stay_as_they_are():
    ordinary, burst = scaled(load_scenario("stampede"), 3.0).workload.flows
    assert (ordinary.changes, burst.changes) == ((Scale(0.0, 3.0),), ())


def test_the_articles_figures_stand_beside_ours():
    def found(policy, rate):
        return Capacity(policy=policy, seed=1, limit=1.0, rate=rate, tried=())

    expect = (
        ExpectedCapacity(capacity="gain", policy="weighted", article=0.5),
        ExpectedCapacity(capacity="share", article="10 to 20 %"),
        ExpectedCapacity(capacity="gain", policy="random", article=0.1),
    )
    searched = [found("round-robin", 10.0), found("weighted", 18.0)]
    rows = beside(expect, searched, without_swaps=[found("least-loaded", 40.0)])
    assert [(row.expected.capacity, row.policy, row.ours) for row in rows] == [
        ("gain", "weighted", (0.8,)),
        ("share", "round-robin", (0.25,)),
        ("share", "weighted", (0.45,)),
    ]
    # Nothing to reckon from: no figure, not a wrong one.
    alone = beside(expect, [found("weighted", 18.0)], without_swaps=[])
    assert [row.ours for row in alone] == [(None,), (None,)]
    assert beside(expect[:1], [found("round-robin", 10.0), found("weighted", None)], without_swaps=[])[0].ours == (
        None,
    )


def test_scenarios_say_what_leaves_nothing_to_swap():
    convoy = load_scenario("convoy")
    best = load_scenario("convoy", overrides=convoy.without_swaps)
    assert best.fleet.limits.max_loras == len(convoy.adapters.names)
    assert [each.capacity for each in convoy.expect_capacity] == ["share"]
