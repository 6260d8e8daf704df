"""The search for the highest bearable rate, with the runs replaced by a rule."""

import pytest

from lorapick.plan import capacity as searching
from lorapick.plan.capacity import Tried, capacity, scaled
from lorapick.plan.scenario_files import load_scenario
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
