"""Measured clients as adapters."""

from collections import Counter

import numpy as np
import pytest

from lorapick.plan.datafiles import data_path, open_lines
from lorapick.sim.workload.clients import client_flows, client_weights
from lorapick.sim.workload.popularity import shares
from lorapick.sim.workload.spec import FixedLength, Sizes, Window, Workload
from lorapick.sim.workload.stream import arrivals
from lorapick.wire.traces.rows import DemandWindow
from lorapick.wire.traces.servegen import all_windows

SIZES = Sizes(FixedLength(100), FixedLength(10))


def window(client, start, rate, cv=1.0):
    return DemandWindow(client=client, start=start, rate=rate, cv=cv, family="Gamma", shape=1.0, scale=1.0)


def published():
    return all_windows(open_lines(data_path("traces/servegen_m_small.csv.zst")))


def test_a_client_is_a_flow():
    demand = [window("1", 0.0, 1.0), window("1", 600.0, 2.0, 5.0), window("2", 0.0, 9.0), window("3", 600.0, 0.0, None)]
    flows = client_flows(demand, sizes=SIZES, span=(300.0, 1500.0))
    assert [each.name for each in flows] == ["client-2", "client-1", "client-3"]
    assert flows[1].adapters == ("client-1",)
    assert flows[1].process.windows == (Window(0.0, 300.0, 1.0, 1.0), Window(300.0, 900.0, 2.0, 5.0))
    assert flows[2].process.windows == ()
    names, weights = client_weights(flows)
    assert names == ("client-2", "client-1", "client-3")
    assert weights.values == (2700.0, 1500.0, 0.0)


def test_the_total_rate_is_as_wanted():
    demand = [window("1", 0.0, 1.0), window("2", 0.0, 3.0), window("3", 0.0, 6.0)]
    flows = client_flows(demand, sizes=SIZES, rate=20.0, span=(0.0, 600.0), most=2, adapter="tenant-{client}")
    assert [(each.name, each.process.windows[0].rate) for each in flows] == [
        ("tenant-3", pytest.approx(40 / 3)),
        ("tenant-2", pytest.approx(20 / 3)),
    ]


def test_a_span_without_demand_is_refused():
    with pytest.raises(ValueError, match=r"requests in the span is 0.0; choose a span"):
        client_flows([window("1", 0.0, 1.0)], sizes=SIZES, span=(600.0, 1200.0))


def test_the_published_clients():
    day = (2 * 86_400.0, 3 * 86_400.0)
    flows = client_flows(published(), sizes=SIZES, rate=0.5, span=day)
    assert len(flows) == 43
    found = list(arrivals(Workload(flows=flows), seed=1))
    assert len(found) == pytest.approx(43_200, rel=0.005)
    counts = Counter(each.adapter for each in found)
    names, weights = client_weights(flows)
    for name, share in zip(names, shares(weights, 43).tolist(), strict=True):
        assert counts[name] / len(found) == pytest.approx(share, abs=0.004)
    assert sum(share for share in sorted(counts.values())[-5:]) / len(found) > 0.6
    hours = np.histogram([each.t for each in found], bins=24, range=(0, 86_400))[0]
    assert 1.5 < hours.max() / hours.min() < 6
