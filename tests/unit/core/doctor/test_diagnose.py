"""The whole diagnosis: order, figures, health, and that nothing unknown makes it fail."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures_kit import checks, healthy

from lorapick.core.doctor.diagnose import CHECKS, diagnose
from lorapick.core.doctor.findings import ORDER, Urgency
from lorapick.core.doctor.picture import AdapterPicture, AlertPicture, LoadPicture, Picture, PodPicture
from lorapick.model.alerts import Alert, Severity
from lorapick.model.shifts import Shift, ShiftKind, ShiftPair
from lorapick.model.signals import AdapterSignals, FleetSignals, PodSignals, Signals


def test_a_healthy_fleet_has_figures_and_no_findings():
    found = diagnose(healthy())
    assert (found.findings, found.unknown, found.pages) == ((), (), False)
    assert "40 active adapters / 64 slots = 0.62 (bound 0.8)" in found.figures
    assert "P95 300 ms (promised 500 ms)" in found.figures


def test_of_nothing_nothing_is_said():
    found = diagnose(Picture())
    assert (found.findings, found.figures) == ((), ())
    assert found.unknown


def test_the_worst_comes_first():
    found = diagnose(healthy(fleet={"latency_p95": 2.0, "active_per_slot": 0.9}, faults={"scoring_error": 1}))
    assert [finding.check for finding in found.findings] == ["latency", "room", "faults"]
    assert [finding.urgency for finding in found.findings] == [Urgency.PAGE, Urgency.WARN, Urgency.INFO]
    assert found.pages


def test_what_cannot_be_judged_is_said():
    young = diagnose(healthy(watched=50.0, fleet={"useful_share": None, "mean_residency": None}, envoy_requests=None))
    assert len(young.unknown) == 4


def test_a_young_picker_does_not_take_first_loads_for_thrash():
    first_loads = {"swaps_per_second": 3.0, "mean_residency": 20.0, "hit_ratio": 0.2}
    assert checks(healthy(watched=60.0, fleet=first_loads)) == []
    assert checks(healthy(watched=600.0, fleet=first_loads)) == ["churn"]
    standing = (AlertPicture(name="thrash", since=9_966.0, facts={"harm": "queues"}),)
    (found,) = diagnose(healthy(watched=66.0, fleet=first_loads, alerts=standing)).findings
    assert (found.check, found.urgency) == ("thrash", Urgency.PAGE)
    assert found.arithmetic[-1] == "the alert thrash stands for 34 s: harm by: queues"


def test_pictures_can_be_saved_and_read():
    picture = healthy(shifts=(Shift(kind=ShiftKind.ADDED, since=9_000.0, new=("x",), share=0.1),))
    assert msgspec.json.decode(msgspec.json.encode(picture), type=Picture) == picture


# -- whatever is unknown

_PAGES = [each for each in Alert if each.severity is Severity.PAGE]
numbers = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 1e9, -1.0]), st.floats(0, 100))
counts = st.one_of(st.none(), st.integers(0, 50))
words = st.sampled_from(["a", "b", "c", ""])
maybe_words = st.one_of(st.none(), words)


def filled(kind, *, required=(), **fields):
    """Any value of a struct, with any of its optional fields unknown."""
    every = {**{name: strategy for name, strategy in fields.items() if name in required}}
    optional = {name: strategy for name, strategy in fields.items() if name not in required}
    return st.fixed_dictionaries(every, optional=optional).map(lambda found: kind(**found))


real = st.sampled_from([0.0, 0.3, 2.0, 500.0])
few = st.integers(0, 40)
pod_pictures = filled(
    PodPicture, required=("name",), name=words, ready=st.sampled_from([None, True, False]), reason=maybe_words,
    queue_depth=numbers, max_queue=counts, running=counts, in_flight=counts, served_per_second=numbers,
    gpu_utilization=numbers, kv_usage=numbers, slots=counts, max_rank=counts, scrape_age=numbers,
    last_error=maybe_words, pressure=st.sampled_from([None, "hard", "none"]), kv_blocks=counts, block_tokens=counts,
    drift=st.sampled_from([(), ("a is b",)]), pinned=counts,
    base_model=st.sampled_from([None, "base", "meta-llama/Llama-3.1-8B"]),
)  # fmt: skip
adapter_pictures = filled(
    AdapterPicture, required=("name",), name=words, declared=st.sampled_from([None, True, False]), rank=counts,
    size=counts, source=maybe_words, fingerprint=maybe_words, base_model=maybe_words, problem=maybe_words,
    pinned=st.sampled_from([None, True]), slots=counts, known_to=counts, requests=counts,
)  # fmt: skip
fleets = filled(
    FleetSignals, required=("requests_per_second", "swaps_per_second"), requests_per_second=real, swaps_per_second=real,
    hit_ratio=numbers, mean_residency=numbers, latency_p95=numbers, ttft_p95=numbers, error_ratio=numbers,
    useful_share=numbers, active_adapters=few, slots=few, active_per_slot=numbers, swap_queue=few, critical_queues=few,
)  # fmt: skip
pod_rows = filled(
    PodSignals, required=("pod", "swaps_per_second", "loads_per_second", "evictions_per_second"), pod=words,
    swaps_per_second=real, loads_per_second=real, evictions_per_second=real, queue_critical=st.booleans(),
    swap_queue=few,
)  # fmt: skip
adapter_rows = filled(
    AdapterSignals, required=("adapter", "requests_per_second", "share", "first_seen"), adapter=words,
    requests_per_second=real, share=real, first_seen=real, loads=few,
)  # fmt: skip
pairs = st.builds(ShiftPair, old=words, new=words, before=real, old_now=real, new_now=real)
shifts = st.builds(
    Shift, kind=st.sampled_from(ShiftKind), since=real, new=st.lists(words, max_size=3).map(tuple),
    pairs=st.lists(pairs, max_size=12).map(tuple), share=real, lost=real, taken=numbers, evidence=real,
)  # fmt: skip
alerts = st.builds(
    AlertPicture, name=st.sampled_from(["convoy", "queues", "quarantine", "swap_queue", *_PAGES, "unheard_of"]),
    facts=st.dictionaries(words, st.one_of(words, real), max_size=3),
)  # fmt: skip


loads_seen = st.builds(LoadPicture, tier=words, seen=few, at_most=real, quickest=numbers, requests=few)


def several(strategy):
    return st.lists(strategy, max_size=4).map(tuple)


pictures = filled(
    Picture, now=numbers, wall=numbers, watched=numbers, stale_after=numbers, loads=several(loads_seen),
    refused=st.dictionaries(words, few, max_size=2),
    signals=st.one_of(
        st.none(),
        st.builds(
            Signals, now=real, fleet=fleets, pods=several(pod_rows), adapters=several(adapter_rows)
        ),
    ),
    pods=several(pod_pictures), adapters=several(adapter_pictures), alerts=several(alerts), shifts=several(shifts),
    arrivals=counts, faults=st.dictionaries(words, few, max_size=2), passed=st.dictionaries(words, few, max_size=2),
    envoy_requests=counts, envoy_without_picker=counts, pins_wanted=counts, pins_missing=counts,
    pins_without_place=counts, pin_missing_longest=numbers, pin_problems=st.dictionaries(words, words, max_size=2),
)  # fmt: skip


@settings(max_examples=40)
@given(pictures)
def test_whatever_is_unknown_the_doctor_answers_in_order(picture):
    found = diagnose(picture)
    places = [ORDER.index(finding.urgency) for finding in found.findings]
    assert places == sorted(places)
    for finding in found.findings:
        assert finding.what
        assert all(finding.arithmetic)
        assert all(remedy.action and remedy.price for remedy in finding.remedies)
        assert "None" not in f"{finding.what} {finding.arithmetic} {finding.remedies}"
    assert len(CHECKS) >= 20
