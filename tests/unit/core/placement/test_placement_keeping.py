"""Who must not leave, and whether it would be the next."""

from lorapick.core.placement.keeping import Keeps
from lorapick.core.residency.cells import PodResidency
from lorapick.testing.playbook import plain_pod


def test_a_pin_is_endangered_when_it_is_the_next_to_go():
    home = PodResidency(0, plain_pod("a", max_loras=2), now=0.0)
    keeps = Keeps()
    keeps.pinned["x"] = None
    home.shadow.use("x", home.busy)
    assert keeps.endangered(home) is None, "a slot is free"
    home.shadow.use("y", home.busy)
    assert keeps.endangered(home) == "x"
    home.cell("x").in_flight = 1
    assert keeps.endangered(home) is None, "it is in use, and y would go"
    home.cell("x").in_flight = 0
    home.shadow.touch("x")
    assert keeps.endangered(home) is None
