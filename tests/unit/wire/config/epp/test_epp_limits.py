"""What keeps requests back while the fleet is busy, as files say it."""

import pytest
from epp_kit import HEAD, parse

from lorapick.model.bands import Band, Ceiling, CeilingSettings, ChanceSettings, SaturationSettings, Spread
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import with_endpoint_picker


def admission(*plugins, flow="{}", gate="[flowControl]"):
    listed = ", ".join(("{type: queue-scorer}", *plugins))
    text = f"featureGates: {gate}\nplugins: [{listed}]\nflowControl: {flow}\n"
    return with_endpoint_picker(Settings(), parse(HEAD + text)).admission


def limited(type_, parameters="{}"):
    plugin = f"{{type: {type_}, name: limit, parameters: {parameters}}}"
    return admission(plugin, flow="{usageLimitPolicyPluginRef: limit}").ceilings


@pytest.mark.parametrize("gate", ["[]", "[flowControl]"])
def test_the_admitter_is_asked_because_it_is_there(gate):
    assert admission(gate=gate).chance is None
    assert admission("{type: probabilistic-admitter}", gate=gate).chance == ChanceSettings(
        queue=5.0, kv=0.8, power=5.0, factor=300.0
    )
    written = "{queueDepthThreshold: 9, kvCacheUtilThreshold: 0.7, power: 2, k: 10.5}"
    assert admission(f"{{type: probabilistic-admitter, parameters: {written}}}", gate=gate).chance == ChanceSettings(
        queue=9, kv=0.7, power=2.0, factor=10.5
    )


@pytest.mark.parametrize(
    ("type_", "parameters", "expected"),
    [
        ("static-usage-limit-policy", "{}", None),
        ("static-usage-limit-policy", "{threshold: 1.2}", None),
        ("static-usage-limit-policy", "{threshold: 0.8}", CeilingSettings(spread=Spread.SAME, most=0.8)),
        ("soft-reflective-ceiling-policy", "{}", CeilingSettings(spread=Spread.REFLECTED)),
        ("priority-holdback-policy", "{minCeiling: 0.5}", CeilingSettings(spread=Spread.RANK, least=0.5, most=1.0)),
        (
            "priority-holdback-policy",
            "{shape: linear, domain: value, minCeiling: 0.0, maxCeiling: 0.9}",
            CeilingSettings(spread=Spread.VALUE, least=0.0, most=0.9),
        ),
        (
            "priority-holdback-policy",
            '{domain: explicit, ceilings: {0: 0.5, "-1": 0.5, 10: 1.0}}',
            CeilingSettings(
                spread=Spread.LISTED,
                listed=(Ceiling(priority=10, most=1.0), Ceiling(priority=0, most=0.5), Ceiling(priority=-1, most=0.5)),
            ),
        ),
    ],
)
def test_usage_limits_are_ceilings(type_, parameters, expected):
    assert limited(type_, parameters) == expected


def test_only_the_one_that_is_named_counts_and_only_with_the_gate():
    plugin = "{type: soft-reflective-ceiling-policy}"
    assert admission(plugin).ceilings is None
    flow = "{usageLimitPolicyPluginRef: soft-reflective-ceiling-policy}"
    assert admission(plugin, flow=flow).ceilings == CeilingSettings(spread=Spread.REFLECTED)
    assert admission(plugin, flow=flow, gate="[]").ceilings is None


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("{}", 'the key "minCeiling" is missing'),
        ("{minCeiling: 0.9, maxCeiling: 0.9}", "must be below maxCeiling, which is 0.9"),
        ("{minCeiling: 1.0}", "must be below maxCeiling, which is 1"),
        ("{minCeiling: 0.1, maxCeiling: 1.5}", "must be a share"),
        ("{minCeiling: 0.1, shape: sigmoid}", 'must be "linear"'),
        ("{minCeiling: 0.1, ceilings: {0: 1.0}}", "must not be there without domain"),
        ("{domain: explicit}", 'the key "ceilings" is missing'),
        ("{domain: explicit, ceilings: {0: 1.0}, maxCeiling: 1.0}", "must not be there with domain"),
        ("{domain: explicit, ceilings: {0: 0.9, 10: 0.8}}", "must be at most that of priority 10, which is 0.8"),
        ("{domain: explicit, ceilings: {high: 0.9}}", "must be a priority"),
        ("{domain: explicit, ceilings: {0: 1.1}}", "must be a share"),
    ],
)
def test_ceilings_that_cannot_be(parameters, said):
    with pytest.raises(ConfigError, match=said):
        limited("priority-holdback-policy", parameters)


@pytest.mark.parametrize(
    ("plugins", "said"),
    [
        (["{type: priority-holdback-policy}"], 'priority-holdback-policy needs "minCeiling" in it'),
        (["{type: soft-reflective-ceiling-policy, parameters: {k: 1}}"], "unknown key"),
        (["{type: probabilistic-admitter, parameters: {power: 0}}"], "above 0"),
        (["{type: probabilistic-admitter, parameters: {queueDepthThreshold: 0}}"], "at least 1"),
        (["{type: probabilistic-admitter}", "{type: probabilistic-admitter, name: b}"], "there may be one"),
    ],
)
def test_plugins_that_cannot_be(plugins, said):
    with pytest.raises(ConfigError, match=said):
        admission(*plugins)


def test_bytes_are_bounded_in_all_and_by_priority_and_0_is_no_bound():
    found = admission(
        flow="{maxBytes: 2Gi, defaultPriorityBand: {maxBytes: 1M},"
        " priorityBands: [{priority: 10, maxBytes: 1Gi, maxRequests: 5}, {priority: 5, maxBytes: 0}]}"
    )
    assert found.max_bytes == 2 * 2**30
    assert found.bands == (
        Band(priority=10, max_queued=5, max_bytes=2**30),
        Band(priority=5),
        Band(max_bytes=10**6),
    )
    assert admission(flow="{maxBytes: 0}").max_bytes is None
    assert admission(flow="{maxBytes: 1, priorityBands: [{priority: 1, maxBytes: 1}]}", gate="[]").max_bytes is None


def test_the_default_policy_is_there_only_where_no_other_is_named():
    plugin = "plugins: [{type: queue-scorer}, {type: soft-reflective-ceiling-policy}]\n"
    named = "flowControl: {usageLimitPolicyPluginRef: soft-reflective-ceiling-policy}\n"
    for text, there in ((plugin, True), (plugin + named, False)):
        types = [part.what for part in parse(f"{HEAD}featureGates: [flowControl]\n{text}").parts]
        assert ("static-usage-limit-policy" in types) is there


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("requests", SaturationSettings(requests=7)),
        ("tokens", SaturationSettings(tokens=9000)),
        ("hybrid", SaturationSettings(requests=7, tokens=9000)),
    ],
)
def test_what_is_in_flight_saturates_where_its_detector_is_named(mode, expected):
    parameters = f"{{concurrencyMode: {mode}, maxConcurrency: 7, maxTokenConcurrency: 9000}}"
    plugin = f"{{type: concurrency-detector, parameters: {parameters}}}"
    flow = "{saturationDetector: {pluginRef: concurrency-detector}}"
    found = admission(plugin, flow=flow)
    assert (found.saturation, found.ceilings) == (expected, CeilingSettings(spread=Spread.SAME, full=True))
    without = admission(plugin, flow=flow, gate="[]")
    assert (without.saturation, without.ceilings) == (expected, None)
    held = "{type: priority-holdback-policy, parameters: {minCeiling: 0.5}}"
    both = (
        "{saturationDetector: {pluginRef: concurrency-detector}, usageLimitPolicyPluginRef: priority-holdback-policy}"
    )
    limits = admission(plugin, held, flow=both).ceilings
    assert limits == CeilingSettings(spread=Spread.RANK, least=0.5, most=1.0, full=True)
    assert admission(plugin).saturation == SaturationSettings(), "it is not named"
