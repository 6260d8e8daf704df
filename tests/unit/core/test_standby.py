"""Where a slot can be kept for a request whose pod is lost."""

import pytest

from lorapick.core import standby
from lorapick.model.adapters import PinSpec
from lorapick.model.events import By, LoadSucceeded, PinSet
from lorapick.model.pods import Role, SilentWhy
from lorapick.model.settings import Settings
from lorapick.model.tiers import Source, Tier
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 2000, "stream": True}


@pytest.fixture
def book() -> Playbook:
    pods = [plain_pod("p1", role=Role.PREFILL, max_loras=2)]
    pods += [plain_pod(name, role=Role.DECODE, max_loras=2) for name in ("d2", "d3", "d4")]
    made = Playbook(pods=pods, adapters=("legal", "code", "sql"), settings=Settings())
    for row in (1, 2, 3):
        # Before cold pods comes the one that prefills.
        made.fleet.state.residency.left(row, "legal", tier=Tier.CPU, now=0.0, source=Source.REPORTED)
    made.arrive("legal", **LONG)
    return made


def flight(book: Playbook):
    return book.fleet.state.flights["r1"]


def living(book: Playbook, lost: int = -2) -> str | None:
    row = standby.next_living(book.fleet.state, flight(book), lost=lost)
    return book.fleet.state.columns.targets[row].pod if row >= 0 else None


def test_fallbacks_are_tried_in_the_gateways_order(book):
    order = [target.pod for target in flight(book).fallbacks]
    assert living(book) == order[0]
    assert living(book, lost=book.fleet.state.columns.row_of[order[0]]) == order[1]
    book.silent(order[0], SilentWhy.REFUSED)
    assert living(book) == order[1]
    for pod in order[1:]:
        book.gone(pod)
    assert living(book) is None


def test_at_another_address_a_fallback_is_another_process(book):
    order = [target.pod for target in flight(book).fallbacks]
    book.change(plain_pod(order[0], role=Role.DECODE, max_loras=2, address="elsewhere:1"))
    assert living(book) == order[1]


def test_room_is_where_the_adapter_runs_or_comes_or_a_slot_is_left(book):
    other, row_of = flight(book).fallbacks[0].pod, book.fleet.state.columns.row_of
    assert standby.has_room(book.fleet.state, flight(book), row=row_of[other])
    for name in ("code", "sql"):
        book.apply(LoadSucceeded, pod=other, adapter=name, by=By.CONTROLLER)
        book.arrive(name, subset=(f"{other}:8000",))
    assert not standby.has_room(book.fleet.state, flight(book), row=row_of[other])
    assert standby.has_room(book.fleet.state, flight(book), row=row_of[flight(book).pod])


def test_slots_of_pins_are_left_to_them(book):
    other, row_of = flight(book).fallbacks[0].pod, book.fleet.state.columns.row_of
    book.apply(PinSet, adapter="code", pin=PinSpec(pods=(other,)))
    book.apply(PinSet, adapter="sql", pin=PinSpec(pods=(other,)))
    book.wait(2.0)
    assert not standby.has_room(book.fleet.state, flight(book), row=row_of[other])


def test_letting_go_twice_is_harmless(book):
    state, row = book.fleet.state, book.fleet.state.columns.row_of[flight(book).fallbacks[0].pod]
    standby.keep(state, flight(book), row=row, now=book.now)
    book.fleet.check()
    assert standby.let_go(state, flight(book), now=book.now) == row
    assert standby.let_go(state, flight(book), now=book.now) == -1
    book.fleet.check()
