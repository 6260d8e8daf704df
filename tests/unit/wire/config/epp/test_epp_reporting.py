"""Which figure of an answer's usage the gateway is told."""

import sys

import pytest
from epp_kit import HEAD, parse

from lorapick.model.profiles import AttributeReport
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import with_endpoint_picker


def plugin(attributes, *, name="reporter"):
    return f"- {{type: request-attribute-reporter, name: {name}, parameters: {{attributes: {attributes}}}}}\n"


def parsed(*plugins):
    return parse(f"{HEAD}plugins:\n- {{type: queue-scorer}}\n{''.join(plugins)}")


def reports(*plugins):
    return parsed(*plugins).profiles.names.reports


def test_a_figure_has_a_key_an_expression_and_perhaps_a_condition():
    found = reports(
        plugin("[{key: {name: x-cost}, expression: usage.prompt_tokens}]", name="a"),
        plugin("[{key: {namespace: billing, name: x}, expression: '1', condition: has(usage.total_tokens)}]", name="b"),
    )
    assert found == (
        AttributeReport(name="x-cost", expression="usage.prompt_tokens"),
        AttributeReport(namespace="billing", name="x", expression="1", condition="has(usage.total_tokens)"),
    )


def test_bodies_are_looked_at_since_usage_stands_there():
    picker = parsed(plugin("[{key: {name: x}, expression: '1'}]"))
    assert with_endpoint_picker(Settings(), picker).server.observe == "bodies"
    assert with_endpoint_picker(Settings(), parsed()).server.observe == Settings().server.observe == "headers"


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("[]", "attributes"),
        ("[{key: {name: x}, expression: ' '}]", "must be text with 1 to 4096 characters"),
        ("[{key: {name: x}, expression: 7}]", "must be text with 1 to 4096 characters"),
        ("[{key: {name: x}, expression: '1'}, {key: {name: y}, expression: '1'}]", "must have one entry"),
        ("[{key: {name: x}}]", 'the key "expression" is missing'),
        ("[{expression: '1'}]", 'the key "key" is missing'),
        ("[{key: {namespace: n}, expression: '1'}]", 'the key "name" is missing'),
        ("[{key: {name: x}, expression: 'usage. +'}]", "expression: cannot be read: it is no expression in CEL"),
        ("[{key: {name: x}, expression: '1', condition: '('}]", "condition: cannot be read"),
    ],
)
def test_reports_that_cannot_be(attributes, said):
    with pytest.raises(ConfigError, match=said):
        reports(plugin(attributes))


def test_without_parameters_or_with_the_same_key_twice():
    with pytest.raises(ConfigError, match='needs "attributes" in it'):
        reports("- {type: request-attribute-reporter}\n")
    same = "[{key: {name: x}, expression: '1'}]"
    with pytest.raises(ConfigError, match=r"another plugin reports x in envoy\.lb already"):
        reports(plugin(same, name="a"), plugin(same, name="b"))


def test_without_the_evaluator_the_file_is_refused_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "celpy", None)
    with pytest.raises(ConfigError, match=r"needs an evaluator of CEL.*lorapick\[cel\]"):
        reports(plugin("[{key: {name: x}, expression: '1'}]"))
