"""Whole files: what they come to, and what is said about each mistake."""

from pathlib import Path

import pytest
from epp_kit import FILES, HEAD, parse
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.picking.policies import make_policy
from lorapick.model.disaggregation import Choice
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import TYPES, is_endpoint_picker, with_endpoint_picker
from lorapick.wire.config.epp.further_sections import GATES

CONFIGURATIONS = sorted(path for path in FILES.glob("*.yaml") if path.name != "endpoints.yaml")


def blocks():
    text = (Path(__file__).parent / "errors.txt").read_text().split("\n", 1)[1]
    for block in text.strip().split("\n\n"):
        rows = block.split("\n")
        expected = [row.removeprefix("=> ") for row in rows if row.startswith("=> ")]
        yield pytest.param("\n".join(row for row in rows if not row.startswith("=> ")), expected, id=expected[0][:60])


@pytest.mark.parametrize(("text", "messages"), [*blocks()])
def test_each_mistake_gets_its_messages(text, messages):
    with pytest.raises(ConfigError) as caught:
        parse(HEAD + text + "\n")
    assert str(caught.value).splitlines() == messages


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_files_as_guides_have_them_load_and_run(path):
    text = path.read_text()
    assert is_endpoint_picker(text)
    picker = parse(text)
    changed = with_endpoint_picker(Settings(), picker)
    assert changed.disaggregation.choice is Choice.INDEPENDENT
    assert make_policy(changed.picking).name == changed.picking.policy == "endpoint-picker-config"
    assert all(part.does for part in picker.parts)
    assert [part.line for part in picker.parts if part.line is None] == [
        None for part in picker.parts if not part.field
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        "kind: Other",
        "kind: {a: 1}",
        "- kind: EndpointPickerConfig",
        "kind: EndpointPickerConfig\nkind: EndpointPickerConfig",
    ],
)
def test_what_is_no_such_file_is_refused(text):
    with pytest.raises(ConfigError):
        parse(text)
    assert is_endpoint_picker(text) is text.startswith("kind: EndpointPickerConfig")


WORDS = [
    *TYPES,
    *GATES,
    "a",
    "decode",
    "prefill",
    "5",
    "0.5",
    "1m",
    "1Gi",
    "{}",
    "[]",
    "~",
    "true",
    "-1",
    "'x y'",
    "k=v",
]
KEYS = [
    "type",
    "name",
    "parameters",
    "pluginRef",
    "weight",
    "plugins",
    "schedulingProfiles",
    "featureGates",
    "dataLayer",
]
KEYS += [
    "flowControl",
    "requestHandler",
    "saturationDetector",
    "parser",
    "sources",
    "extractors",
    "discovery",
    "parsers",
]
KEYS += ["priorityBands", "priority", "maxRequests", "maxBytes", "defaultRequestTTL", "fairnessPolicyRef", "conditions"]
KEYS += ["deciders", "profiles", "matchLabels", "matchExpressions", "label", "threshold", "sessionIdConfig", "places"]
scalars = st.sampled_from(WORDS)


def documents(depth=4):
    if not depth:
        return scalars
    below = documents(depth - 1)
    pairs = st.dictionaries(st.sampled_from(KEYS), below, max_size=4)
    mapping = pairs.map(lambda found: "{" + ", ".join(f"{key}: {value}" for key, value in found.items()) + "}")
    return scalars | mapping | st.lists(below, max_size=3).map(lambda found: "[" + ", ".join(found) + "]")


def taken_or_refused(text):
    try:
        picker = parse(text)
    except ConfigError:
        return
    make_policy(with_endpoint_picker(Settings(), picker).picking)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), documents(), max_size=5))
def test_whatever_is_written_is_taken_or_refused(sections):
    text = HEAD + "".join(f"{key}: {value}\n" for key, value in sections.items())
    taken_or_refused(text)


plugins = st.builds(
    "{{type: {}, parameters: {}}}".format,
    st.sampled_from([*TYPES]),
    st.dictionaries(st.sampled_from(KEYS), documents(2), max_size=2).map(
        lambda found: "{" + ", ".join(f"{key}: {value}" for key, value in found.items()) + "}"
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(plugins, max_size=4))
def test_whatever_parameters_are_written(found):
    taken_or_refused(f"{HEAD}plugins: [{', '.join(found)}]")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_bytes(content):
    for whole in (content, HEAD.encode() + content if isinstance(content, bytes) else HEAD + content):
        is_endpoint_picker(whole)
        try:
            parse(whole)
        except ConfigError:
            continue
