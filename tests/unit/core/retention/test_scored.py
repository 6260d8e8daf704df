"""What all retention policies do alike."""

import pytest
from retention_kit import asked, policy

from lorapick.core.retention.policies import RETENTIONS
from lorapick.core.retention.scored import MOST_NAMES

NAMES = [*RETENTIONS]


@pytest.mark.parametrize("name", NAMES)
def test_of_adapters_that_nobody_knows_the_first_leaves(name):
    retention = policy(name)
    assert retention.least(["b", "a", "c"], now=5.0) == "b"
    assert retention.victim(["b", "a", "c"], now=5.0, incoming="new") == "b"


@pytest.mark.parametrize("name", NAMES)
def test_whoever_was_never_used_leaves_before_who_was(name):
    retention = policy(name)
    asked(retention, [(1.0, "a"), (2.0, "b")])
    assert retention.least(["a", "b", "stranger"], now=3.0) == "stranger"


@pytest.mark.parametrize("name", NAMES)
def test_of_equals_the_one_used_longest_ago_leaves(name):
    retention = policy(name, frequency_weight=0.0, recency_weight=0.0)
    for adapter, now in [("a", 1.0), ("b", 1.0), ("c", 1.5)]:
        retention.used(adapter, now)
    retention.touched("a", 2.0)
    assert retention.least(["c", "a", "b"], now=2.0) == "b"


@pytest.mark.parametrize("name", NAMES)
def test_a_load_is_a_use_but_no_request(name):
    retention = policy(name)
    retention.loaded("preloaded", 10.0)
    retention.used("asked", 5.0)
    expected = "asked" if name == "lru" else "preloaded"
    assert retention.least(["asked", "preloaded"], now=11.0) == expected


@pytest.mark.parametrize("name", NAMES)
def test_asking_changes_nothing(name):
    one, other = policy(name), policy(name)
    for step in range(200):
        now, adapter = step * 1.7, f"a{step % 7}"
        one.used(adapter, now)
        other.used(adapter, now)
        one.least([f"a{i}" for i in range(7)], now=now)
        one.victim(["a1", "a2"], now=now, incoming="a3")
    assert [one.worth(f"a{i}", now=400.0) for i in range(7)] == [other.worth(f"a{i}", now=400.0) for i in range(7)]


@pytest.mark.parametrize("name", NAMES)
def test_who_may_not_leave_is_the_owners_to_know(name):
    with pytest.raises(AssertionError, match="nobody may leave"):
        policy(name).least([], now=1.0)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_not_remembered_without_bound(name):
    retention = policy(name)
    for number in range(MOST_NAMES + 500):
        retention.used(f"once-{number}", float(number))
    sizes = {
        field: len(value)
        for part in (retention, getattr(retention, "_recency", None), getattr(retention, "_demand", None))
        for kind in type(part).__mro__
        for field in getattr(kind, "__slots__", ())
        if hasattr(value := getattr(part, field), "__len__")
    }
    assert "_last" in sizes
    assert max(sizes.values()) <= MOST_NAMES
