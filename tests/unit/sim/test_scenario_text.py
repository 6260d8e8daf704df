"""Scenario files: every key, and messages that help."""

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.model.pods import PodLimits
from lorapick.pod.values import SwapMode
from lorapick.sim.scenario import Expected, ExpectedCapacity, Period, shortened
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.workload.lengths import FixedLength, Sizes, UniformLength
from lorapick.sim.workload.popularity import EqualShares, Zipf
from lorapick.sim.workload.processes import Poisson
from lorapick.wire.config import ConfigError


def read(text, **overrides):
    keys = {name.replace("__", "."): value for name, value in overrides.items()}
    return parse_scenario(text, file="s.yaml", policies=POLICIES, overrides=keys)


def changed(**sections):
    document = yaml.safe_load(SCENARIO)
    for name, value in sections.items():
        if value is None:
            document.pop(name)
        else:
            document[name] = value
    return yaml.safe_dump(document, sort_keys=False)


def problems(text, **overrides):
    with pytest.raises(ConfigError) as caught:
        read(text, **overrides)
    return str(caught.value)


def test_a_small_scenario():
    scenario = read(SCENARIO)
    assert (scenario.name, scenario.assumes, scenario.source) == ("tiny", ("nothing",), "none")
    assert scenario.fleet.limits == PodLimits(max_loras=2, max_cpu_loras=4, max_num_seqs=16)
    assert (scenario.fleet.mode, scenario.fleet.names()) == (SwapMode.DRAIN, ("pod-01", "pod-02"))
    assert scenario.adapters.names == ("adapter-1", "adapter-2", "adapter-3", "adapter-4")
    (flow,) = scenario.workload.flows
    assert (flow.process, flow.popularity) == (Poisson(20.0), Zipf(1.0))
    assert flow.sizes == Sizes(FixedLength(50), UniformLength(4, 12))
    assert (scenario.run.length, scenario.run.warm_up, scenario.run.window) == (20.0, 5.0, 1.0)
    assert scenario.policies == tuple(dict.fromkeys([*POLICIES, "weighted"]))
    assert [adapter.declared for adapter in scenario.settings.adapters] == [True] * 4


def test_the_shared_example():
    """The one that several parts of the project agreed on."""
    scenario = read(
        """
        name: war-story
        source: article section 08
        assumes: ["50 req/s: the article's before implies 4, its after about 50"]
        fleet: {pods: 8, slots: 4, cpu_slots: 64, mode: drain, hardware: h100-llama70b-int4}
        adapters: {count: 40, rank: 16, popularity: {zipf: 1.0}}
        arrivals: {rate: 50/s, process: poisson, tokens: {prompt: 200, output: [4, 12]}}
        phases:
          - {at: 10:15, change: {split: {top: 20, into: "{name}-experiment", share: 0.5}, rate: "+5%"}}
        run: {from: "09:00", to: "16:00", seed: 1}
        expect:
          - {metric: p95_ms, article: {before: 220, after: 2200}}
          - {metric: swap_rate, article: {before: 0.04, after: 1.8}}
        """
    )
    assert scenario.title == "war-story"
    assert len(scenario.settings.adapters) == 60
    # The two periods of the article need not be written down.
    assert scenario.periods == (
        Period(name="before", start=0.0, end=4500.0),
        Period(name="after", start=4500.0, end=25_200.0),
    )


def test_times_of_day_and_periods():
    scenario = read(
        changed(
            run={"from": "09:00", "to": "10:30", "warm_up": "10m"},
            periods=[{"name": "a", "from": "09:15", "to": "09:30"}, {"name": "b", "from": "20m", "to": "1h"}],
        )
    )
    assert (scenario.run.begin, scenario.run.length, scenario.run.window) == (32_400.0, 5400.0, 15.0)
    assert scenario.workload.clock == 32_400.0
    assert scenario.periods == (
        Period(name="a", start=900.0, end=1800.0),
        Period(name="b", start=1200.0, end=3600.0),
    )


def test_what_the_article_says_is_a_number_or_words():
    scenario = read(
        changed(
            periods=[{"name": "x", "from": "6s", "to": "8s"}],
            expect=[
                {"metric": "p95_ms", "policy": "weighted", "article": 220, "note": "n"},
                {"metric": "hit_ratio", "article": {"x": "under 10 %"}},
            ],
        )
    )
    assert scenario.expect == (
        Expected(metric="p95_ms", policy="weighted", article=220.0, note="n"),
        Expected(metric="hit_ratio", article="under 10 %", period="x"),
    )


def test_what_the_article_says_of_capacity():
    scenario = read(
        changed(
            expect=[{"capacity": "gain", "policy": "weighted", "article": 0.5}, {"metric": "p95_ms", "article": 1}],
            without_swaps={"fleet.slots": 4},
        )
    )
    assert scenario.expect_capacity == (ExpectedCapacity(capacity="gain", policy="weighted", article=0.5),)
    assert ([each.metric for each in scenario.expect], scenario.without_swaps) == (["p95_ms"], {"fleet.slots": "4"})
    assert 'must be "gain" or "share"' in problems(changed(expect=[{"capacity": "loss", "article": 1}]))


def test_what_the_article_says_of_a_retention_policy_is_for_that_policy():
    expect = [
        {"metric": "loads", "retention": "lru", "article": "bad"},
        {"metric": "loads", "retention": "lfu", "article": "worse"},
        {"metric": "p95_ms", "article": 1},
    ]

    def said(**overrides):
        return [each.article for each in read(changed(expect=expect), **overrides).expect]

    # Pods do as vLLM, LRU, unless told otherwise.
    assert said() == said(fleet__retention="lru") == ["bad", 1.0]
    assert (said(fleet__retention="lfu"), said(fleet__retention="cost")) == (["worse", 1.0], [1.0])
    assert 'fleet.retention: must be "lru", "lfu", "window" or "cost"' in problems(changed(), fleet__retention="mru")


def test_named_adapters_with_ranks_that_go_round():
    scenario = read(changed(adapters={"names": ["a", "b", "c"], "rank": [64, 8], "size": "10MB"}))
    assert [adapter.rank for adapter in scenario.settings.adapters] == [64, 8, 64]
    assert (scenario.adapters.size, scenario.adapters.popularity) == (10_000_000, EqualShares())


def test_settings_of_the_picker():
    scenario = read(changed(policy="gie-lora", settings={"picking": {"fallbacks": 0}, "scrape": {"interval": "250ms"}}))
    assert (scenario.settings.picking.policy, scenario.settings.picking.fallbacks) == ("gie-lora", 0)
    assert scenario.settings.scrape.interval == 0.25


def test_intervals_of_single_policies():
    assert read(SCENARIO).scrape_intervals == {"gie-default": 0.05, "gie-lora": 0.05}
    assert read(changed(scrape_intervals={"random": "2s"})).scrape_interval("random") == 2.0
    assert "must be shorter than settings.scrape.stale_after, which is 5s" in problems(
        changed(scrape_intervals={"random": "9s"})
    )
    assert 'did you mean "random"?' in problems(changed(scrape_intervals={"randon": "1s"}))


def test_overrides_stand_in_for_keys():
    scenario = read(SCENARIO, fleet__slots="3", adapters__popularity="uniform", latency_limit="2s")
    assert scenario.fleet.limits.max_loras == 3
    assert (scenario.adapters.popularity, scenario.latency_limit) == (EqualShares(), 2.0)


def test_a_family():
    scenario = read(changed(grid={"fleet.slots": [2, 4], "arrivals.rate": ["1/s"]}))
    assert scenario.grid == {"fleet.slots": ("2", "4"), "arrivals.rate": ("1/s",)}


def test_shortened():
    scenario = read(
        changed(
            periods=[{"name": "a", "from": "6s", "to": "8s"}, {"name": "b", "from": "8s", "to": "12s"}],
            expect=[{"metric": "p95_ms", "article": {"a": 1, "b": 2}}],
            phases=[{"at": "15s", "change": {"restart": {"pod": "pod-01", "down": "1s"}}}],
        )
    )
    short = shortened(scenario, 10.0)
    assert (short.run.length, short.workload.until) == (10.0, 10.0)
    assert ([each.name for each in short.periods], [each.period for each in short.expect]) == (["a"], ["a"])
    assert short.changes == ()
    for length in (5.0, 20.5):
        with pytest.raises(ValueError, match="more than the warm-up of 5s and at most 20s"):
            shortened(scenario, length)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"fleet": {"pods": 0, "slots": 2}}, "s.yaml:7:9: fleet.pods: must be a whole number of at least 1"),
        ({"fleet": {"pods": 1}}, 'fleet: the key "slots" is missing'),
        ({"fleet": {"pods": 1, "slots": 4, "cpu_slots": 2}}, "fleet.cpu_slots: must be at least slots, which is 4"),
        ({"fleet": {"pods": 1, "slots": 1, "hardware": "h100-lama8b"}}, 'did you mean "h100-llama8b"?'),
        (
            {"fleet": {"pods": 1, "slots": 1, "slotz": 1}},
            'fleet.slotz: unknown key (found "slotz"); did you mean "slots"?',
        ),
        ({"fleet": {"pods": 1, "slots": 1, "memory": "unified"}}, "unified memory and merged weights know no drain"),
        ({"fleet": {"pods": 1, "slots": 500}}, "500 slots of rank 16 leave no memory for KV on h100-llama8b; at most"),
        ({"adapters": {"count": 1, "rank": 128}}, "take adapters up to rank 64, and some have rank 128"),
        ({"assumes": []}, "assumes: must have at least 1 item"),
        ({"source": None}, 'the key "source" is missing'),
        ({"adapters": {"count": 3, "names": ["a"]}}, "adapters: must have either count or names"),
        ({"adapters": {"count": 3, "name": "tenant"}}, "adapters.name: must contain {n}"),
        ({"run": {"for": "10s", "to": "10:00"}}, "run: must have either to (a time of day) or for (a duration)"),
        ({"run": {"from": "10:00", "to": "09:00"}}, "run: must end after it begins"),
        ({"run": {"for": "10s", "warm_up": "10s"}}, "run.warm_up: must be shorter than the run, which lasts 10s"),
        ({"policy": "wheighted"}, 'did you mean "weighted"?'),
        ({"policies": ["weighted", "weighted"]}, "stands twice"),
        ({"expect": [{"metric": "p59_ms", "article": 1}]}, 'did you mean "p99_ms"?'),
        ({"expect": [{"metric": "p95_ms", "article": {"x": 1}}]}, '"x" is no period; periods are none'),
        ({"expect": [{"metric": "p95_ms", "article": {"x": True}}]}, "must be a number or words"),
        ({"periods": [{"name": "a", "from": "8s", "to": "7s"}]}, "periods[0].to: must be after from"),
        ({"periods": [{"name": "a", "from": "8s", "to": "70s"}]}, "must lie within the run, which lasts 20s"),
        ({"grid": {"fleet.slots": []}}, "grid.fleet.slots: must have at least 1 item"),
        ({"arrivals": {"rate": "20/s"}}, 'arrivals: the key "tokens" is missing'),
        ({"adapters": {"count": 2, "popularity": {"top": 3, "share": 0.5}}}, "at most the number of adapters, 2"),
    ],
)
def test_every_mistake_says_what_would_be_right(sections, message):
    assert message in problems(changed(**sections))


def test_all_problems_come_at_once():
    text = problems(changed(fleet={"pods": 0, "slots": 2}, policy="x", run={"for": "x"}))
    assert len(text.splitlines()) == 3


def test_an_override_that_is_no_yaml_names_itself():
    assert problems(SCENARIO, fleet__slots="{").startswith("fleet.slots={:2:1: not YAML")


def test_an_override_through_a_value_is_refused():
    assert "name: must be a mapping (key: value) for name.x to be in it" in problems(SCENARIO, name__x="1")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["10s", "5/s", "x", "top", "uniform"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["top", "share", "rate", "at", "change", "split", "names", "for"]), inner, max_size=3
            )
        ),
        max_leaves=6,
    ),
    st.sampled_from(
        ["fleet", "adapters", "arrivals", "run", "phases", "periods", "expect", "settings", "grid", "policies"]
    ),
)
def test_any_section_is_read_or_refused(value, section):
    document = yaml.safe_load(SCENARIO)
    document[section] = value
    with contextlib.suppress(ConfigError):
        read(yaml.safe_dump(document))
