import pytest

from lorapick.core.placement.wants import Want, fits, names_apart
from lorapick.model.placement import Why
from lorapick.model.pods import Pod

POD = Pod(name="a", address="10.0.0.1:8000", zone="west", labels={"tier": "gold"})


@pytest.mark.parametrize(
    ("selector", "fitting"),
    [
        ({}, True),
        ({"zone": "west"}, True),
        ({"zone": "west", "tier": "gold"}, True),
        ({"zone": "east"}, False),
        ({"tier": "silver"}, False),
        ({"tier": "gold", "generation": "2"}, False),
        ({"west": "zone"}, False),
    ],
)
def test_a_pod_fits_when_zone_and_labels_do(selector, fitting):
    assert fits(selector, POD) is fitting


def test_a_label_may_be_named_zone():
    assert fits({"zone": "east"}, Pod(name="a", address="10.0.0.1:8000", labels={"zone": "east"}))
    assert not fits({"zone": "east"}, Pod(name="a", address="10.0.0.1:8000"))


def test_a_want_is_for_one_copy_anywhere_unless_it_says_more():
    want = Want("legal", Why.TRIGGER, "tenant.login")
    assert (want.replicas, want.pods, want.selector, want.until) == (1, (), {}, None)


def test_names_tell_apart_what_has_the_same_name():
    named = [
        ("e", {}),
        ("e", {"zone": "w"}),
        ("e", {"zone": "w"}),
        ("f", {}),
        ("e", {}),
        ("e", {"zone": "w", "a": "b"}),
    ]
    assert names_apart(named) == ["e", "e zone=w", "e zone=w #2", "f", "e #2", "e zone=w a=b"]
