"""Aliases that move."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.placement.aliases import chosen, key_of, moved, problems, shares
from lorapick.model.adapters import Alias, AliasTarget
from lorapick.model.requests import Request

KEYS = [f"session-{number}" for number in range(2000)]


def alias(**weights):
    return Alias(name="legal", to=tuple(AliasTarget(adapter=name, weight=weight) for name, weight in weights.items()))


def all_chosen(of, seed=0):
    return [chosen(of, key=key, seed=seed) for key in KEYS]


def test_a_session_is_the_key_and_without_one_the_request():
    assert key_of(Request(id="r", model="m", session="s")) == "s"
    assert key_of(Request(id="r", model="m")) == "r"
    assert key_of(Request(id="r", model="m", session="")) == "r"


@pytest.mark.parametrize("weights", [{"a": 90, "b": 10}, {"a": 1, "b": 2, "c": 3}, {"a": 0, "b": 1}, {"a": 0, "b": 0}])
def test_shares_are_those_of_the_weights(weights):
    of = alias(**weights)
    counts = Counter(all_chosen(of))
    for name, share in shares(of).items():
        assert abs(counts[name] / len(KEYS) - share) < 0.04
    assert all_chosen(of, seed=1) != all_chosen(of, seed=2) or 1.0 in shares(of).values()


def test_the_order_of_targets_changes_nothing():
    assert all_chosen(alias(a=3, b=1, c=2)) == all_chosen(alias(c=2, b=1, a=3))
    assert all_chosen(alias(a=3, b=1)) == all_chosen(alias(a=6, b=2))


weights = st.integers(0, 5)


@given(st.tuples(weights, weights, weights), st.tuples(weights, weights, weights), st.text(min_size=1), st.integers())
def test_a_session_moves_only_to_what_grew_against_its_own(old, new, key, seed):
    if not any(old) or not any(new):
        return
    before, after = (dict(zip("abc", each, strict=True)) for each in (old, new))
    one, other = (chosen(alias(**each), key=key, seed=seed) for each in (before, after))
    assert before[one] > 0
    assert after[other] > 0
    assert one == other or after[other] * before[one] > before[other] * after[one]


def test_a_good_alias_has_no_problems():
    assert problems(alias(a=1, b=0), adapters=["a", "b"], aliases=["legal"], base_models=["base"]) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Alias(name="legal", to=()), "leads nowhere"),
        (alias(a=0), "has weights 0; give"),
        (alias(a=2, b=-1), "has weights 2, -1; give"),
        (alias(x=1), "nobody knows an adapter x; declare it first"),
        (alias(other=1), "other is an alias"),
        (alias(legal=1), "legal is an alias"),
        (alias(b=1), "no pod can serve b now"),
        (Alias(name="a", to=(AliasTarget(adapter="a"),)), "a is the name of an adapter"),
        (Alias(name="base", to=(AliasTarget(adapter="a"),)), "base is the name of a base model"),
        (Alias(name="legal", to=(AliasTarget(adapter="a"), AliasTarget(adapter="a"))), "names a twice"),
    ],
)
def test_what_is_wrong_is_told(wrong, message):
    found = problems(
        wrong, adapters=["a", "b"], aliases=["other"], base_models=["base"], servable=lambda name: name != "b"
    )
    assert message in "\n".join(found)


def test_a_change_in_a_sentence():
    assert moved(None, alias(a=1, b=3)) == "alias legal is new: a 0.25, b 0.75"
    assert moved(alias(a=1), None) == "alias legal is gone"
    assert moved(alias(a=1, b=1), alias(a=2, b=2)) == "alias legal: nothing changes"
    assert moved(alias(a=9, b=1), alias(a=1, b=1)) == (
        "alias legal: a 0.9 -> 0.5, b 0.1 -> 0.5; at least 0.4 of the sessions move"
    )
    assert moved(alias(a=1), alias(c=1)) == "alias legal: a 1 -> 0, c 0 -> 1; at least 1 of the sessions move"


@settings(max_examples=20)
@given(st.lists(weights, min_size=2, max_size=2), st.lists(weights, min_size=2, max_size=2))
def test_the_share_that_moves_is_at_least_what_is_told(old, new):
    one, other = (alias(**dict(zip("ab", each, strict=True))) for each in (old, new))
    moving = sum(before != after for before, after in zip(all_chosen(one), all_chosen(other), strict=True))
    gained = sum(max(0.0, share - shares(one)[name]) for name, share in shares(other).items())
    assert abs(moving / len(KEYS) - gained) < 0.06
