"""Swaps before and after, the configuration's section, what is said of them."""

import random

import msgspec
import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.gate.reading import parse
from lorapick.plan.logs.values import LogAdapter, LogArrival, LogSample, LogSummary
from lorapick.plan.pins.before_after import Outcome
from lorapick.plan.pins.notes import of_logs, of_newcomers
from lorapick.plan.pins.rates import busiest_rate, today_list
from lorapick.plan.pins.report import cases_of, pin_plan
from lorapick.plan.pins.simulating import Case, check_fleet, play, recorded
from lorapick.plan.pins.snippet import section_of
from lorapick.plan.pins.values import DAY, PinFleet, PinOptions
from lorapick.plan.pins.verdict import verdict
from lorapick.wire.config import parse_settings

NAMES = tuple(f"tenant-{number}" for number in range(1, 7))
OPTIONS = PinOptions(service=0.2)
CONFIG = b"""
base_model: base
adapters:
  list:
    - {name: tenant-1, source: /models/one, rank: 8, revision: 1.10}
    - &two {name: tenant-2, targets: [q_proj, v_proj], size: 64MB}
    - {<<: *two, name: "yes"}
    - {name: tenant-6, pin: {pods: [pod-2]}}
discovery:
  pods:
    - {name: pod-1, address: "127.0.0.1:8001"}
    - {name: pod-2, address: "127.0.0.1:8002"}
"""


def summary(*, count=60, every=0.1):
    """Half of the requests are for the first of six adapters."""
    order = random.Random(1).choices(NAMES, (5, 1, 1, 1, 1, 1), k=count)
    arrivals = tuple(
        LogArrival(at=100.0 + every * n, adapter=name, prompt_tokens=8, output_tokens=8) for n, name in enumerate(order)
    )
    adapters = tuple(
        LogAdapter(adapter=name, requests=5000 if n == 0 else 1000, first=0.0, last=30 * DAY, peak=60, burst=1.0)
        for n, name in enumerate(NAMES)
    )
    sample = LogSample(start=0.0, length=3600.0, arrivals=arrivals)
    return LogSummary(
        files=("requests.csv",), start=0.0, end=30 * DAY, adapters=adapters, hours=(), sample=sample,
        columns={"adapter": "model"}, without_adapter=3, too_old=2, without_time=1,
    )  # fmt: skip


def fleet(*, named=False, slots=3, declared=()):
    pods = tuple(
        Pod(name=f"pod-{number}", address=f"127.0.0.1:800{number}", limits=PodLimits(max_loras=slots))
        for number in (1, 2)
    )
    return PinFleet(pods=pods, named=named, declared=declared)


@pytest.fixture(scope="module")
def plan():
    return pin_plan(summary(), fleet(), options=OPTIONS)


def test_every_figure_has_a_formula_and_a_source(plan):
    figures = [*plan.report.figures, *plan.report.assumptions]
    assert all(each.formula and each.source for each in figures)
    names = [each.name for each in figures]
    assert len(names) == len(dict.fromkeys(names))


def test_pins_of_the_busiest_are_advised_and_keep_others_room(plan):
    assert [each.adapter for each in plan.advice.pins] == ["tenant-1", "tenant-2"]
    assert plan.report["slots left to others"].value == 4
    assert plan.report["adapters for 60 %"].value == 2
    assert "is room for 2" in " ".join(plan.report.notes)


def test_three_cases_are_played_with_the_same_requests(plan):
    (table,) = [each for each in plan.report.tables if each.title.startswith("sample")]
    assert [row[:2] for row in table.rows] == [
        ("today", "round-robin"),
        ("lorapick, no pins", "weighted"),
        ("lorapick, pins", "weighted, 2 pinned"),
    ]
    today, routed = (plan.report[f"sample: swaps, {name}"].value for name in ("today", "lorapick, no pins"))
    assert today > routed > 0
    removed = plan.report["sample: swaps that the policy removes"]
    assert removed.value == pytest.approx(1 - routed / today)


def test_the_curve_rises_to_all(plan):
    (chart,) = plan.report.charts
    curve = chart.curves[0].values
    assert (chart.xs[0], chart.xs[-1], curve[0], curve[-1]) == (0.0, 6.0, 0.0, 100.0)
    assert list(curve) == sorted(curve)


def test_the_verdict_comes_first_in_title_figures_notes_and_section(plan):
    first = plan.report.figures[0]
    assert first.name == "verdict" and plan.report.title.endswith(f": {first.value}")
    assert plan.report.notes[0].startswith(f"Verdict: {first.value}. ")
    assert plan.snippet.startswith(f"# Verdict: {first.value}. ")


@pytest.fixture(scope="module")
def measures():
    (found,) = play([Case(name="x", policy="weighted", pins={})], summary().sample, fleet=fleet(), options=OPTIONS)
    return msgspec.structs.replace(found, start=0.0, end=100.0, pods=2)


def swapping(measures, swaps, p95):
    latency = msgspec.structs.replace(measures.latency, p95=p95)
    return msgspec.structs.replace(measures, swaps=swaps, latency=latency)


@pytest.mark.parametrize(
    ("played", "words", "why"),
    [
        (((9, 0.2), (0, 0.1), (0, 0.1)), "no pins needed", "nothing swaps"),
        (((9, 0.2), (0, 0.1), (50, 0.1)), "do not pin", "0.25 swaps/s/pod instead of 0."),
        (((9, 0.2), (303, 0.1), (282, 0.1)), "no help that one could tell", "from 303 to 282"),
        (((9, 0.2), (40_100, 0.1), (41_000, 0.1)), "do not pin", "205 swaps/s/pod instead of 200"),
        (((9, 0.2), (10_000, 0.1), (9_500, 0.1)), "hardly worth it", "5.0 % of the swaps"),
        (((9, 0.2), (1_000, 0.1), (500, 0.1)), "pin", "50.0 % of the swaps"),
        (((9, 0.2), (1_000, 0.1), (500, 0.2)), "weigh it", "from 100 ms to 200 ms"),
    ],
)
def test_each_outcome_has_its_verdict(plan, measures, played, words, why):
    found = verdict(plan.advice, Outcome((), tuple(swapping(measures, *each) for each in played), ()))
    assert found.words == words and why in found.why


def test_what_was_left_out_of_damaged_logs_is_told_and_counted():
    logs = msgspec.structs.replace(summary(), damaged=1234, skipped=("logs/a.parquet", "logs/b\x1b.csv.gz"))
    found = pin_plan(logs, fleet(), options=OPTIONS).report
    told = "\n".join(found.notes)
    for words in ("1,234 lines damaged", "2 files: logs/a.parquet, logs/b\\x1b.csv.gz", "How many requests"):
        assert words in told
    assert (found["rows left out"].value, found["damaged files left out"].value) == (1237, 2)
    assert "logs/a.parquet" in found["damaged files left out"].formula


@pytest.mark.parametrize(
    ("column", "base", "without", "words"),
    [
        ("model", (), 3, "name the base model with --base"),
        ("request.model_name", (), 0, "name the base model with --base"),
        ("model", ("llama",), 0, "yet no row names llama"),
        ("model", ("llama",), 3, None),
        ("lora_name", (), 0, None),
    ],
)
def test_a_column_of_models_may_have_the_base_model_in_it(column, base, without, words):
    logs = msgspec.structs.replace(summary(), columns={"adapter": column, "time": "ts"}, without_adapter=without)
    told = "\n".join(of_logs(logs, msgspec.structs.replace(OPTIONS, base=base)))
    assert f"Columns taken for adapter: {column}; time: ts; tokens of prompts: none" in told
    assert ("was taken for the adapter" in told) is (words is not None) and (words or "") in told


def test_short_logs_do_not_tell_who_is_new():
    assert not list(of_newcomers(summary()))
    (told,) = of_newcomers(msgspec.structs.replace(summary(), end=2 * DAY))
    assert "6 days or more" in told and "these have 2." in told


def test_one_is_no_plural():
    logs = summary()
    logs = msgspec.structs.replace(logs, adapters=logs.adapters[:1], without_adapter=1)
    found = pin_plan(logs, PinFleet(pods=fleet().pods[:1], named=False), options=OPTIONS).report
    assert found.title.startswith("pins for 1 adapter on 3 slots of 1 pod:")
    assert "1 request for the base model" in "\n".join(found.notes)


@pytest.mark.parametrize("suffix", ["", ".txt", ".yaml", ".json"])
def test_rates_of_the_busiest_time_are_a_list_that_the_gate_reads(suffix):
    logs = summary()
    odd = [msgspec.structs.replace(logs.adapters[-1], adapter=name) for name in ("a b", "-x", "y#z")]
    gone = msgspec.structs.replace(logs.adapters[-1], adapter="gone", last=DAY)
    logs = msgspec.structs.replace(logs, adapters=(*logs.adapters, *odd, gone))
    listed = parse(today_list(logs, suffix=suffix).encode(), file=f"today{suffix}").adapters
    names = [*NAMES, "-x", "y#z"] if suffix in (".yaml", ".json") else list(NAMES)
    assert [each.name for each in listed] == names
    assert listed[0].rate == pytest.approx(60 / 5.9 * 5000 / logs.requests, rel=1e-5)


def test_without_a_sample_rates_are_means():
    logs = msgspec.structs.replace(summary(), sample=LogSample(start=0.0, length=0.0, arrivals=()))
    assert busiest_rate(logs) == pytest.approx(10_000 / (30 * DAY))


def test_notes_say_what_was_left_out(plan):
    told = "\n".join(plan.report.notes)
    for words in ("3 requests for the base model", "1 row without a time", "2 rows older"):
        assert words in told


def test_names_with_control_characters_are_escaped():
    logs = summary()
    odd = msgspec.structs.replace(logs.adapters[0], adapter="a\x1b[31mb")
    found = pin_plan(msgspec.structs.replace(logs, adapters=(odd, *logs.adapters[1:])), fleet(), options=OPTIONS).report
    told = [*found.notes, *(text for table in found.tables for row in table.rows for text in row)]
    assert all(text.isprintable() for text in told) and "a\\x1b[31mb" in told


def test_a_fleet_with_room_for_all_needs_no_pins():
    found = pin_plan(summary(count=100, every=1.0), fleet(slots=8), options=OPTIONS)
    assert any("may be chance" in note for note in found.report.notes)


def test_logs_without_a_sample_are_not_played():
    logs = summary()
    logs = msgspec.structs.replace(logs, sample=msgspec.structs.replace(logs.sample, arrivals=()))
    found = pin_plan(logs, fleet(), options=OPTIONS)
    assert any("nothing was simulated" in note for note in found.report.notes)
    assert found.report["whole period: swaps, today"].value > 0


def test_same_seed_same_report(plan):
    assert pin_plan(summary(), fleet(), options=OPTIONS).report == plan.report


def test_each_policy_can_be_todays():
    for policy in POLICIES:
        (measures,) = play(
            [Case(name="today", policy=policy, pins={})], summary(count=5).sample, fleet=fleet(), options=OPTIONS
        )
        assert measures.served + measures.in_flight == measures.arrivals > 0


def test_recorded_requests_keep_their_times_and_get_lengths_where_logs_tell_none():
    sample = LogSample(
        start=0.0,
        length=60.0,
        arrivals=(LogArrival(at=7.0, adapter="a"), LogArrival(at=9.5, adapter="b", prompt_tokens=0, output_tokens=3)),
    )
    first, second = recorded(sample, PinOptions(prompt=30, output=20), lead=60.0)
    assert (first.t, first.prompt_tokens, first.output_tokens) == (60.0, 30, 20)
    assert (second.t, second.adapter, second.prompt_tokens, second.output_tokens) == (62.5, "b", 1, 3)


def test_slots_that_leave_no_memory_are_refused():
    with pytest.raises(ValueError, match="1000 slots of rank 16 leave no memory"):
        check_fleet(fleet(slots=1000), OPTIONS)


def test_pins_of_the_configuration_are_in_every_case(plan):
    declared = (Adapter(name="tenant-6", declared=True, pin=PinSpec(replicas=1)),)
    where = fleet(declared=declared)
    found = pin_plan(summary(), where, options=OPTIONS)
    assert found.advice.own == ("tenant-6",)
    assert [list(case.pins) for case in cases_of(found.advice, where, options=OPTIONS)] == [
        ["tenant-6"],
        ["tenant-6"],
        ["tenant-6", "tenant-1"],
    ]


# -- the configuration's section


def test_the_section_without_a_configuration_says_how_many(plan):
    settings = parse_settings(plan.snippet.encode() + b"discovery: {file: pods.yaml}", file="x", policies=POLICIES)
    assert {each.name: each.pin for each in settings.adapters} == {
        "tenant-1": PinSpec(replicas=1),
        "tenant-2": PinSpec(replicas=1),
    }


def test_the_section_keeps_what_the_configuration_has():
    before = parse_settings(CONFIG, file="x", policies=POLICIES)
    where = PinFleet(
        pods=tuple(
            msgspec.structs.replace(pod, limits=PodLimits(max_loras=4)) for pod in before.discovery.pods
        ),
        named=True,
        declared=before.adapters,
    )  # fmt: skip
    found = pin_plan(summary(), where, options=OPTIONS, section=section_of(CONFIG))
    head, _, tail = CONFIG.decode().partition("adapters:")
    merged = head + found.snippet + "discovery:" + tail.partition("discovery:")[2]
    after = parse_settings(merged.encode(), file="x", policies=POLICIES)
    assert [each.name for each in after.adapters[:4]] == ["tenant-1", "tenant-2", "yes", "tenant-6"]
    for old, new in zip(before.adapters, after.adapters, strict=False):
        assert msgspec.structs.replace(new, pin=old.pin) == old
    pods = {each.adapter: each.pods for each in found.advice.pins}
    assert {each.name: each.pin.pods for each in after.adapters if each.pin is not None} == {
        **pods,
        "tenant-6": ("pod-2",),
    }
    assert "tenant-1" in pods


def test_nothing_to_pin_is_no_section():
    assert pin_plan(summary(), fleet(slots=1), options=OPTIONS).snippet == ""
