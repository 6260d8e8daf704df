"""Values of who could prefill."""

from lorapick.core.picking.legs import Leg, Legs
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod


def test_a_leg_is_compared_by_what_it_says():
    pod = Pod(name="p", address="p:1")
    leg = Leg(0, pod, 0.5, 0.1)
    legs = Legs(DisaggregationSettings(), 100, 1e-4, leg, {"x": leg}, {})
    assert legs.best is legs.by_zone["x"]
    assert legs == Legs(DisaggregationSettings(), 100, 1e-4, Leg(0, pod, 0.5, 0.1), {"x": leg}, {})
