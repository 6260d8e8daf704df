"""Expressions over figures."""

import sys

import pytest

from lorapick.wire.cel import CelError, CelMissing, Program

USAGE = {"usage": {"prompt_tokens": 10.0, "completion_tokens": 4.0, "details": {"cached": 2.0}}}


def value(expression):
    return Program(expression, names=("usage",)).value(USAGE)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("usage.prompt_tokens + usage.completion_tokens", 14.0),
        ("usage.prompt_tokens - usage.details.cached * 0.5", 9.0),
        ("usage.completion_tokens > 5.0 ? 1 : 0", 0),
        ("int(usage.prompt_tokens) % 3", 1),
        ("has(usage.completion_tokens)", True),
        ("has(usage.total_tokens) || usage.prompt_tokens < 1.0", False),
        ("'text'", "text"),
    ],
)
def test_what_expressions_come_to(expression, expected):
    found = value(expression)
    assert found == expected
    assert isinstance(found, bool) is isinstance(expected, bool)


@pytest.mark.parametrize("expression", ["usage.total_tokens", "tokens", "1 / 0", "usage.prompt_tokens + 'a'"])
def test_what_has_no_value(expression):
    with pytest.raises(CelError):
        value(expression)


@pytest.mark.parametrize("expression", ["usage.", "a b", "(", ""])
def test_what_is_no_expression(expression):
    with pytest.raises(CelError, match="no expression in CEL"):
        Program(expression, names=("usage",))


def test_without_the_evaluator(monkeypatch):
    monkeypatch.setitem(sys.modules, "celpy", None)
    with pytest.raises(CelMissing):
        Program("1", names=())
