"""What labels of pods say."""

import pytest

from lorapick.core.picking.epp.labels import Level, Places, Requirement, Span, role_word, span_of
from lorapick.model.pods import Role
from lorapick.testing.playbook import plain_pod


@pytest.mark.parametrize(
    ("operator", "values", "labels", "holds"),
    [
        ("In", ("a", "b"), {"k": "b"}, True),
        ("In", ("a",), {"k": "b"}, False),
        ("In", ("a",), {}, False),
        ("NotIn", ("a",), {"k": "b"}, True),
        ("NotIn", ("a",), {"k": "a"}, False),
        ("NotIn", ("a",), {}, True),
        ("Exists", (), {"k": ""}, True),
        ("Exists", (), {}, False),
        ("DoesNotExist", (), {}, True),
        ("DoesNotExist", (), {"k": "a"}, False),
    ],
)
def test_requirements_are_those_of_kubernetes(operator, values, labels, holds):
    assert Requirement("k", operator, values).holds(labels) is holds


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0-2048", Span(0, 2048)),
        (" 5 - 7 ", Span(5, 7)),
        ("7-5", None),
        ("7", None),
        ("-7", None),
        ("a-b", None),
        ("1-2-3", None),
        ("", None),
        ("٣-٤", None),
    ],
)
def test_ranges_of_context_lengths(text, span):
    assert span_of(text) == span


def test_the_label_says_the_role_before_the_list_of_pods_does():
    assert role_word(plain_pod("a")) is None
    assert role_word(plain_pod("a", role=Role.PREFILL)) == "prefill"
    assert role_word(plain_pod("a", labels={"llm-d.ai/role": "both"})) == "both"


def test_the_nearest_place_that_both_name():
    here = {"kubernetes.io/hostname": "h", "topology.kubernetes.io/rack": "r", "topology.kubernetes.io/region": "w"}
    one = plain_pod("one", labels=here, zone="z")
    places = Places()
    assert places.level(one, plain_pod("b", labels=here)) is Level.HOST
    assert places.level(one, plain_pod("b", labels={**here, "kubernetes.io/hostname": "i"})) is Level.RACK
    assert places.level(one, plain_pod("b", zone="z")) is Level.ZONE
    assert places.level(one, plain_pod("b", labels={"topology.kubernetes.io/region": "w"})) is Level.REGION
    assert places.level(plain_pod("a"), plain_pod("b")) is Level.NOWHERE
    empty = plain_pod("a", labels={"kubernetes.io/hostname": ""})
    assert places.level(empty, empty) is Level.NOWHERE
    assert Places(host="node").level(plain_pod("a", labels={"node": "1"}), plain_pod("b", labels={"node": "1"})) == 4
