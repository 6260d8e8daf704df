"""Objectives and rewrites."""

import contextlib

import pytest
from hypothesis import given, settings
from objects_kit import JSON

from lorapick.model.adapters import Alias, AliasTarget
from lorapick.model.settings import Objective
from lorapick.wire.kubernetes.naming import aliases_of, priorities, read_objective, read_rewrite
from lorapick.wire.kubernetes.objects import ObjectError


def rewrite(name, *rules, created="2026-01-01T00:00:00Z"):
    return {"metadata": {"name": name, "creationTimestamp": created}, "spec": {"rules": [*rules]}}


def rule(models, **targets):
    return {
        "matches": [{"model": {"type": "Exact", "value": model}} for model in models],
        "targets": [
            {"modelRewrite": name, **({} if weight is None else {"weight": weight})} for name, weight in targets.items()
        ],
    }


def test_objectives():
    assert read_objective({"metadata": {"name": "a"}, "spec": {"priority": -3}}) == Objective(name="a", priority=-3)
    assert read_objective({"metadata": {"name": "a"}, "spec": {}}) == Objective(name="a", priority=0)
    for priority in ("high", 1.5, 2**40, True):
        with pytest.raises(ObjectError, match=r"spec\.priority: must be a"):
            read_objective({"metadata": {"name": "a"}, "spec": {"priority": priority}})
    objectives = [Objective(name="a", priority=1)]
    assert priorities(objectives, declared={"a": 5, "b": 6}) == {"a": 1, "b": 6}


def test_a_split_is_an_alias():
    found = aliases_of([read_rewrite(rewrite("r", rule(["sql", "sql-latest"], v1=90, v2=10)))])
    to = (AliasTarget(adapter="v1", weight=90), AliasTarget(adapter="v2", weight=10))
    assert found.by_name == {"sql": Alias(name="sql", to=to), "sql-latest": Alias(name="sql-latest", to=to)}
    assert found.problems == {}


def test_without_weights_all_targets_get_the_same():
    found = aliases_of([read_rewrite(rewrite("r", rule(["m"], a=None, b=None)))])
    assert [target.weight for target in found.by_name["m"].to] == [1, 1]


def test_the_oldest_object_wins_then_the_first_rule():
    found = aliases_of(
        [
            read_rewrite(rewrite("young", rule(["m"], c=1), created="2026-01-02T00:00:00Z")),
            read_rewrite(rewrite("old", rule(["m"], a=1), rule(["m", "n"], b=1))),
        ]
    )
    assert {name: alias.to[0].adapter for name, alias in found.by_name.items()} == {"m": "a", "n": "b"}
    assert found.problems == {
        "old": ("spec.rules[1]: m is rewritten by old already",),
        "young": ("spec.rules[0]: m is rewritten by old already",),
    }


def test_a_rule_for_every_model_is_told():
    found = aliases_of([read_rewrite(rewrite("r", {"targets": [{"modelRewrite": "a"}]}))])
    assert found.by_name == {}
    assert found.problems == {
        "r": ("spec.rules[0]: a rule for every model is not supported; name the models it is for",)
    }


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (
            {"matches": [{"model": {"type": "Prefix", "value": "a"}}], "targets": []},
            "spec.rules[0].matches[0].model.type",
        ),
        ({"matches": [{"model": {}}]}, "spec.rules[0].matches[0].model.value: must be a model's name"),
        ({"matches": []}, "spec.rules[0].targets: must have a target"),
        ({"targets": [{"weight": 1}]}, "spec.rules[0].targets[0].modelRewrite"),
        ({"targets": [{"modelRewrite": "a", "weight": -1}]}, "must be between 0 and 1000000 (found -1)"),
    ],
)
def test_what_is_wrong_is_said(broken, says):
    with pytest.raises(ObjectError) as refused:
        read_rewrite(rewrite("r", broken))
    assert says in str(refused.value)


def test_a_target_that_stands_twice_has_both_weights():
    twice = {"matches": [{"model": {"value": "m"}}], "targets": [{"modelRewrite": "a", "weight": 2}] * 2}
    assert aliases_of([read_rewrite(rewrite("r", twice))]).by_name["m"].to == (AliasTarget(adapter="a", weight=4),)


@settings(max_examples=30)
@given(JSON)
def test_anything_is_rules_or_an_error(spec):
    for read in (read_rewrite, read_objective):
        try:
            read({"metadata": {"name": "r"}, "spec": spec})
        except ObjectError as error:
            assert error.field.startswith("spec")  # noqa: PT017
    with contextlib.suppress(ObjectError):
        aliases_of([read_rewrite({"metadata": {"name": "r"}, "spec": {"rules": [spec]}})])
