"""Orders of pods, and how long they are remembered."""

from array import array

from lorapick.core.picking import hashing
from lorapick.core.picking.hashing import Orders, digest, places


def test_places_are_the_inverse_of_an_order():
    assert places([2, 0, 1]).tolist() == [1.0, 2.0, 0.0]


def test_a_digest_is_the_same_for_ever():
    assert digest("pod-0") == 0x5DF83F09C08E5E3E
    assert digest("pod-0", seed=1) == 0x0ED1F39D37920D9B


class Maker:
    def __init__(self):
        self.made = []

    def __call__(self, key, members):
        self.made.append((key, members))
        return array("d", range(len(members)))


def test_an_order_is_made_once_for_a_key_while_the_same_pods_are_there():
    maker = Maker()
    orders, two, three = Orders(maker), ("a", "b"), ("a", "b", "c")
    assert orders.of("k", two) is orders.of("k", two)
    assert len(orders.of("k", three)) == 3
    orders.of("l", three)
    assert maker.made == [("k", two), ("k", three), ("l", three)]


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(hashing, "_MOST_KEYS", 2)
    maker = Maker()
    orders, pods = Orders(maker), ("a",)
    for key in ("k", "l", "k", "l", "m", "k"):
        orders.of(key, pods)
    assert [key for key, _ in maker.made] == ["k", "l", "m", "k"]
