"""Pods that leave the list for a moment, and the requests that they were to decode."""

import pytest
from msgspec.structs import replace

from lorapick.model.picks import What
from lorapick.model.pods import Pod, Role
from lorapick.model.settings import Settings
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 2000, "stream": True}


def flapping() -> tuple[Playbook, Pod]:
    """p1 prefills a request of which the pod that is to decode leaves the list."""
    roles = [(Role.PREFILL, "p1"), (Role.DECODE, "d2"), (Role.DECODE, "d3")]
    pods = [plain_pod(name, role=role, max_loras=2) for role, name in roles]
    book = Playbook(pods=pods, adapters=["legal", "code", "sql"], settings=Settings())
    book.arrive("legal", **LONG)
    chosen = book.effects[0].target.pod
    book.gone(chosen)
    return book, next(pod for pod in pods if pod.name == chosen)


def reserved(book: Playbook, pod: str) -> list[str]:
    state = book.fleet.state
    return [*state.residency.home(state.columns.row_of[pod]).reserved]


def test_a_pod_that_is_listed_again_has_the_slot_again_and_nobody_else():
    book, pod = flapping()
    assert reserved(book, "p1") == ["legal"]
    book.appear(pod)
    assert reserved(book, pod.name) == ["legal"] and reserved(book, "p1") == []
    assert (book.in_flight(pod.name), book.in_flight("p1")) == (1, 1)
    moved = book.fleet.state.tally.reservations_moved
    assert (moved["moved"], moved["back"]) == (1, 1)
    book.prefilled("r1")
    assert (book.in_flight(pod.name), book.in_flight("p1")) == (1, 0)
    book.start("r1")
    assert book.tier(pod.name, "legal") == "loading"
    book.end("r1", status=200)
    assert book.in_flight(pod.name) == 0
    came = [(each.what, each.pod) for each in book.explain("r1").came]
    assert came == [(What.MOVED, "p1"), (What.MOVED, pod.name), (What.PREFILLED, "p1")]


def test_the_base_model_is_taken_back_too():
    book, _ = flapping()
    book.arrive("base", **LONG)
    chosen = book.effects[0].target.pod
    state = book.fleet.state
    pod = state.columns.pods[state.columns.row_of[chosen]]
    book.gone(chosen)
    book.appear(pod)
    assert book.in_flight(chosen) >= 1
    assert state.flights["r2"].row == state.columns.row_of[chosen] and state.flights["r2"].standby < 0


def test_one_of_the_same_name_at_another_address_is_another_one():
    book, pod = flapping()
    book.appear(replace(pod, address="10.9.9.9:8000"))
    assert reserved(book, pod.name) == [] and reserved(book, "p1") == ["legal"]
    book.fallback("r1", pod.name)
    assert reserved(book, pod.name) == ["legal"] and reserved(book, "p1") == []


def test_where_no_slot_is_left_the_fallback_keeps_it():
    book, pod = flapping()
    book.appear(replace(pod, limits=replace(pod.limits, max_loras=0)))
    assert reserved(book, pod.name) == [] and reserved(book, "p1") == ["legal"]


@pytest.mark.parametrize("back_first", [True, False])
def test_what_has_been_decoded_there_before_is_no_reservation(back_first):
    book, pod = flapping()
    if back_first:
        book.appear(pod)
        book.prefilled("r1")
        book.gone(pod.name)
    else:
        book.prefilled("r1")
    book.appear(pod)
    assert reserved(book, pod.name) == [] and book.in_flight(pod.name) == 0
    book.fallback("r1", pod.name)
    assert reserved(book, pod.name) == [] and book.in_flight(pod.name) == 1
    assert book.fleet.state.tally.fallbacks == 0
    book.start("r1")
    book.end("r1", status=200)
    assert book.in_flight(pod.name) == 0
