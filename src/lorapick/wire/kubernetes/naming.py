"""InferenceObjectives and InferenceModelRewrites: priorities, and names that stand for others.

In: objects of both kinds. Out: `Objective`; rules, and the aliases that all rules together come to, with what cannot be
done. Not here: who draws a target (see `core.placement.aliases`).

Of rules for one name the oldest object's counts, then the first of its rules, as upstream. A rule without matches means
every model; an alias is one name, so such rules are told and left out.
"""

from collections.abc import Iterable, Mapping

import msgspec

from lorapick.model.adapters import Alias, AliasTarget
from lorapick.model.settings import Objective
from lorapick.wire.kubernetes.objects import Object, ObjectError, age_order, expect, look, name_of

GROUPS = ("llm-d.ai", "inference.networking.x-k8s.io")
"""Where both kinds live (`v1alpha2`): the newer group counts before the older."""
VERSION = "v1alpha2"
MOST_PRIORITY = 2**31 - 1
MOST_WEIGHT = 1_000_000


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Models by their exact names (none: every model), and what they become."""

    models: tuple[str, ...]
    targets: tuple[AliasTarget, ...]


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """One InferenceModelRewrite."""

    name: str
    age: tuple[float, str]
    rules: tuple[Rule, ...]


class Aliases(msgspec.Struct, frozen=True, kw_only=True):
    """What all rewrites come to."""

    by_name: dict[str, Alias]
    problems: dict[str, tuple[str, ...]]
    """Of each rewrite, what of it does not count."""


def read_objective(item: Object) -> Objective:
    """A named priority; unset is 0.

    Raises:
        ObjectError: the priority is no 32-bit number.
    """
    priority = look(item, "spec", "priority")
    if priority is None:
        return Objective(name=name_of(item))
    found = expect(priority, int, field="spec.priority", what="a whole number")
    if not -MOST_PRIORITY - 1 <= found <= MOST_PRIORITY:
        raise ObjectError("spec.priority", "must be a 32-bit number", found=found)
    return Objective(name=name_of(item), priority=found)


def read_rewrite(item: Object) -> Rewrite:
    """The rules of an InferenceModelRewrite.

    Raises:
        ObjectError: one of its rules cannot be read; then none of them counts.
    """
    rules = expect(look(item, "spec", "rules"), list, field="spec.rules", what="a list")
    found = tuple(_rule(each, field=f"spec.rules[{index}]") for index, each in enumerate(rules))
    return Rewrite(name=name_of(item), age=age_order(item), rules=found)


def _rule(rule: object, *, field: str) -> Rule:
    matches = expect(look(rule, "matches") or [], list, field=f"{field}.matches", what="a list")
    models = [_model(each, field=f"{field}.matches[{index}].model") for index, each in enumerate(matches)]
    targets = expect(look(rule, "targets") or [], list, field=f"{field}.targets", what="a list")
    if not targets:
        raise ObjectError(f"{field}.targets", "must have a target")
    weights: dict[str, int] = {}
    for index, each in enumerate(targets):
        name, weight = _target(each, field=f"{field}.targets[{index}]")
        weights[name] = weights.get(name, 0) + weight
    return Rule(
        models=tuple(dict.fromkeys(models)),
        targets=tuple(AliasTarget(adapter=name, weight=weight) for name, weight in weights.items()),
    )


def _model(match: object, *, field: str) -> str:
    kind, value = look(match, "model", "type"), look(match, "model", "value")
    if kind not in (None, "Exact"):
        raise ObjectError(f"{field}.type", 'must be "Exact"', found=kind)
    if not isinstance(value, str) or not value:
        raise ObjectError(f"{field}.value", "must be a model's name", found=value)
    return value


def _target(target: object, *, field: str) -> tuple[str, int]:
    name, weight = look(target, "modelRewrite"), look(target, "weight")
    if not isinstance(name, str) or not name:
        raise ObjectError(f"{field}.modelRewrite", "must be a model's name", found=name)
    if weight is None:
        return name, 1
    found = expect(weight, int, field=f"{field}.weight", what="a whole number")
    if not 0 <= found <= MOST_WEIGHT:
        raise ObjectError(f"{field}.weight", f"must be between 0 and {MOST_WEIGHT}", found=found)
    return name, found


def aliases_of(rewrites: Iterable[Rewrite]) -> Aliases:
    """One alias for each name, from the rule that wins."""
    by_name: dict[str, Alias] = {}
    owner: dict[str, str] = {}
    problems: dict[str, list[str]] = {}
    for rewrite in sorted(rewrites, key=lambda each: each.age):
        said = problems.setdefault(rewrite.name, [])
        for index, rule in enumerate(rewrite.rules):
            if not rule.models:
                said.append(f"spec.rules[{index}]: a rule for every model is not supported; name the models it is for")
            for model in rule.models:
                if model in owner:
                    said.append(f"spec.rules[{index}]: {model} is rewritten by {owner[model]} already")
                    continue
                owner[model] = rewrite.name
                by_name[model] = Alias(name=model, to=rule.targets)
    return Aliases(by_name=by_name, problems={name: tuple(said) for name, said in problems.items() if said})


def priorities(objectives: Iterable[Objective], *, declared: Mapping[str, int]) -> dict[str, int]:
    """Priorities by name: those of the configuration, but for names that objects say themselves."""
    return {**declared, **{each.name: each.priority for each in objectives}}
