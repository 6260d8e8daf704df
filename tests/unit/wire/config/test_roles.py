"""Roles from llm-d's label, contradictions, and roles that leave pods without requests."""

import pytest

from lorapick.model.disaggregation import Decide
from lorapick.model.pods import Pod, Role
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.roles import roles_in_words, useless_roles
from lorapick.wire.podsfile import parse_pods


def parsed(entry: str) -> Pod:
    (pod,) = parse_pods(f'- {{name: a, address: "10.0.0.1:8000", {entry}}}', file="p.yaml", settings=Settings())
    return pod


def problem(entry: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(entry)
    return str(caught.value)


def labelled(value: str) -> str:
    return f"labels: {{llm-d.ai/role: {value}}}"


@pytest.mark.parametrize(
    ("value", "role"),
    [
        ("decode", Role.DECODE),
        ("prefill", Role.PREFILL),
        ("both", Role.BOTH),
        ("prefill-decode", Role.BOTH),
        ("encode-prefill", Role.PREFILL),
        ("encode-prefill-decode", Role.BOTH),
    ],
)
def test_the_label_says_the_role_of_who_says_none(value: str, role: Role) -> None:
    assert parsed(labelled(value)).role is role
    assert parsed(f"role: {role.value}, {labelled(value)}").role is role


def test_without_either_a_pod_does_both() -> None:
    assert parsed("labels: {tier: gold}").role is Role.BOTH


def test_a_contradiction_is_a_problem_with_its_place() -> None:
    said = problem(f"role: both, {labelled('decode')}")
    assert said.startswith("p.yaml:1:") and "[0].labels.llm-d.ai/role: is decode as a role, and `role`" in said
    assert 'is both (found "decode")' in said


def test_a_pod_that_only_encodes_is_refused() -> None:
    assert 'only encodes; requests are sent to no such pod (found "encode"); take the pod out' in problem(
        labelled("encode")
    )


def test_an_unknown_value_needs_a_role_beside_it() -> None:
    assert 'did you mean "prefill"?' in problem(labelled("prefil"))
    assert parsed(f"role: decode, {labelled('draft')}").role is Role.DECODE


def pods(*roles: Role, model: str = "m") -> list[Pod]:
    return [
        Pod(name=f"{model}{n}", address=f"10.0.0.{n}:80", role=role, base_model=model) for n, role in enumerate(roles)
    ]


def test_roles_in_words() -> None:
    assert roles_in_words(pods(Role.BOTH, Role.BOTH)) == roles_in_words([]) == ""
    assert roles_in_words(pods(Role.DECODE, Role.PREFILL, Role.DECODE)) == "1 prefill, 2 decode"
    assert roles_in_words(pods(Role.DECODE, Role.BOTH)) == "1 decode, 1 both"


@pytest.mark.parametrize(
    "roles", [(Role.DECODE,), (Role.BOTH,), (Role.PREFILL, Role.DECODE), (Role.PREFILL, Role.BOTH)]
)
def test_roles_that_work_are_not_spoken_of(roles: tuple[Role, ...]) -> None:
    assert useless_roles(pods(*roles), decide=Decide.TOKENS) == ()


def test_prefill_without_decode_is_told_by_model() -> None:
    fleet = [*pods(Role.PREFILL, Role.PREFILL), *pods(Role.DECODE, model="other")]
    assert useless_roles(fleet, decide=Decide.COST) == (
        "2 pods of m (first: m0) prefill and none of this model decodes: its requests find no pod",
    )


def test_prefill_pods_get_nothing_when_nothing_is_split() -> None:
    assert useless_roles(pods(Role.PREFILL, Role.DECODE), decide=Decide.NEVER) == (
        "1 pod of m (first: m0) prefill only, and disaggregation.decide is never: no request goes there",
    )


def pods_of(*roles: Role, **labels: str) -> list[Pod]:
    return [Pod(name=f"n{at}", address=f"10.0.0.{at}:80", role=role, labels=labels) for at, role in enumerate(roles)]


@pytest.mark.parametrize(
    ("roles", "why"),
    [((Role.BOTH, Role.BOTH), "each does both"), ((Role.DECODE, Role.DECODE), "each only decodes")],
)
def test_pairs_that_somebody_asked_for_and_cannot_form_are_told(roles: tuple[Role, ...], why: str) -> None:
    (line,) = useless_roles(pods_of(*roles), decide=Decide.ALWAYS, configured=True)
    assert "no pair can form" in line and why in line
    assert useless_roles(pods_of(*roles), decide=Decide.NEVER, configured=True) == ()
    assert useless_roles(pods_of(*roles), decide=Decide.TOKENS) == ()


def test_pairs_that_can_form_are_not() -> None:
    for roles in ((Role.PREFILL, Role.DECODE), (Role.BOTH, Role.DECODE), (Role.PREFILL, Role.BOTH)):
        assert useless_roles(pods_of(*roles), decide=Decide.TOKENS, configured=True) == ()


@pytest.mark.parametrize(
    "label", ["llmd.ai/role", "llm-d.ai/Role", "LLM-D.ai/role", "llm-d.io/role", "llm-d.ai/roles", "llm-d.ai/rule"]
)
def test_labels_that_look_like_the_one_of_the_role_are_told(label: str) -> None:
    (line,) = useless_roles(pods_of(Role.BOTH, **{label: "prefill"}), decide=Decide.TOKENS)
    assert line == f"the label {label} of 1 pod (first: n0) says nothing, and they do both: is llm-d.ai/role meant?"
    assert useless_roles(pods_of(Role.DECODE, **{label: "prefill"}), decide=Decide.TOKENS) == ()


@pytest.mark.parametrize("label", ["llm-d.ai/zone", "llm-d.ai/model", "kubernetes.io/hostname", "role", "team/role"])
def test_other_labels_are_not(label: str) -> None:
    assert useless_roles(pods_of(Role.BOTH, **{label: "gold"}), decide=Decide.TOKENS) == ()
