"""Whole files: what they give, and what is said about each mistake."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, AliasTarget, PinSpec, Schedule, Trigger
from lorapick.model.arms import Mode
from lorapick.model.bands import Band, Ceiling, CeilingSettings, ChanceSettings, Ordering, SaturationSettings, Spread
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import Settings, Weights
from lorapick.wire.config import ConfigError, Problem, parse_settings, settings_hash, verbatim
from lorapick.wire.config.settings import RESERVED
from lorapick.wire.podsfile import parse_pods

EXAMPLES = Path(__file__).parents[4] / "examples"
FILES = "discovery: {file: pods.yaml}\n"


def parse(text: str | bytes) -> Settings:
    return parse_settings(text, file="l.yaml", policies=tuple(POLICIES))


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return str(caught.value).splitlines()


def test_the_example_loads_with_its_pods() -> None:
    settings = parse((EXAMPLES / "lorapick.yaml").read_bytes())
    assert settings.base_model == "meta-llama/Llama-3.1-70B-Instruct"
    assert settings.discovery.file == "pods.yaml"
    assert settings.adapters[0] == Adapter(
        name="legal-assistant-v2",
        source="/adapters/legal-assistant-v2",
        revision="7",
        rank=16,
        targets=("q", "v"),
        declared=True,
        pin=PinSpec(replicas=2),
    )
    assert settings.adapters[1].pin == PinSpec(selector={"tier": "gold"}, reserve=True)
    assert settings.adapters[1].weekend == "deprioritize"
    assert settings.aliases == (
        Alias(
            name="legal",
            to=(
                AliasTarget(adapter="legal-assistant-v2", weight=90),
                AliasTarget(adapter="legal-extract-v3", weight=10),
            ),
        ),
    )
    assert settings.groups == (AffinityGroup(name="documents", first="doc-classifier-v2", then=("legal-extract-v3",)),)
    assert settings.schedules == (
        Schedule(
            adapters=("customer-support-es",),
            cron="45 8 * * mon-fri",
            timezone="America/Mexico_City",
            replicas=2,
            lasts=34_200.0,
            selector={"zone": "west"},
        ),
    )
    assert settings.triggers == (Trigger(event="tenant.login", preload="{tenant}-assistant", replicas=1, lasts=1800.0),)
    pods = parse_pods((EXAMPLES / "pods.yaml").read_bytes(), file="pods.yaml", settings=settings)
    assert [pod.name for pod in pods] == ["pod-01", "pod-02", "pod-03", "pod-04"]
    assert {pod.base_model for pod in pods} == {settings.base_model}


def test_the_example_spells_out_the_defaults() -> None:
    """So the file stays true when a default changes."""
    given = parse((EXAMPLES / "lorapick.yaml").read_bytes())
    plain = msgspec.structs.replace(parse("discovery: {file: pods.yaml}"), slo=given.slo, objectives=given.objectives)
    intent = ("base_model", "adapters", "aliases", "groups", "schedules", "triggers")
    assert msgspec.structs.replace(plain, **{name: getattr(given, name) for name in intent}) == given


@pytest.mark.parametrize(
    "section",
    [
        "picking",
        "load_times",
        "retention",
        "pressure",
        "placement",
        "admission",
        "alerts",
        "slo",
        "budgets",
        "disaggregation",
        "scrape",
        "server",
    ],
)
def test_the_example_has_every_key(section: str) -> None:
    """A key without a value in its defaults stands there as a comment."""
    text = (EXAMPLES / "lorapick.yaml").read_text()
    tokens = ("admin_token", "admin_token_file", "metrics_token", "metrics_token_file")
    for key in (
        "envoy_admin",
        *tokens,
        "history",
        "store",
        "ttft_p95",
        "endpoint_picker_config",
        "saturation",
        "chance",
        "ceilings",
        "max_bytes",
    ):
        text = text.replace(f"  # {key}:", f"  {key}:")
    known = {
        name.replace("probation_slots_share", "probation")
        for name in getattr(Settings(), section).__struct_fields__
        if name != "profiles"  # what another file says
    }
    assert set(verbatim.read(text.encode())[section]) == known


def test_an_almost_empty_file_is_the_defaults() -> None:
    assert parse("discovery: {pods: []}") == Settings()


def test_every_section_takes_its_values() -> None:
    settings = parse("""
base_model: m
discovery: {pods: [{name: p, address: "10.0.0.1:8000", max_loras: 2}]}
defaults: {engine: sglang, max_loras: 3, max_queue: 9}
adapters: {catalogue: adapters/, list: [{name: a, size: 64MB, base_model: m2}]}
picking: {policy: round-robin, weights: {kv: 0}, affinity: {cpu: 0.5}, fallbacks: 0, prefix_blocks_per_pod: 10}
load_times: {cpu: 5ms, disk: 1s}
retention: {policy: lru, window: 1m, frequency_weight: 0, recency_weight: 2, pinned_bonus: 3}
pressure: {soft: 0.5, hard: 0.5, critical: 0.9}
admission: {max_queued: 0, max_wait: 1m, probation: {slots_share: 0.5}}
slo: {ttft_p95: 100ms}
objectives: [{name: x, priority: -1}, {name: y}]
budgets: {loads_per_pod_per_minute: 0.5, pods_loading_share: 1, scrape_core_share: 0.05}
scrape: {interval: 200ms, timeout: 100ms, stale_after: 2s, models_every: 3s}
mode: enforce
server:
  {extproc: "[::1]:9002", body: full_duplex_streamed, observe: bodies, max_body: 1MB, drain_timeout: 5s,
   envoy_admin: "envoy:9901"}
seed: 7
""")
    pod_limits = PodLimits(max_loras=3, max_queue=9)
    assert settings.discovery.pods[0] == Pod(
        name="p",
        address="10.0.0.1:8000",
        engine=settings.discovery.pods[0].engine,
        base_model="m",
        limits=msgspec.structs.replace(pod_limits, max_loras=2),
    )
    assert (settings.default_engine, settings.defaults, settings.catalogue) == ("sglang", pod_limits, "adapters/")
    assert (settings.adapters[0].size, settings.adapters[0].base_model) == (64_000_000, "m2")
    assert (settings.picking.policy, settings.picking.weights) == ("round-robin", Weights(kv=0.0))
    assert (settings.picking.affinity.cpu, settings.picking.fallbacks) == (0.5, 0)
    assert (settings.load_times.cpu, settings.load_times.disk) == (0.005, 1.0)
    assert (settings.retention.policy, settings.retention.window) == ("lru", 60.0)
    assert (settings.admission.max_queued, settings.admission.probation_slots_share) == (0, 0.5)
    assert (settings.slo.ttft_p95, settings.slo.latency_p95) == (0.1, None)
    assert [objective.priority for objective in settings.objectives] == [-1, 0]
    assert (settings.budgets.loads_per_pod_per_minute, settings.budgets.scrape_core_share) == (0.5, 0.05)
    assert (settings.scrape.interval, settings.scrape.models_every) == (0.2, 3.0)
    assert (settings.mode, settings.server.extproc, settings.server.body) == (
        Mode(),
        "[::1]:9002",
        "full_duplex_streamed",
    )
    assert (settings.server.max_body, settings.server.envoy_admin, settings.seed) == (1_000_000, "envoy:9901", 7)


def blocks() -> list[tuple[str, str]]:
    """Pairs of a text and its message."""
    text = Path(__file__).with_name("settings-errors.txt").read_text()
    return [tuple(block.strip().rsplit("\n=> ", 1)) for block in text.split("\n\n")[1:]]  # type: ignore[misc]


@pytest.mark.parametrize(("text", "problem"), blocks())
def test_one_mistake_gives_one_message(text: str, problem: str) -> None:
    assert problems(FILES + text + "\n") == [problem]


@pytest.mark.parametrize(
    ("discovery", "problem"),
    [
        ("{}", "l.yaml:1:12: discovery: must have exactly one of file, kubernetes, pods; has none"),
        (
            "{file: a, pods: []}",
            "l.yaml:1:12: discovery: must have exactly one of file, kubernetes, pods; has file and pods",
        ),
        (
            "{kubernetes: {}}",
            (
                "l.yaml:1:25: discovery.kubernetes: must have one of pool and selector; has neither; an InferencePool "
                "has a selector"
            ),
        ),
        ("pods.yaml", 'l.yaml:1:12: discovery: must be a mapping (key: value) (found "pods.yaml")'),
    ],
)
def test_discovery_has_one_kind(discovery: str, problem: str) -> None:
    assert problems(f"discovery: {discovery}\n") == [problem]


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_parts_are_refused_by_name(name: str) -> None:
    message = f"l.yaml:2:1: {name}: is reserved for a later version and not yet available; remove the key"
    assert problems(f"{FILES}{name}: {{x: 1}}\n") == [message]


def test_names_that_stand_for_two_things() -> None:
    own = "an alias needs a name of its own"
    pin, second = "adapters.list[0].pin.pods[0]", "adapters.list[1].name"
    assert problems("""base_model: base
discovery: {pods: [{name: pod-1, address: "10.0.0.1:8000"}]}
adapters: {list: [{name: a, pin: {pods: [pod-2]}}, {name: base}]}
aliases:
  - {name: a, to: [{adapter: x}]}
  - {name: base, to: [{adapter: x}]}
  - {name: b, to: [{adapter: a}]}
""") == [
        f'l.yaml:3:42: {pin}: no pod of discovery.pods has this name (found "pod-2"); did you mean "pod-1"?',
        f'l.yaml:3:59: {second}: is the base model\'s name; the engine would refuse such an adapter (found "base")',
        f'l.yaml:5:12: aliases[0].name: is the name of an adapter too (line 3); {own} (found "a")',
        f'l.yaml:6:12: aliases[1].name: is the base model\'s name; {own} (found "base")',
        'l.yaml:7:30: aliases[2].to[0].adapter: is an alias; an alias leads to adapters only (found "a")',
    ]


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    said = problems("mode: x\nsed: 1\nmode: observed\nslo: {ttft_p95: 1}\ntenants: {}\ndiscovery: {pods: [{}]}\n")
    assert [line.split(":")[1] for line in said] == ["1", "2", "3", "4", "5", "6", "6"]


def test_a_pin_says_how_many_pods_prefill() -> None:
    listed = "[{name: a, pin: {replicas: 2, prefill_replicas: 0}}, {name: b, pin: {prefill_replicas: 1}}]"
    pins = [each.pin for each in parse(f"adapters: {{list: {listed}}}\n").adapters]
    assert pins == [PinSpec(replicas=2, prefill_replicas=0), PinSpec(prefill_replicas=1)]


def test_a_file_that_is_no_mapping() -> None:
    assert problems("- a\n") == ["l.yaml:1:1: must be a mapping (key: value) (found a list)"]


def test_problems_are_values() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(FILES + "seed: -1\n")
    [problem] = caught.value.problems
    assert msgspec.to_builtins(problem) == {
        "file": "l.yaml",
        "line": 2,
        "column": 7,
        "field": "seed",
        "value": "-1",
        "message": "must be a whole number of at least 0",
        "hint": "",
    }


def test_the_hash_tells_configurations_apart_and_nothing_else() -> None:
    same = parse("discovery: {file: pods.yaml}\nseed: 0\nmode: enforce  # a comment\n")
    assert settings_hash(parse(FILES)) == settings_hash(same)
    assert settings_hash(parse(FILES + "seed: 1\n")) != settings_hash(same)
    assert len(settings_hash(same)) == 16
    assert settings_hash(Settings()) == settings_hash(
        msgspec.json.decode(msgspec.json.encode(Settings()), type=Settings)
    )


LINES = (EXAMPLES / "lorapick.yaml").read_text().splitlines(keepends=True)


@given(
    st.integers(0, len(LINES) - 1),
    st.integers(0, 140),
    st.sampled_from(["", "x", ":", "{", "]", "-", "7", "~", "*a", "\n"]),
)
def test_a_damaged_file_gives_settings_or_placed_problems(line: int, column: int, noise: str) -> None:
    damaged = LINES[line][:column] + noise + LINES[line][column + 1 :]
    text = "".join([*LINES[:line], damaged, *LINES[line + 1 :]])
    found: tuple[Problem, ...] = ()
    try:
        assert isinstance(parse(text), Settings)
    except ConfigError as error:
        found = error.problems
    assert all(1 <= problem.line <= len(LINES) + 2 and problem.message for problem in found)


def test_bands_by_priority() -> None:
    found = parse(
        "discovery: {pods: []}\nadmission: {ordering: slo, bands: [{priority: 1, max_queued: 2}, {max_queued: 3}]}"
    )
    assert found.admission.ordering is Ordering.SLO
    assert found.admission.bands == (Band(priority=1, max_queued=2), Band(max_queued=3))
    for bands, said in (
        ("[{max_queued: 1}, {max_queued: 2}]", "has more than one band without a priority"),
        ("[{priority: 1, max_queued: 1}, {priority: 1, max_queued: 2}]", "twice"),
        ("[{priority: 1}]", "must have max_queued, max_bytes or both"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse(f"discovery: {{pods: []}}\nadmission: {{bands: {bands}}}")


def test_what_keeps_requests_back_while_the_fleet_is_busy() -> None:
    admission = parse(
        "discovery: {pods: []}\nadmission: {max_bytes: 2GiB, bands: [{priority: 1, max_bytes: 100MB}],"
        " chance: {queue: 9, power: 2}, ceilings: {spread: value, least: 0.5, most: 0.9}}"
    ).admission
    assert admission.max_bytes == 2 * 2**30
    assert admission.bands == (Band(priority=1, max_bytes=100_000_000),)
    assert admission.chance == ChanceSettings(queue=9.0, power=2.0)
    assert admission.ceilings == CeilingSettings(spread=Spread.VALUE, least=0.5, most=0.9)
    in_flight = "{saturation: {requests: 100, tokens: 5000}, ceilings: {spread: same, full: true}}"
    busy = parse(f"discovery: {{pods: []}}\nadmission: {in_flight}").admission
    assert busy.saturation == SaturationSettings(requests=100, tokens=5000)
    assert busy.ceilings == CeilingSettings(spread=Spread.SAME, full=True)
    listed = "{spread: listed, listed: [{priority: 0, most: 0.5}, {priority: 9, most: 1}]}"
    found = parse(f"discovery: {{pods: []}}\nadmission: {{ceilings: {listed}}}").admission.ceilings
    assert found is not None
    assert found.listed == (Ceiling(priority=0, most=0.5), Ceiling(priority=9, most=1.0))


@pytest.mark.parametrize(
    ("ceilings", "said"),
    [
        ("{}", 'the key "spread" is missing'),
        ("{spread: steep}", "spread"),
        ("{spread: rank, least: 0.9, most: 0.5}", "must be at most most, which is 0.5"),
        ("{spread: listed}", "must have .listed. with spread: listed"),
        ("{spread: rank, listed: [{priority: 0, most: 1}]}", "must have .listed. with spread: listed"),
        ("{spread: listed, listed: [{priority: 0, most: 0.9}, {priority: 5, most: 0.8}]}", "priority 0 may not have"),
    ],
)
def test_ceilings_that_cannot_be(ceilings: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(f"discovery: {{pods: []}}\nadmission: {{ceilings: {ceilings}}}")


def test_the_busy_fleet_of_the_page_is_a_configuration() -> None:
    page = (EXAMPLES.parent / "docs" / "admission.md").read_text().partition("## A busy fleet")[2]
    block = page.partition("```yaml\n")[2].partition("```")[0]
    admission = parse(f"discovery: {{pods: []}}\n{block}").admission
    assert admission.chance == ChanceSettings()
    assert admission.ceilings == CeilingSettings(spread=Spread.RANK, least=0.6, most=1.0)
