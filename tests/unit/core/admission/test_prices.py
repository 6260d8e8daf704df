"""What a load costs those who did not ask for it."""

from math import exp

import pytest

from lorapick.core.admission.prices import JOINED
from lorapick.model.settings import LoadTimes, PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

NAMES = ("a", "b", "c", "d")
CPU = 0.2


def pod(*, slots=2, policy="cost"):
    settings = Settings(picking=PickingSettings(policy=policy), load_times=LoadTimes(cpu=CPU, disk=0.7))
    return Playbook(pods=[plain_pod("p", max_loras=slots)], adapters=NAMES, settings=settings)


def price(book, load):
    state = book.fleet.state
    return state.prices.of_load(state.residency.home(0), load, now=book.now)


def test_on_an_idle_pod_with_a_free_slot_nothing():
    assert price(pod(), 0) == 0.0


def test_whoever_is_there_waits_for_as_long_as_a_load_from_host_memory_takes():
    assert price(pod(), 5) == pytest.approx(5 * CPU)


def test_a_load_that_joins_another_harms_less():
    book = pod()
    book.arrive("a")
    assert price(book, 5) == pytest.approx(5 * CPU * JOINED)


def test_the_one_that_is_thrown_out_may_have_to_come_back():
    book = pod(slots=1)
    book.use("a", "p")
    prices = book.fleet.state.prices
    again = 1 - exp(-prices.demand.rate("a", now=0.0) * prices.demand.residence(1, now=0.0))
    assert 0.5 < again < 1.0, "it was asked for a moment ago"
    assert price(book, 3) == pytest.approx(3 * CPU + again * (CPU + 3 * CPU))
    book.now = 3000.0
    assert price(book, 3) == pytest.approx(3 * CPU), "nobody has asked for it for an hour"


def test_the_victim_is_the_least_recently_used_that_is_idle():
    book = pod()
    book.use("a", "p")
    book.now = 500.0
    book.use("b", "p")
    assert price(book, 0) == pytest.approx(0.0, abs=1e-4), "a, long ago"
    book.arrive("a")
    assert price(book, 0) > 0.1 * CPU, "b, a moment ago"
    book.arrive("b")
    assert price(book, 0) == 0.0, "nobody can be thrown out, so nobody is"


def test_the_column_is_kept_for_those_who_read_it():
    for policy in ("cost", "weighted"):
        book = pod(policy=policy)
        book.arrive("base")
        assert book.fleet.state.columns.load_price[0] == (pytest.approx(CPU) if policy == "cost" else 0.0)


def test_slots_are_counted_over_the_fleet():
    book = pod(slots=2)
    book.appear(plain_pod("q", max_loras=5))
    assert book.fleet.state.prices.slots == 7
    book.report("q", max_loras=4)
    book.gone("p")
    assert book.fleet.state.prices.slots == 4
