"""What requests and loads take, learnt from answers."""

from random import Random

import pytest

from lorapick.core.admission.estimates import Loads, Service
from lorapick.model.settings import LoadTimes
from lorapick.model.tiers import Tier


def test_before_any_answer_the_defaults_hold():
    service = Service(base=0.3, each=0.02)
    assert [service.expected(load) for load in (0, 4, 10)] == pytest.approx([0.3, 0.38, 0.5])


def test_a_line_is_learnt():
    service, chance = Service(), Random(1)
    for _ in range(4000):
        load = chance.randrange(12)
        service.served(load, 0.5 + 0.1 * load + chance.uniform(-0.05, 0.05))
    assert (service.base, service.each) == (pytest.approx(0.5, abs=0.05), pytest.approx(0.1, abs=0.01))


def test_one_load_over_and_over_says_nothing_of_its_influence():
    service = Service(base=0.3, each=0.02)
    for _ in range(20_000):
        service.served(4, 2.0)
    assert service.each >= 0.0 and service.base >= 0.0
    assert service.expected(4) == pytest.approx(2.0, rel=0.3)


def test_nothing_is_ever_negative():
    service, chance = Service(), Random(2)
    for _ in range(3000):
        load = chance.randrange(12)
        service.served(load, max(0.0, 1.0 - 0.2 * load))
        assert service.base >= 0.0 and service.each >= 0.0


def test_loads_are_learnt_by_tier():
    loads = Loads(LoadTimes(cpu=0.1, disk=0.7))
    for _ in range(400):
        loads.ended(Tier.CPU, 0.3)
        loads.ended(Tier.DISK, 0.6)
        loads.ended(Tier.LOADING, 99.0)
    assert (loads.cpu, loads.disk) == (pytest.approx(0.3, rel=0.06), pytest.approx(0.6, rel=0.06))


def test_one_answer_that_hung_moves_a_load_by_a_step_and_service_by_little():
    loads, service = Loads(LoadTimes(cpu=0.1, disk=0.7)), Service(base=1.0, each=0.0)
    loads.ended(Tier.DISK, 3000.0)
    assert loads.disk == pytest.approx(0.735)
    service.served(4, 3000.0)
    assert service.expected(4) < 1.1


@pytest.mark.parametrize("true_load", [0.0, 0.7, 3.0])
def test_the_spread_of_answers_is_not_taken_for_a_load(true_load):
    loads, chance = Loads(LoadTimes(cpu=0.1, disk=0.7)), Random(3)
    for _ in range(3000):
        answer = chance.uniform(5.0, 15.0)
        loads.ended(Tier.DISK, answer + true_load - 10.0)
    assert loads.disk < true_load + 1.5


def test_estimates_of_loads_stay_near_what_is_documented():
    loads = Loads(LoadTimes(cpu=0.1, disk=0.7))
    for _ in range(1000):
        loads.ended(Tier.CPU, -5.0)
        loads.ended(Tier.DISK, 1e9)
    assert (loads.cpu, loads.disk) == (pytest.approx(0.075), pytest.approx(14.0))
