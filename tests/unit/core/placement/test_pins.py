"""Which pods each pin gets."""

from lorapick.core.placement.pins import PinPod, Told, meant, place
from lorapick.model.adapters import PinSpec
from lorapick.testing.playbook import plain_pod


def pods(*names, slots=2, leaving=(), **fields):
    return [PinPod(row, plain_pod(name, **fields), slots, leaving=name in leaving) for row, name in enumerate(names)]


def placed(pins, among, *, unfit=(), held=None, before=None):
    def may(name, pod):
        return f"{name} does not fit" if pod.name in unfit else None

    return place(pins, among, told=Told(may, held or {}, before or {}))


def test_named_pods_and_selectors_mean_all_that_fit_and_counts_as_many():
    east, west = pods("a", "b", zone="east"), pods("c", zone="west")
    among = [*east, *(pod._replace(row=2) for pod in west)]
    pins = {
        "named": PinSpec(pods=("a", "c")),
        "east": PinSpec(selector={"zone": "east"}),
        "some": PinSpec(selector={"zone": "east"}, replicas=1),
        "two": PinSpec(replicas=2),
    }
    found = placed(pins, [pod._replace(slots=9) for pod in among])
    assert found.rows["named"] == (0, 2) and found.rows["east"] == (0, 1)
    assert len(found.rows["some"]) == 1 and len(found.rows["two"]) == 2 and not found.problems


def test_what_does_not_fit_is_told_with_the_arithmetic():
    found = placed({"x": PinSpec(pods=("a",)), "y": PinSpec(replicas=2)}, pods("a", "b", slots=1))
    assert found.rows == {"x": (0,), "y": (1,)}
    assert found.problems["y"].endswith("pod a: it has 1 slot for 2 pins: x, y")
    assert placed({"x": PinSpec(pods=("nowhere",))}, pods("a")).problems == {"x": "no pod fits pods nowhere"}


def test_strict_pins_go_before_counts_whatever_their_order():
    pins = {"count": PinSpec(replicas=1), "named": PinSpec(pods=("a",))}
    assert placed(pins, pods("a", "b", slots=1)).rows == {"named": (0,), "count": (1,)}


def test_a_count_keeps_its_pods_then_takes_those_that_hold_it():
    pin, among = {"x": PinSpec(replicas=1)}, pods("a", "b", "c")
    assert placed(pin, among, held={"x": [1]}).rows["x"] == (1,)
    assert placed(pin, among, held={"x": [1]}, before={"x": (2,)}).rows["x"] == (2,)
    assert placed(pin, pods("a", "b", "c", leaving="c"), before={"x": (2,)}).rows["x"] != (2,)


def test_growth_adds_a_pod_and_keeps_the_rest():
    among = pods(*"abcdef")
    two = placed({"x": PinSpec(replicas=2)}, among).rows["x"]
    three = placed({"x": PinSpec(replicas=3)}, among, before={"x": two}).rows["x"]
    assert three[:2] == two and len({*three}) == 3


def test_a_reserved_pod_takes_no_pins_by_count():
    pins = {"mine": PinSpec(pods=("a",), reserve=True), "any": PinSpec(replicas=2)}
    assert placed(pins, pods("a", "b", slots=4)).rows["any"] == (1,)


def test_what_a_pod_cannot_serve_is_not_pinned_there():
    assert placed({"x": PinSpec(replicas=1)}, pods("a", "b"), unfit="a").rows["x"] == (1,)


def test_an_empty_pin_means_no_pod():
    assert not meant(PinSpec(), plain_pod("a")) and meant(PinSpec(replicas=1), plain_pod("a"))
