"""Consistent hashing with bounded loads: home, bound, spill, and who moves when pods come and go."""

import math
from collections import Counter

import pytest

from lorapick.core.picking.chwbl import POINTS, clockwise, points
from lorapick.core.picking.hashing import bound, digest
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

ADAPTERS = [f"adapter-{index}" for index in range(60)]
PODS = ("a", "b", "c", "d")


def book_of(*names):
    pods = [plain_pod(name, max_num_seqs=1000) for name in names]
    return Playbook(pods=pods, adapters=ADAPTERS, settings=Settings(picking=PickingSettings(policy="chwbl")))


def ring(key, pods=PODS):
    """The pods that a walk from a key meets."""
    place = clockwise(key, pods)
    return sorted(pods, key=lambda pod: place[pods.index(pod)])


def homes(book):
    """Where each adapter goes while the fleet is idle."""
    told = {}
    for name in ADAPTERS:
        book.arrive(name)
        effect = book.effects[0]
        told[name] = effect.target.pod
        book.end(effect.request_id)
    return told


def test_the_walk_is_that_along_a_sorted_list_of_points():
    marks = sorted((int(point), pod) for pod in PODS for point in points(pod))
    for key in ADAPTERS:
        start = digest(key)
        walk = [*(pod for at, pod in marks if at >= start), *(pod for at, pod in marks if at < start)]
        assert ring(key) == [*dict.fromkeys(walk)]
    assert {len(points(pod)) for pod in PODS} == {POINTS} == {256}
    assert len({at for at, _ in marks}) == 4 * 256


@pytest.mark.parametrize(
    ("total", "pods", "full"), [(0, 4, 1), (2, 4, 1), (3, 4, 2), (8, 4, 3), (9, 4, 4), (39, 4, 13), (7, 1, 10)]
)
def test_the_bound_is_a_quarter_above_the_mean_rounded_up(total, pods, full):
    assert bound(total, pods=pods) == full


def test_an_adapter_fills_its_home_to_the_bound_and_then_the_next_pods_on_the_ring():
    """One hot adapter on four pods: bounds 1 1 1, 2 2 2, 3 3 3, 4 as requests pile up; the fourth pod stays idle."""
    book = book_of(*PODS)
    went = []
    for _ in range(10):
        book.arrive("adapter-0")
        went.append(book.effects[0].target.pod)
    first, second, third, _ = ring("adapter-0")
    assert went == [first, second, third] * 3 + [first]


def test_fallbacks_are_the_next_on_the_ring_and_full_pods_come_last():
    book = book_of(*PODS)
    first, second, third, fourth = ring("adapter-0")
    book.arrive("adapter-0")
    book.end("r1")
    assert book.arrive("adapter-0") == [f"r2 -> {first} (loading) else {second}, {third}"]
    assert book.arrive("adapter-0") == [f"r3 -> {second} (disk) else {third}, {fourth}"]
    book.report(third, running=40)
    assert book.arrive("adapter-0") == [f"r4 -> {first} (loading) else {second}, {fourth}"]
    assert [target.pod for target in book.effects[0].fallbacks] == [second, fourth]


def test_no_pod_is_ever_above_the_bound():
    pods = (*PODS, "e")
    book = book_of(*pods)
    for number in range(1, 120):
        book.arrive(ADAPTERS[number % 7 if number % 3 else 0])
        taken = book.effects[0].target.pod
        loads = {pod: book.in_flight(pod) for pod in pods}
        assert loads[taken] <= math.ceil(1.25 * sum(loads.values()) / len(pods)), loads
        if number % 4 == 0:
            book.end(f"r{number - 1}")


def test_reported_load_of_others_counts():
    book = book_of(*PODS)
    first, second, *_ = ring("adapter-0")
    book.report(first, running=5)
    assert book.arrive("adapter-0")[0].startswith(f"r1 -> {second} ")


def test_pods_that_may_not_serve_lift_no_mean():
    """With the home gone, four requests on three pods give a bound of 2, not of 1 as over all four."""
    book = book_of(*PODS)
    first, second, third, fourth = ring("adapter-0")
    book.drain(first)
    for pod in (second, third, fourth):
        book.report(pod, running=1)
    assert book.arrive("adapter-0")[0].startswith(f"r1 -> {second} ")


def test_when_a_pod_leaves_only_its_adapters_move_and_come_back_with_it():
    book = book_of(*PODS, "e")
    before = homes(book)
    book.gone("b")
    after = homes(book)
    assert {name for name in ADAPTERS if before[name] != after[name]} == {n for n in ADAPTERS if before[n] == "b"}
    book.appear(plain_pod("b", max_num_seqs=1000))
    assert homes(book) == before


def test_homes_are_spread_and_do_not_depend_on_the_order_of_pods():
    before = homes(book_of(*PODS))
    assert homes(book_of(*reversed(PODS))) == before
    assert all(5 <= count <= 27 for count in Counter(before.values()).values())


def test_base_model_requests_have_their_first_block_as_key_or_else_none():
    book = book_of(*PODS)

    def went(**fields):
        book.arrive("base", **fields)
        effect = book.effects[0]
        book.end(effect.request_id)
        return effect.target.pod

    assert len({went(blocks=(7, number)) for number in range(12)}) == 1
    assert {went(blocks=(number,)) for number in range(40)} == {*PODS}
    assert {went() for _ in range(40)} == {*PODS}
