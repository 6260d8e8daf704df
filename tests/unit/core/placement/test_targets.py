"""Targets: their order, and which of them somebody insists on."""

from lorapick.core.placement.targets import INSISTED, ORDER
from lorapick.model.placement import Why


def test_operators_come_first_and_what_the_load_alone_wants_is_not_insisted_on():
    assert [*ORDER][:2] == [Why.PIN, Why.OPERATOR]
    assert [why for why in Why if why not in INSISTED] == [Why.DEMAND, Why.FORECAST, Why.REBALANCE, Why.RETIRED]
