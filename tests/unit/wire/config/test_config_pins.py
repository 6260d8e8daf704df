"""Pins that ask for more pods than there are, or for others."""

from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.pods import Pod, Role
from lorapick.wire.config.pins import pins_that_cannot_be

PODS = [
    Pod(name="p", address="10.0.0.1:1", role=Role.PREFILL, labels={"tier": "gold"}),
    Pod(name="d", address="10.0.0.2:1", role=Role.DECODE),
]


def said(**pin):
    return pins_that_cannot_be([Adapter(name="x", pin=PinSpec(**pin)), Adapter(name="y")], PODS)


def test_what_fits_is_not_told():
    assert said(replicas=1, prefill_replicas=1) == said(pods=("p", "d")) == said(selector={"tier": "gold"}) == ()


def test_each_side_has_so_many_pods():
    assert said(replicas=3, prefill_replicas=4) == (
        "x: replicas is 3, and 1 pod can decode",
        "x: prefill_replicas is 4, and 1 pod only prefill",
    )


def test_pods_and_labels_that_are_not_there_are_named():
    assert said(pods=("p", "q", "r")) == ("x: no such pod in the list: q, r",)
    assert said(pods=tuple("abcefgh")) == ("x: no such pod in the list: a, b, c, e, f and 2 more",)
    assert said(selector={"tier": "iron"}) == ("x: no pod of the list has the labels tier=iron",)
