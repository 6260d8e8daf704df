"""Pins, groups, schedules, triggers and parts of scenario files; days, zones, labels, storage."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import AffinityGroup, PinSpec, Schedule, Trigger
from lorapick.sim.build import pod_config, pods_of, world_of
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.tally import Tally
from lorapick.wire.config import ConfigError

DAY = '{for: 20s, warm_up: 5s, window: 1s, from: "09:00", date: 2026-03-02, timezone: America/New_York}'


def read(text="", **overrides):
    return parse_scenario(SCENARIO + text, file="s.yaml", policies=POLICIES, overrides=overrides)


def problems(text="", **overrides):
    with pytest.raises(ConfigError) as caught:
        read(text, **overrides)
    return str(caught.value)


def test_pins_are_those_of_the_configuration():
    scenario = read(
        "pins:\n"
        "  - {adapters: {top: 2}, selector: {zone: west}, reserve: true}\n"
        "  - {adapter: adapter-4, pods: [pod-02]}\n"
    )
    west = PinSpec(selector={"zone": "west"}, reserve=True)
    assert {each.name: each.pin for each in scenario.settings.adapters} == {
        "adapter-1": west,
        "adapter-2": west,
        "adapter-3": None,
        "adapter-4": PinSpec(pods=("pod-02",)),
    }
    world = world_of(scenario, policy="weighted", seed=1, observer=Tally(start=0.0, window=1.0))
    assert world.fleet.state.pins.keys() == {"adapter-1", "adapter-2", "adapter-4"}


@pytest.mark.parametrize("count", [0, 3])
def test_pins_say_how_many_pods_prefill(count):
    scenario = read(f"pins: [{{adapter: adapter-1, replicas: 2, prefill_replicas: {count}}}]\n")
    assert scenario.settings.adapters[0].pin == PinSpec(replicas=2, prefill_replicas=count)


def test_a_pin_to_pods_that_prefill_alone_is_one():
    pin = read("pins: [{adapter: adapter-1, prefill_replicas: 1}]\n").settings.adapters[0].pin
    assert pin == PinSpec(prefill_replicas=1)
    assert "a pin needs replicas, pods or selector" in problems("pins: [{adapter: adapter-1, prefill_replicas: 0}]\n")


def test_groups_schedules_and_triggers_are_those_of_the_configuration():
    settings = read(
        "groups: [{name: documents, first: adapter-1, then: [adapter-2, adapter-3]}]\n"
        'schedules: [{adapters: [adapter-3], cron: "45 7 * * mon-fri", timezone: America/New_York, for: 1h}]\n'
        'triggers: [{event: login, preload: "{tenant}", for: 10m}, {event: upload, preload: adapter-1, for: 1m}]\n'
        "weekend: [adapter-4]\n",
        run=DAY,
    ).settings
    assert settings.groups == (AffinityGroup(name="documents", first="adapter-1", then=("adapter-2", "adapter-3")),)
    assert settings.schedules == (
        Schedule(adapters=("adapter-3",), cron="45 7 * * mon-fri", timezone="America/New_York", lasts=3600.0),
    )
    assert settings.triggers == (
        Trigger(event="login", preload="{tenant}", lasts=600.0),
        Trigger(event="upload", preload="adapter-1", lasts=60.0),
    )
    assert [each.weekend for each in settings.adapters] == [None, None, None, "deprioritize"]


def test_placement_is_a_section_of_the_settings():
    settings = read(settings="{placement: {enabled: false, tick: 2s, replicas: auto}}").settings.placement
    assert (settings.enabled, settings.tick, settings.replicas) == (False, 2.0, "auto")


def test_parts_are_reported_by_themselves():
    scenario = read("parts: {popular: {top: 1}, others: [adapter-3, adapter-2]}\nin_periods: [hit_ratio]\n")
    assert scenario.parts == {"popular": ("adapter-1",), "others": ("adapter-3", "adapter-2")}
    assert scenario.in_periods == ("hit_ratio",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pins: [{adapter: adapter-9, replicas: 1}]", "pins[0].adapter: is no adapter of this scenario"),
        ("pins: [{replicas: 1}]", "pins[0]: must have either adapter or adapters"),
        ("pins: [{adapter: adapter-1, adapters: [adapter-2], replicas: 1}]", "must have either adapter or adapters"),
        ("pins: [{adapter: adapter-1}]", "a pin needs replicas, pods or selector"),
        ("pins: [{adapter: adapter-1, pods: [pod-09]}]", 'pins[0].pods[0]: must be "pod-01" or "pod-02"'),
        (
            "pins: [{adapter: adapter-1, replicas: 1}, {adapters: {top: 2}, replicas: 1}]",
            "pins[1]: pins adapter-1, which a pin before it does already",
        ),
        ("groups: [{name: g, first: adapter-1, then: [nobody]}]", "groups[0].then[0]: is no adapter of this scenario"),
        ("triggers: [{event: e, preload: nobody, for: 1m}]", "triggers[0].preload: is no adapter of this scenario"),
        ("parts: {a: {top: 2}, b: {last: 3}}", "parts.b: has adapter-2, which a has already"),
        ("in_periods: [hits]", "in_periods[0]: must be"),
        (
            'schedules: [{adapters: [adapter-1], cron: "0 9 * * *", timezone: UTC, for: 1h}]',
            "schedules: needs to know on which day the run begins; for example run: {date:",
        ),
        ("weekend: {last: 1}", "weekend: needs to know on which day the run begins"),
        (
            "settings: {placement: {forecast: blend}}",
            "settings.placement.forecast: needs to know on which day the run begins",
        ),
    ],
)
def test_mistakes(text, message):
    assert message in problems(text + "\n")


def test_a_day_makes_the_picker_know_the_time():
    assert read().run.unix is None
    # 09:00 in New York on the second of March is 14:00 UTC.
    assert read(run=DAY).run.unix == 1772460000.0
    world = world_of(read(run=DAY), policy="weighted", seed=1, observer=Tally(start=0.0, window=1.0))
    assert world.setup.midnight == 1772460000.0
    assert read(run="{for: 20s, date: 2026-03-02}").run.unix == 1772409600.0


def test_the_time_of_day_is_that_of_the_clocks_on_a_day_on_which_they_change():
    # On the eighth of March New York's clocks leave out the hour from two to three.
    begin = read(run='{for: 20s, from: "09:00", date: 2026-03-08, timezone: America/New_York}').run.unix
    assert begin == 1772974800.0


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("{for: 20s, date: 2026-02-30}", "run.date: must be a day"),
        ("{for: 20s, date: 20260302}", "run.date: must be a day"),
        ("{for: 20s, date: today}", "run.date: must be a day"),
        ("{for: 20s, timezone: UTC}", "run.timezone: says nothing without a date"),
        ("{for: 20s, date: 2026-03-02, timezone: Mars}", "must be a time zone of the IANA database"),
    ],
)
def test_mistakes_of_days(run, message):
    assert message in problems(run=run)


def test_zones_and_labels_are_dealt_out_in_turn():
    overrides = {"pods": "3", "zones": "[west, east]", "labels": "{pool: [pinned, shared], tier: gold}"}
    extra = "phases: [{at: 1s, change: {add: {pod: extra}}}]\n"
    fleet = read(extra, **{f"fleet.{key}": text for key, text in overrides.items()}).fleet
    found = [(pod.name, pod.zone, pod.labels) for pod in pods_of(fleet)]
    assert found == [
        ("pod-01", "west", {"pool": "pinned", "tier": "gold"}),
        ("pod-02", "east", {"pool": "shared", "tier": "gold"}),
        ("pod-03", "west", {"pool": "pinned", "tier": "gold"}),
        ("extra", "east", {"pool": "shared", "tier": "gold"}),
    ]
    assert [(pod.zone, pod.labels) for pod in pods_of(read().fleet)] == [(None, {})] * 2


def test_adapters_may_come_from_slower_storage_than_the_hardwares():
    assert pod_config(read()).swap.disk_bandwidth == 5e9
    assert pod_config(read(**{"fleet.storage": "60MB/s"})).swap.disk_bandwidth == 60e6
    for wrong in ("60MB", "fast", "0B/s", "/s"):
        assert "fleet.storage: must be a size per second" in problems(**{"fleet.storage": wrong})


@given(st.text(max_size=30))
def test_any_text_for_a_day_is_a_day_or_a_problem(text):
    quoted = text.replace("'", "''")
    with contextlib.suppress(ConfigError):
        assert read(run=f"{{for: 20s, date: '{quoted}'}}").run.unix % 86_400 == 0
