"""Who is pinned, how often and where: properties over random logs and fleets."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.placement.replicas import ReplicaRules, wanted
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.logs.values import LogAdapter, LogArrival, LogSample, LogSummary
from lorapick.plan.pins.assigning import advise
from lorapick.plan.pins.choosing import count_for
from lorapick.plan.pins.service import service_of
from lorapick.plan.pins.values import DAY, PinFleet, PinOptions, Remark

MONTH = 30 * DAY


def logged(name, requests, *, first=0.0, last=MONTH, peak=1, **fields):
    return LogAdapter(adapter=name, requests=requests, first=first, last=last, peak=peak, burst=None, **fields)


def summary(*adapters, arrivals=()):
    found = sorted(adapters, key=lambda each: (-each.requests, each.adapter))
    sample = LogSample(start=0.0, length=3600.0, arrivals=tuple(arrivals) or (LogArrival(at=0.0, adapter="a"),))
    return LogSummary(files=("x.csv",), start=0.0, end=MONTH, adapters=tuple(found), hours=(), sample=sample)


def fleet(*slots, declared=(), **fields):
    pods = tuple(
        Pod(name=f"pod-{number}", address=f"10.0.0.{number}:80", limits=PodLimits(max_loras=each, max_cpu_loras=64))
        for number, each in enumerate(slots, start=1)
    )
    return PinFleet(pods=pods, named=True, declared=tuple(declared), **fields)


COUNTS = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 5000)), min_size=1, max_size=12)
SLOTS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(counts=COUNTS, slots=SLOTS, cover=st.floats(0.01, 1.0), own=st.integers(0, 2))
def test_pins_are_the_fewest_that_cover_and_fit(counts, slots, cover, own):
    logs = summary(*(logged(f"a{n}", requests, peak=peak) for n, (requests, peak) in enumerate(counts)))
    mine = [Adapter(name=f"a{n}", declared=True, pin=PinSpec(replicas=1)) for n in range(own)]
    where = fleet(*slots, declared=mine)
    found = advise(logs, where, options=PinOptions(cover=cover, service=1.0))
    names = [each.adapter for each in found.pins]
    assert len(names) == len(dict.fromkeys(names)) and not [name for name in names if name in found.own]
    used = Counter(pod for each in found.pins for pod in each.pods)
    for pod, given_pod in zip(found.pods, where.pods, strict=True):
        assert used[pod.pod] == len(pod.pins) <= pod.room
        assert pod.own + pod.room <= max(pod.own, given_pod.limits.max_loras // 2)
    for each in found.pins:
        assert 1 <= len(each.pods) == len(dict.fromkeys(each.pods)) <= min(each.wanted, len(slots))
    room = sum(pod.room for pod in found.pods)
    assert len(found.pins) == min(found.needed, room)
    if found.pinnable and found.needed <= room:
        assert found.covered >= cover * logs.requests * (1 - 1e-6)
        if found.pins:
            fewer = found.covered - found.pins[-1].log.requests
            assert fewer < cover * logs.requests
    # Nobody with more requests goes without: no set of as many others covers more.
    declared = [each.name for each in mine]
    free = [each.requests for each in logs.adapters if each.adapter not in (*names, *found.own, *declared)]
    assert not names or not free or max(free) <= min(each.log.requests for each in found.pins)


@settings(max_examples=50)
@given(counts=st.lists(st.integers(1, 100), min_size=1, max_size=8), share=st.floats(0.01, 1.0))
def test_count_for_is_the_smallest(counts, share):
    adapters = sorted((logged(f"a{n}", count) for n, count in enumerate(counts)), key=lambda each: -each.requests)
    count, total = count_for(adapters, share), sum(counts)
    have = [sum(each.requests for each in adapters[:number]) for number in range(len(adapters) + 1)]
    assert have[count] >= share * total * (1 - 1e-6) and (count == 0 or have[count - 1] < share * total)


def test_replicas_are_what_the_busiest_minute_asks_for_and_one_per_pod_at_most():
    logs = summary(logged("busy", 900, peak=1200), logged("calm", 100, peak=6))
    found = advise(logs, fleet(8, 8), options=PinOptions(cover=1.0, service=2.0))
    busy, calm = found.pins
    assert (busy.load, busy.wanted) == (40.0, wanted(40.0, rules=ReplicaRules(target=8.0)))
    assert busy.wanted == 7 and busy.pods == ("pod-1", "pod-2")
    assert (calm.wanted, len(calm.pods)) == (1, 1)


def test_everybody_gets_one_copy_before_anybody_gets_two():
    logs = summary(logged("a", 900, peak=6000), logged("b", 90, peak=6000), logged("c", 10, peak=1))
    found = advise(logs, fleet(4, 4), options=PinOptions(cover=1.0, service=2.0))
    assert [(each.adapter, each.asked, len(each.pods)) for each in found.pins] == [
        ("a", 2, 2),
        ("b", 1, 1),
        ("c", 1, 1),
    ]


def test_a_service_time_follows_from_tokens_unless_it_is_given():
    options = PinOptions()
    short, long = (logged("a", 1, prompt_tokens=100.0, output_tokens=tokens) for tokens in (10.0, 20.0))
    step = service_of(long, options, slots=4) - service_of(short, options, slots=4)
    assert 0.1 < step < 0.3
    assert service_of(logged("a", 1), options, slots=4) > service_of(long, options, slots=4)
    assert service_of(long, PinOptions(service=1.5), slots=4) == 1.5


def test_who_is_gone_is_not_pinned_and_who_is_new_is_flagged():
    logs = summary(
        logged("legal-v3", 500, last=MONTH - 12 * DAY), logged("legal-v4", 400, first=MONTH - 2 * DAY), logged("b", 100)
    )
    found = advise(logs, fleet(8), options=PinOptions(cover=0.8, with_new=True))
    assert [(each.adapter, each.remark) for each in found.pins] == [("legal-v4", Remark.NEW)]
    assert (found.current, found.covered) == (500, 400)
    assert [each.adapter for each in found.left_out] == ["legal-v3"] and "12 days" in found.left_out[0].why


def test_who_is_new_is_left_out_unless_wanted():
    logs = summary(logged("old", 50), logged("try", 40, first=MONTH - DAY), logged("b", 30))
    found = advise(logs, fleet(8), options=PinOptions(cover=0.6))
    assert [each.adapter for each in found.pins] == ["old", "b"]
    assert [each.adapter for each in found.left_out] == ["try"] and "--with-new" in found.left_out[0].why
    both = advise(logs, fleet(8), options=PinOptions(cover=0.6, with_new=True))
    assert [each.adapter for each in both.pins] == ["old", "try"] and not both.left_out


def test_logs_of_a_day_do_not_tell_who_is_new():
    logs = msgspec.structs.replace(summary(logged("a", 5, first=DAY / 2, last=DAY)), end=DAY)
    assert advise(logs, fleet(8), options=PinOptions()).pins[0].remark is None


@pytest.mark.parametrize("name", ["a,b", "a b", "", "a\u00a0b", "a\tb", "alias", "base"])
def test_names_that_cannot_be_pinned_are_left_out(name):
    found = advise(summary(logged(name, 10), logged("b", 1)), fleet(8, aliases=("alias",)), options=PinOptions())
    assert [each.adapter for each in found.pins] == ["b"] and [each.adapter for each in found.left_out] == [name]
    assert not found.pinnable


def test_who_fits_no_pod_is_left_out():
    declared = [Adapter(name="large", rank=128, declared=True), Adapter(name="other", base_model="m", declared=True)]
    logs = summary(logged("large", 10), logged("other", 9), logged("b", 1))
    found = advise(logs, fleet(8, declared=declared), options=PinOptions(cover=1.0))
    assert [each.adapter for each in found.pins] == ["b"]
    assert [each.adapter for each in found.left_out] == ["large", "other"]


def test_pods_with_one_slot_have_no_room():
    found = advise(summary(logged("a", 1)), fleet(1, 1), options=PinOptions())
    assert (found.pins, found.needed) == ((), 1)


def test_a_fleet_without_pods_is_refused():
    with pytest.raises(ValueError, match="no pods"):
        advise(summary(logged("a", 1)), fleet(), options=PinOptions())


@pytest.mark.parametrize(
    "fields",
    [{"cover": 0.0}, {"cover": 1.5}, {"cover": float("nan")}, {"service": 0.0}, {"target": 0.0}, {"prompt": 0}],
)
def test_numbers_that_cannot_be_are_refused(fields):
    with pytest.raises(ValueError, match=f"--{next(iter(fields))}"):
        PinOptions(**fields)
