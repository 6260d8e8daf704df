"""Pins that leave too little room for the others are named; pins that would pay are offered, others are not."""

from msgspec.structs import replace
from pictures_kit import ADAPTERS, adapter, adapter_signals, findings, healthy, pod, with_adapter_signals
from test_thrash import INCIDENT, incident, remedies

from lorapick.core.doctor.findings import Urgency


def skewed(picture, hot=30):
    rows = [adapter_signals(number, loads=hot if number < 10 else 10) for number in range(ADAPTERS)]
    return with_adapter_signals(picture, rows)


def offered(picture):
    return [each for each in remedies(picture) if each[0].startswith("pin")]


def test_pins_are_the_hottest_with_their_share_of_the_loads():
    ((action, price),) = offered(skewed(incident()))
    assert action.startswith("pin these 10: a00, a01, a02")
    assert "50 % of the loads are for them" in action
    assert "unpin" in action
    assert price.startswith("10 slots of 30 that are free of pins (33 %)")


def test_pins_that_take_more_of_the_slots_than_of_the_loads_are_not_offered():
    assert offered(skewed(incident(), hot=11)) == []


def test_what_is_pinned_is_not_pinned_again_and_slots_must_be_left():
    picture = skewed(incident())
    first = replace(picture.adapters[0], pinned=True)
    ((action, _),) = offered(replace(picture, adapters=(first, *picture.adapters[1:])))
    assert "a00" not in action
    few = skewed(healthy(fleet={**INCIDENT, "slots": 8}))
    assert all(action.startswith("pin these 4:") for action, _ in offered(few))
    taken = [pod(number, slots=4, pinned=4) for number in range(8)]
    assert offered(skewed(healthy(fleet=INCIDENT, pod_rows=taken))) == []


def with_pins(count, *, replicas, slots=4, pods=2, fleet=None):
    """So many adapters pinned on as many pods each, evenly."""
    rows = [pod(number, slots=slots, pinned=count * replicas // pods) for number in range(pods)]
    files = [adapter(number, pinned=number < count) for number in range(ADAPTERS)]
    numbers = {**INCIDENT, "active_adapters": 40, "slots": slots * pods, "active_per_slot": 40 / (slots * pods)}
    return healthy(pod_rows=rows, adapters=files, fleet={**numbers, **(fleet or {})})


def test_pins_that_leave_nothing_to_others_are_the_first_finding():
    found = findings(with_pins(4, replicas=2))
    assert [*found][:2] == ["pins_crowd", "thrash"]
    crowd = found["pins_crowd"]
    assert crowd.urgency is Urgency.PAGE
    assert crowd.what == (
        "pins take 8 of 8 slots, and leave 0 for the other 36 active adapters: what is not pinned waits or is swapped"
    )
    assert crowd.arithmetic == (
        "slots 8 - 8 with a pin = 0 for others",
        "others per slot 36/0; without pins 40/8 = 5.00",
        "no slot left for others on pod-0, pod-1",
    )
    assert "`lorapick adapters unpin a03`, `lorapick adapters unpin a02`" in crowd.remedies[0].action


def test_few_pins_in_a_fleet_that_is_too_small_anyway_are_not_to_blame():
    assert "pins_crowd" not in findings(with_pins(1, replicas=1))
    assert "pins_crowd" in findings(with_pins(2, replicas=2))
    roomy = {"active_adapters": 10, "slots": 64, "active_per_slot": 10 / 64}
    assert "pins_crowd" not in findings(with_pins(4, replicas=2, slots=32, fleet=roomy))
