"""Room, thrash, useful time; and what each remedy costs."""

import pytest
from pictures_kit import checks, findings, healthy, pod, pod_signals

from lorapick.core.doctor.findings import Urgency
from lorapick.core.doctor.picture import AlertPicture, LoadPicture
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
    told = "a load takes from disk 350 ms (the quickest of 40), at most 900 ms"
    assert f"{told}; 1.8/s on each pod take about 63 % of a pod's time" in found.arithmetic
    assert found.arithmetic[-1] == "P95 2.2 s > 500 ms"


def test_without_harm_nobody_is_woken():
    fleet = {**INCIDENT, "latency_p95": 0.3}
    found = findings(healthy(fleet=fleet))["churn"]
    assert found.urgency is Urgency.WARN
    assert "thrash" not in found.what
    assert found.what.endswith("nothing is broken by it yet")


def test_loads_take_what_was_seen_by_tier_and_never_more_than_all_time():
    seen = (
        LoadPicture(tier="cpu", seen=64, at_most=0.9, quickest=0.112, requests=30),
        LoadPicture(tier="disk", seen=2, at_most=0.5, requests=10),
    )
    told = "a load takes from cpu 112 ms (the quickest of 64), at most 900 ms; from disk at most 500 ms"
    found = findings(incident(loads=seen))["thrash"]
    assert f"{told}; 1.8/s on each pod take at most 38 % of a pod's time" in found.arithmetic
    still = healthy(fleet={**INCIDENT, "swaps_per_second": 0.0}, loads=seen)
    assert f"{told}; nobody waits for one now" in findings(still)["thrash"].arithmetic
    long = (LoadPicture(tier="disk", seen=2, at_most=0.6),)
    (line,) = [line for line in findings(incident(loads=long))["thrash"].arithmetic if line.startswith("a load")]
    assert line.endswith("1.8/s on each pod may take all of a pod's time")
    assert not [line for line in findings(incident(loads=()))["thrash"].arithmetic if "a load" in line]


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
    assert "swaps 0.02/s per pod, 0.7/s on the worst > 0.5/s" in found["churn"].arithmetic
    assert "slots enough" in found["churn"].what


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
