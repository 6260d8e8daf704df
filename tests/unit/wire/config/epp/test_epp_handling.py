"""Profile handlers and deciders: who picks which pod."""

import pytest
from epp_kit import HEAD, file, parse, scorers

from lorapick.model.disaggregation import Decide
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import with_endpoint_picker


def test_disaggregation():
    picker = file("disaggregated")
    changed = with_endpoint_picker(Settings(), picker)
    assert (changed.disaggregation.decide, changed.disaggregation.uncached_tokens) == (Decide.TOKENS, 16)
    assert changed.picking.prefix_blocks_per_pod == 20000
    profiles = changed.picking.profiles
    assert [each.type for each in profiles.decode.filters] == ["decode-filter"]
    assert scorers(profiles.prefill) == {"prefix-cache-scorer": 2.0, "topology-affinity-scorer": 1.0}
    assert profiles.prefill.scorers[1].parameters == {"places": {"host": "example.com/node"}}
    off = HEAD + (
        "plugins: [{type: disagg-profile-handler, parameters: {deciders: {prefill: d}}},"
        " {type: prefix-based-pd-decider, name: d}]\nschedulingProfiles: [{name: decode}]"
    )
    assert with_endpoint_picker(Settings(), parse(off)).disaggregation.decide is Decide.NEVER
    none = HEAD + "plugins: [{type: disagg-profile-handler}]\nschedulingProfiles: [{name: decode}]"
    assert parse(none).split.decide is Decide.NEVER


@pytest.mark.parametrize(("threshold", "split"), [(0, (Decide.ALWAYS, None)), (10, (Decide.TOKENS, 3))])
def test_the_oldest_handler_counts_characters(threshold, split):
    text = f"plugins: [{{type: pd-profile-handler, parameters: {{threshold: {threshold}}}}}]\n"
    assert parse(f"{HEAD}{text}schedulingProfiles: [{{name: prefill}}, {{name: decode}}]").split == split


BY_HEADER = HEAD + (
    "plugins: [{type: header-profile-handler, parameters: {headerName: X-Stage, defaultProfile: b}},"
    " {type: queue-scorer}]\n"
)


def test_a_header_may_choose_the_profile():
    profiles = parse(
        BY_HEADER + "schedulingProfiles: [{name: a}, {name: b, plugins: [{pluginRef: queue-scorer}]}]"
    ).profiles
    assert (profiles.chosen_by, profiles.names.keep) == ("x-stage", ("x-stage",))
    assert [each.name for each in profiles.named] == ["a", "b"]
    assert profiles.decode.name == "b"


def test_one_profile_is_that_of_every_request():
    profiles = parse(BY_HEADER + "schedulingProfiles: [{name: a}]").profiles
    assert (profiles.chosen_by, profiles.named, profiles.decode.name) == (None, (), "a")


def test_the_profile_of_requests_without_the_header_must_be_there():
    with pytest.raises(ConfigError, match='no profile is called "b"'):
        parse(BY_HEADER + "schedulingProfiles: [{name: a}, {name: c}]")
