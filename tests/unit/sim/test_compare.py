"""Means, intervals, and differences paired by seed."""

import pytest
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.sim.compare import Estimate, compare, estimate, t_95
from lorapick.sim.run import run
from lorapick.sim.scenario_text import parse_scenario


def test_t_intervals():
    # Three values 1, 2, 3: standard error 1/sqrt(3), t = 4.303.
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.half_width) == (2.0, pytest.approx(2.484, abs=1e-3))
    assert estimate([5.0]) == Estimate(mean=5.0, half_width=None)
    assert estimate([1.0, None]) == estimate([]) == Estimate(mean=None, half_width=None)
    assert estimate([2.0, 2.0]).half_width == estimate([0.1 + 0.2, 0.3]).half_width == 0.0
    # What rounding leaves is no width.
    assert estimate([353.0, 353.0 + 1e-9, 353.0]).half_width == 0.0


@pytest.mark.parametrize(
    ("degrees", "value"), [(1, 12.706), (4, 2.776), (30, 2.042), (31, 2.040), (60, 2.000), (1000, 1.962)]
)
def test_quantiles_of_t(degrees, value):
    assert t_95(degrees) == pytest.approx(value, abs=4e-3)


def test_policies_are_paired_by_seed():
    scenario = parse_scenario(SCENARIO + "periods: [{name: a, from: 6s, to: 10s}]\n", file="s.yaml", policies=POLICIES)
    reports = [run(scenario, policy=policy, seed=seed) for policy in ("round-robin", "weighted") for seed in (1, 2, 3)]
    compared = compare(reports)
    assert (compared.policies, compared.seeds) == (("round-robin", "weighted"), (1, 2, 3))
    rows = {(row.metric, row.policy, row.period): row for row in compared.rows}
    arrivals = rows["swap_share", "weighted", None]
    assert rows["swap_share", "round-robin", None].difference is None
    mean = [compared.of("swap_share", policy).mean for policy in compared.policies]
    assert arrivals.difference.mean == pytest.approx(mean[1] - mean[0])
    # The same arrivals under both: the difference is surer than either.
    served = rows["served_rate", "weighted", None]
    assert served.difference.half_width < served.value.half_width
    assert compared.of("p95_ms", "weighted", period="a").mean != compared.of("p95_ms", "weighted").mean
    with pytest.raises(KeyError):
        compared.of("p95_ms", "random")
