"""`arrivals:` of scenario files."""

import contextlib

import pytest

from lorapick.sim.recorded_text import Recordings
from lorapick.sim.scenario import AdapterPlan
from lorapick.sim.traffic_text import MAIN, When, streams
from lorapick.sim.workload.popularity import EqualShares, Zipf
from lorapick.sim.workload.processes import (
    Burst,
    Diurnal,
    FlashCrowd,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Profile,
    State,
)
from lorapick.sim.workload.spec import Sessions
from lorapick.wire.config.document import Refused, Report, parse_document

PLAN = AdapterPlan(names=("a", "b", "c", "d"), popularity=Zipf(1.0))
WHEN = When(begin=3600.0, length=600.0)
NONE = Recordings(open_lines=lambda _: iter(()), block_tokens=16)
TOKENS = "tokens: {prompt: 10, output: 5}"


def read(text):
    return streams(parse_document(text, Report("s.yaml")), PLAN, when=WHEN, recordings=NONE)


def refusal(text):
    report = Report("s.yaml")
    with contextlib.suppress(Refused):
        streams(parse_document(text, report), PLAN, when=WHEN, recordings=NONE)
    return "; ".join(f"{each.field}: {each.message} {each.hint}" for each in report.problems)


def test_one_flow_takes_what_the_scenario_says():
    (flow,) = read(f"{{rate: 6/min, {TOKENS}}}")
    assert (flow.name, flow.adapters, flow.popularity, flow.process) == (MAIN, PLAN.names, Zipf(1.0), Poisson(0.1))


@pytest.mark.parametrize(
    ("text", "process"),
    [
        ("process: poisson, rate: 2/s", Poisson(2.0)),
        ("process: {gamma: {cv: 3}}, rate: 2/s", Gamma(2.0, 3.0)),
        ('process: {diurnal: {ratio: 4, peak: "14:00"}}, rate: 2/s', Diurnal(rate=2.0, ratio=4.0, peak=50_400.0)),
        (
            "process: {flash: {at: 1m, factor: 10, decay: 20s}}, rate: 2/s",
            FlashCrowd(rate=2.0, at=60.0, factor=10.0, decay=20.0),
        ),
        ("process: {hawkes: {branching: 0.5, decay: 3s}}, rate: 2/s", Hawkes(2.0, 0.5, 3.0)),
        (
            "process: {mmpp: {states: [{rate: 1/s, dwell: 10s}, {rate: 9/s, dwell: 1s}]}}",
            MarkovModulated((State(1.0, 10.0), State(9.0, 1.0))),
        ),
        ("process: {profile: {rates: [1/s, 0/s], step: 30m}}", Profile((1.0, 0.0), 1800.0)),
        ('process: {burst: {count: 100, at: "01:02", over: 2s}}', Burst(100, 120.0, 2.0)),
    ],
)
def test_processes(text, process):
    assert read(f"{{{text}, {TOKENS}}}")[0].process == process


def test_several_flows_with_adapters_of_their_own():
    one, two, three = read(
        f"""
        - {{name: one, adapters: {{top: 2}}, rate: 1/s, {TOKENS}}}
        - {{name: two, adapters: {{last: 1}}, rate: 1/s, {TOKENS}, start: 1m, until: "01:05", priority: -1, tenant: t}}
        - {{name: three, adapters: [c, a], popularity: {{zipf: 2}}, rate: 1/s, {TOKENS}, shared_prefix: 64,
            sessions: {{turns: 4, think: 5s}}}}
        """
    )
    assert (one.adapters, two.adapters, three.adapters) == (("a", "b"), ("d",), ("c", "a"))
    assert (one.popularity, three.popularity) == (EqualShares(), Zipf(2.0))
    assert (two.start, two.until, two.priority, two.tenant) == (60.0, 300.0, -1, "t")
    assert (three.shared_prefix, three.sessions) == (64, Sessions(4.0, 5.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{{{TOKENS}}}", 'the key "rate" is missing'),
        (f"{{process: pois, rate: 1/s, {TOKENS}}}", "process: must be poisson or a process"),
        (f"{{process: {{gama: {{cv: 1}}}}, rate: 1/s, {TOKENS}}}", 'did you mean "gamma"?'),
        (f"{{process: {{gamma: {{}}}}, rate: 1/s, {TOKENS}}}", 'the key "cv" is missing'),
        (f"{{process: {{gamma: {{cv: 1}}}}, {TOKENS}}}", 'the key "rate" is missing'),
        (f"{{process: {{burst: {{count: 1, at: 0}}}}, rate: 1/s, {TOKENS}}}", "rate: must not stand beside burst"),
        (f"{{process: {{mmpp: {{states: []}}}}, {TOKENS}}}", "at least 2; for one state use poisson"),
        (f"{{process: {{}}, rate: 1/s, {TOKENS}}}", "must have exactly one of"),
        (f"{{process: [1], rate: 1/s, {TOKENS}}}", "must be a mapping"),
        (f"{{rate: 1/s, adapters: [e], {TOKENS}}}", "is no adapter of this scenario they are a to d"),
        (f"{{rate: 1/s, adapters: {{top: 5}}, {TOKENS}}}", "at most 4"),
        (f"{{rate: 1/s, adapters: {{middle: 1}}, {TOKENS}}}", "unknown choice of adapters"),
        (f"[{{rate: 1/s, {TOKENS}}}]", 'the key "name" is missing'),
        (f"[{{name: x, rate: 1/s, {TOKENS}}}, {{name: x, rate: 1/s, {TOKENS}}}]", "this name stands twice"),
        (f"{{rate: 1/s, sessions: {{turns: 0.5, think: 1s}}, {TOKENS}}}", "sessions.turns"),
        (f"{{rate: 1/s, adapters: [a], popularity: {{weights: [1, 2]}}, {TOKENS}}}", "one per adapter: 1"),
    ],
)
def test_mistakes(text, message):
    assert message in refusal(text)
