"""How often each adapter is asked for."""

from math import exp

import pytest

from lorapick.core.admission import demand as module
from lorapick.core.admission.demand import LONGEST, MEMORY, Demand, Fading


def test_events_fade():
    fading = Fading(0.0)
    assert fading.rate(5.0) == 0.0
    fading.happened(5.0)
    assert fading.rate(5.0) == pytest.approx(1 / MEMORY)
    assert fading.rate(5.0 + MEMORY) == pytest.approx(exp(-1) / MEMORY)


def test_a_steady_rate_is_found():
    demand = Demand()
    for number in range(4000):
        demand.arrived("legal", now=number * 0.1)
    assert demand.rate("legal", now=400.0) == pytest.approx(10.0, rel=0.02)
    assert demand.rate("nobody", now=400.0) == 0.0


def test_residence_is_slots_by_loads():
    demand = Demand()
    assert demand.residence(8, now=0.0) == LONGEST, "nothing has ever been loaded"
    for number in range(4000):
        demand.load_began(number * 0.5)
    assert demand.residence(8, now=2000.0) == pytest.approx(4.0, rel=0.05)
    assert demand.residence(10**6, now=2000.0) == LONGEST


def test_those_that_have_faded_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MOST", 4)
    demand = Demand()
    for now, name in enumerate(["a", "b", "c", "d", "a", "e"]):
        demand.arrived(name, now=float(now))
    kept = [name for name in "abcde" if demand.rate(name, now=6.0) > 0]
    assert kept == ["a", "d", "e"], "b and c were wanted least"
