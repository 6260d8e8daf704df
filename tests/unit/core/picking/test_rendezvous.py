"""Rendezvous hashing: which pods are replicas, how many, which of them, and who moves when pods come and go."""

from collections import Counter

import pytest

from lorapick.core.picking.hashing import digest
from lorapick.core.picking.rendezvous import by_weight, replicas
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

ADAPTERS = [f"adapter-{index}" for index in range(60)]
PODS = ("a", "b", "c", "d")


def book_of(*names):
    pods = [plain_pod(name, max_num_seqs=1000) for name in names]
    settings = Settings(picking=PickingSettings(policy="rendezvous", fallbacks=3))
    return Playbook(pods=pods, adapters=ADAPTERS, settings=settings)


def order(key, pods=PODS):
    """The pods by weight for a key."""
    place = by_weight(key, pods)
    return sorted(pods, key=lambda pod: place[pods.index(pod)])


def homes(book):
    """First pod and fallbacks of each adapter while the fleet is idle."""
    told = {}
    for name in ADAPTERS:
        book.arrive(name)
        effect = book.effects[0]
        told[name] = [effect.target.pod, *(target.pod for target in effect.fallbacks)]
        book.end(effect.request_id)
    return told


def test_weights_are_hashes_of_both_names():
    for key in ADAPTERS[:10]:
        assert order(key) == sorted(PODS, key=lambda pod: digest(pod, seed=digest(key)), reverse=True)


@pytest.mark.parametrize(
    ("in_flight", "loads", "count"),
    [
        (0, [0.0, 0.0, 0.0, 0.0], 1),
        (3, [3.0, 0.0, 0.0, 0.0], 1),
        (4, [4.0, 0.0, 0.0, 0.0], 2),
        (8, [4.0, 4.0, 0.0, 0.0], 3),
        (12, [4.0, 4.0, 4.0, 0.0], 3),  # full at ceil(1.25 × 13 / 4) = 5
        (15, [5.0, 5.0, 5.0, 0.0], 4),  # full at 5
        (16, [5.0, 5.0, 5.0, 1.0], 3),  # full at 6
        (0, [4.0, 9.0, 1.0, 0.0], 1),  # full at 5: the first is not
        (0, [5.0, 9.0, 1.0, 0.0], 3),  # full at 5: the first two are
        (500, [0.0, 0.0], 2),
    ],
)
def test_as_many_replicas_as_the_load_needs(in_flight, loads, count):
    assert replicas(in_flight, loads) == count


def test_a_hot_adapter_gets_one_replica_after_the_other_and_keeps_the_first():
    book = book_of(*PODS)
    first, second, third, fourth = order("adapter-0")
    went = []
    for _ in range(17):
        book.arrive("adapter-0")
        went.append(book.effects[0].target.pod)
    assert went == [first] * 4 + [second] * 4 + [third] * 4 + [first, second, third, fourth, first]
    for number in range(1, 16):
        book.end(f"r{number}")
    book.arrive("adapter-0")
    assert book.effects[0].target.pod == first


def test_inside_the_set_the_least_loaded_wins():
    book = book_of(*PODS)
    first, second, *_ = order("adapter-0")
    for _ in range(5):
        book.arrive("adapter-0")
    book.report(first, running=2)
    book.report(second, running=3)
    assert book.arrive("adapter-0")[0].startswith(f"r6 -> {second} "), "own requests are load, whatever a scrape says"
    for number in range(1, 5):
        book.end(f"r{number}")
    book.report(second, running=3)
    assert book.arrive("adapter-0")[0].startswith(f"r7 -> {first} ")


def test_when_all_replicas_are_full_the_next_pod_by_rank_serves():
    book = book_of(*PODS)
    first, second, third, fourth = order("adapter-0")
    book.report(first, running=20)
    book.report(second, running=12)
    assert book.arrive("adapter-0") == [f"r1 -> {third} (disk) else {second}, {first}, {fourth}"]


def test_on_a_busy_fleet_an_adapter_needs_fewer_replicas():
    """Full at 26: five requests for one adapter fit beside the twenty of others."""
    book = book_of(*PODS)
    for pod in PODS:
        book.report(pod, running=20)
    for _ in range(5):
        book.arrive("adapter-0")
        assert book.effects[0].target.pod == order("adapter-0")[0]


def test_when_a_pod_leaves_the_order_of_the_others_stays():
    book = book_of(*PODS, "e")
    before = homes(book)
    book.gone("b")
    after = homes(book)
    for name in ADAPTERS:
        stayed = [pod for pod in before[name] if pod != "b"]
        assert after[name][: len(stayed)] == stayed
    assert {name for name in ADAPTERS if before[name][0] != after[name][0]} == {
        name for name in ADAPTERS if before[name][0] == "b"
    }
    book.appear(plain_pod("b", max_num_seqs=1000))
    assert homes(book) == before


def test_homes_are_spread_and_do_not_depend_on_the_order_of_pods():
    before = homes(book_of(*PODS))
    assert homes(book_of(*reversed(PODS))) == before
    assert all(5 <= count <= 27 for count in Counter(pods[0] for pods in before.values()).values())


def test_base_model_requests_go_to_the_least_loaded_pod():
    book = book_of(*PODS)
    for pod, running in zip(PODS, (3, 0, 2, 1), strict=True):
        book.report(pod, running=running)
    assert book.arrive("base") == ["r1 -> b (base) else d, c, a"]
