"""Room, thrash, useful time; and what each remedy costs."""

import pytest
from msgspec.structs import replace
from pictures_kit import ADAPTERS, adapter_signals, checks, findings, healthy, pod, pod_signals, with_adapter_signals

from lorapick.core.doctor.findings import Urgency
from lorapick.core.doctor.picture import AlertPicture
from lorapick.model.shifts import Shift, ShiftKind

CROWDED = {"active_adapters": 60, "slots": 32, "active_per_slot": 60 / 32}
INCIDENT = {**CROWDED, "swaps_per_second": 1.8, "mean_residency": 40.0, "hit_ratio": 0.6, "latency_p95": 2.2}


def incident(**fields):
    rows = [pod(number, slots=4) for number in range(8)]
    return healthy(fleet=INCIDENT, pod_rows=rows, **fields)


def test_the_incident_in_one_finding_with_its_arithmetic():
    found = findings(incident())["thrash"]
    assert found.urgency is Urgency.PAGE
    assert (
        found.arithmetic[:4]
        == (
            "active adapters per slot 60/32 = 1.88 > 0.8",
            "swaps 1.8/s per pod, 0.02/s on the worst > 0.5/s",
            "mean residency 40 s < 300 s",
            "hits 60 % < 80 %",
        )
        or "swaps" in found.arithmetic[1]
    )
    assert "each load costs 350 ms; 1.8/s of them take 63 % of a pod's time" in found.arithmetic
    assert found.arithmetic[-1] == "P95 2.2 s > 500 ms"


def test_without_harm_nobody_is_woken():
    fleet = {**INCIDENT, "latency_p95": 0.3}
    assert findings(healthy(fleet=fleet))["thrash"].urgency is Urgency.WARN


def test_little_room_is_no_thrash():
    found = findings(healthy(fleet={"active_adapters": 52, "active_per_slot": 52 / 64}))
    assert [*found] == ["room"]
    assert found["room"].urgency is Urgency.WARN
    assert checks(healthy(fleet={"active_adapters": 51, "active_per_slot": 51 / 64})) == []


@pytest.mark.parametrize(
    "near",
    [{"swaps_per_second": 0.5}, {"mean_residency": 300.0}, {"hit_ratio": 0.8}, {"active_per_slot": 0.8}],
)
def test_near_misses_are_nothing(near):
    assert checks(healthy(fleet=near)) == []


def test_one_pod_that_swaps_is_enough():
    rows = [pod_signals(0, swaps_per_second=0.7), *map(pod_signals, range(1, 8))]
    found = findings(healthy(pods=rows))
    assert "swaps 0.02/s per pod, 0.7/s on the worst > 0.5/s" in found["thrash"].arithmetic
    assert "slots enough" in found["thrash"].what


def remedies(picture, check="thrash"):
    return [(remedy.action, remedy.price) for remedy in findings(picture)[check].remedies]


def test_slots_have_their_price_in_memory_tokens_and_sequences():
    slots = next(each for each in remedies(incident()) if each[0].startswith("add"))
    assert slots[0] == "add 6 slots per pod: 60/80 = 0.75 adapters per slot"
    # 32 layers, 81,920 numbers per unit of rank, rank 16, two bytes: 83.9 MB a slot; 640 tokens of 131,072 bytes.
    assert "6 slots more per pod = 503 MB of KV at max_lora_rank 16 = 3,840 of 80,000 tokens" in slots[1]
    # 40 % of 80,000 tokens are in use by 10 sequences: 3,200 tokens each.
    assert "= 1 sequences fewer at once" in slots[1]


def test_slots_for_ranks_that_nobody_has_pay_for_more():
    rows = [pod(number, slots=4, max_rank=64) for number in range(8)]
    found = [each for each in remedies(healthy(fleet=INCIDENT, pod_rows=rows)) if each[0].startswith("start the pods")]
    ((action, price),) = found
    assert action.startswith(
        "start the pods with max_lora_rank 16, the highest in use, and 10 slots each: 60/80 = 0.75"
    )
    assert price == "no memory: slots are reserved for rank 64 now; a restart of each pod"
    assert not [each for each in remedies(incident()) if each[0].startswith("start the pods")]


def test_pods_are_the_other_way():
    assert ("or add 11 pods with 4 slots each", "11 GPUs") in remedies(incident())


def test_of_an_unknown_model_the_price_is_at_least_what_adapters_say():
    rows = [pod(number, base_model="base", max_rank=64) for number in range(8)]
    price = next(each for each in remedies(healthy(fleet=INCIDENT, pod_rows=rows)) if each[0].startswith("add"))[1]
    assert "at least" in price
    assert "sequences unknown" in price
    rows = [pod(number, base_model="base", max_rank=None) for number in range(8)]
    price = next(each for each in remedies(healthy(fleet=INCIDENT, pod_rows=rows)) if each[0].startswith("add"))[1]
    assert "memory unknown" in price


def test_pins_are_the_hottest_with_their_share_of_the_loads():
    rows = [adapter_signals(number, loads=30 if number < 10 else 10) for number in range(ADAPTERS)]
    pins = next(each for each in remedies(with_adapter_signals(incident(), rows)) if each[0].startswith("pin"))
    assert pins[0].startswith("pin these 10: a00, a01, a02")
    assert "50 % of the loads were for them" in pins[0]
    assert pins[1].startswith("10 slots of 32")


def test_what_is_pinned_is_not_pinned_again_and_slots_must_be_left():
    pinned = replace(incident(), adapters=(replace(incident().adapters[0], pinned=True), *incident().adapters[1:]))
    action = next(each for each in remedies(pinned) if each[0].startswith("pin"))[0]
    assert "a00" not in action
    few = healthy(fleet={**INCIDENT, "slots": 8})
    assert not [each for each in remedies(few) if each[0].startswith("pin")]


def test_an_experiment_that_was_found_is_the_first_remedy():
    split = Shift(kind=ShiftKind.SPLIT, since=9_000.0, new=tuple(f"x{n}" for n in range(20)), share=0.18)
    action, price = remedies(incident(shifts=(split,)))[0]
    assert action == "end or merge what was split off (x0, x1, x2, x3 and 16 more): 40/32 = 1.25 adapters per slot"
    assert price == "the experiment: 18 % of the traffic goes back"


def test_useful_time_is_told_beside_what_gpus_say():
    rows = [pod(number, gpu_utilization=0.94) for number in range(8)]
    found = findings(healthy(fleet={"useful_share": 0.15}, pod_rows=rows))["useful_time"]
    assert found.what == "GPUs say 94 % busy, and 15 % of it is inference"
    assert checks(healthy(fleet={"useful_share": 0.5})) == []
    rows = [pod(number, gpu_utilization=None) for number in range(8)]
    found = findings(healthy(fleet={"useful_share": 0.15}, pod_rows=rows))["useful_time"]
    assert found.what == "15 % of the time that pods are busy is inference"


def test_a_swap_queue_that_stands_is_told_with_its_pods():
    rows = [pod_signals(0, swap_queue=3), *map(pod_signals, range(1, 8))]
    found = findings(healthy(pods=rows, alerts=(AlertPicture(name="swap_queue"),)))["swap_queue"]
    assert (found.pods, found.arithmetic) == (("pod-0",), ("pod-0: 3 requests",))
    assert checks(healthy(pods=rows)) == []
