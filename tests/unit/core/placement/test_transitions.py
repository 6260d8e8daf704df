import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement import transitions as module
from lorapick.core.placement.transitions import CONFIDENCE, LIFT, SUPPORT, Transition, Transitions

CLASSIFIER, LEGAL, MEDICAL, OTHER = "doc-classifier", "legal-extract", "medical-extract", "chat"


def learnt(seen: Transitions, first: str) -> list[str]:
    return [each.then for each in seen.followers(first)]


def pipeline(seen: Transitions, times: int, *, start: float = 0.0, key: str = "t") -> float:
    """A document every two minutes: two of three go to legal; the time at the end."""
    now = start
    for number in range(times):
        now = start + number * 120.0
        seen.called(CLASSIFIER, key, now=now)
        seen.called(MEDICAL if number % 3 == 2 else LEGAL, key, now=now + 5)
    return now + 5


def test_a_pipeline_is_learnt_with_its_evidence():
    seen = Transitions(memory=1e12)
    pipeline(seen, 90)
    legal, medical = seen.followers(CLASSIFIER)
    assert legal == Transition(CLASSIFIER, LEGAL, pytest.approx(60), pytest.approx(2 / 3), math.inf)
    assert medical == Transition(CLASSIFIER, MEDICAL, pytest.approx(30), pytest.approx(1 / 3), math.inf)
    assert seen.followers(LEGAL) == [], "the next document comes after more than a minute"
    assert seen.measured(LEGAL, CLASSIFIER) is None
    assert seen.all() == [legal, medical]


def test_too_few_are_not_learnt_but_measured():
    seen = Transitions(memory=1e12)
    pipeline(seen, 27)
    assert seen.followers(CLASSIFIER) == []
    assert seen.measured(CLASSIFIER, LEGAL) == Transition(
        CLASSIFIER, LEGAL, pytest.approx(18), pytest.approx(2 / 3), math.inf
    )
    assert seen.measured(CLASSIFIER, OTHER) is None
    assert seen.measured(OTHER, CLASSIFIER) is None


def test_what_comes_later_than_the_window_does_not_follow():
    seen = Transitions(window=60.0)
    for number in range(100):
        seen.called("a", "t", now=number * 1000.0)
        seen.called("b", "t", now=number * 1000.0 + 60.5)
    assert seen.measured("a", "b") is None
    seen.called("a", "t", now=200_000.0)
    seen.called("b", "t", now=200_060.0)
    assert seen.measured("a", "b") is not None


def test_calls_in_a_row_are_one_run_and_the_window_is_from_its_last():
    seen = Transitions(memory=1e12)
    for number in range(40):
        now = number * 1000.0
        for call in range(4):
            seen.called("a", "t", now=now + call * 50)
        seen.called("b", "t", now=now + 200)
    (found,) = seen.followers("a")
    assert (found.support, found.confidence) == (pytest.approx(40), pytest.approx(1.0))


def test_two_interleaved_tenants_are_not_mixed():
    seen = Transitions(memory=1e12)
    for number in range(60):
        now = number * 120.0
        for step, (key, adapter) in enumerate([("x", "a"), ("y", "c"), ("x", "b"), ("y", "d")]):
            seen.called(adapter, key, now=now + step)
    assert sorted((each.first, each.then) for each in seen.all()) == [("a", "b"), ("c", "d")]
    assert all(each.confidence == pytest.approx(1.0) for each in seen.all())
    assert seen.measured("a", "c") is None


def test_who_is_merely_popular_follows_nobody():
    draw, seen, now = Random(1), Transitions(), 0.0
    names = [f"a{n}" for n in range(20)]
    for _ in range(20_000):
        now += 1.0
        seen.called("popular" if draw.random() < 0.5 else draw.choice(names), "tenant", now=now)
    assert all(seen.measured(name, "popular").confidence > 0.4 for name in names)
    assert seen.all() == []


def test_who_is_popular_and_follows_more_than_chance_would_have_it_is_learnt():
    draw, seen, now = Random(1), Transitions(), 0.0
    for _ in range(10_000):
        now += 1.0
        name = draw.choice(["p", "p", "p", *(f"a{n}" for n in range(20))])
        seen.called(name, "tenant", now=now)
        if name == "a0":
            seen.called("p", "tenant", now=now + 0.5)
    assert learnt(seen, "a0") == ["p"]
    assert [each.first for each in seen.all()] == ["a0"]


def test_what_is_no_longer_so_fades():
    seen = Transitions(memory=7200.0)
    now = pipeline(seen, 600)
    support = seen.followers(CLASSIFIER)[0].support
    assert support == pytest.approx(40, abs=1), "of 20 an hour with a memory of two hours"
    for number in range(300):
        now += 120.0
        seen.called(CLASSIFIER, "t", now=now)
        seen.called("tax-extract", "t", now=now + 5)
        if number == 60:
            assert seen.measured(CLASSIFIER, LEGAL).confidence == pytest.approx(2 / 3 * math.exp(-1), abs=0.03)
    assert learnt(seen, CLASSIFIER) == ["tax-extract"]


def test_weights_that_have_grown_are_made_small_without_a_change():
    plain, scaled = Transitions(memory=3600.0), Transitions(memory=3600.0)
    for start in (0.0, 46.0 * 3600.0, 53.0 * 3600.0):
        pipeline(plain, 100, start=start)
    pipeline(scaled, 100, start=53.0 * 3600.0)
    for then in (LEGAL, MEDICAL):
        one, other = plain.measured(CLASSIFIER, then), scaled.measured(CLASSIFIER, then)
        assert one[2:4] == pytest.approx(other[2:4], rel=0.05), "what came hours before counts little"
    assert plain._start > 50 * 3600.0


def test_years_without_a_new_run_break_nothing():
    seen = Transitions(memory=60.0)
    pipeline(seen, 100)
    for step in range(5):
        seen.called("a", "u", now=20_000.0 + step)
    seen.called("a", "u", now=1e9)
    assert seen.all() == []
    pipeline(seen, 100, start=2e9)
    assert seen.measured(CLASSIFIER, LEGAL) is not None


def test_of_too_many_clients_those_used_longest_ago_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MOST_CLIENTS", 3)
    seen = Transitions()
    for now, key in enumerate("abcad"):
        seen.called("x", key, now=float(now))
    for key in "abc":
        seen.called("y", key, now=5.0)
    assert seen.sizes()[0] == 3
    assert seen.measured("x", "y").support == pytest.approx(1, abs=0.01), "b was forgotten for d, c for b"


def test_long_keys_are_told_apart_and_kept_short():
    seen = Transitions()
    for tail in "ab":
        seen.called("x", "k" * 5000 + tail, now=0.0)
    seen.called("y", "k" * 5000 + "a", now=1.0)
    assert seen.sizes()[0] == 2
    assert seen.measured("x", "y").confidence == pytest.approx(0.5, abs=0.001)
    seen.called("y", "\ud800" * 100, now=1.0)


def test_a_true_follower_stays_among_very_many(monkeypatch):
    draw, seen, now = Random(2), Transitions(), 0.0
    for number in range(3000):
        now += 100.0
        seen.called("a", "t", now=now)
        seen.called("b" if draw.random() < 0.4 else f"rare{number}", "t", now=now + 1)
        assert seen.sizes()[2] <= module.MOST_FOLLOWERS
    assert learnt(seen, "a") == ["b"]
    assert seen.followers("a")[0].confidence == pytest.approx(0.4, abs=0.05)


def test_of_too_many_adapters_the_least_called_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MOST_ADAPTERS", 50)
    seen = Transitions(memory=1e12)
    now = pipeline(seen, 90)
    for number in range(500):
        seen.called(f"rare{number}", "u", now=now + number)
        assert seen.sizes()[1] <= 50
    assert learnt(seen, CLASSIFIER) == [LEGAL, MEDICAL]
    assert seen.sizes()[2] < 100


CALLS = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"), st.sampled_from("xyz"), st.sampled_from([0.0, 0.3, 5.0, 59.0, 61.0, 4000.0])
    ),
    max_size=300,
)


@given(CALLS, st.sampled_from([50.0, 3600.0, 1e9]))
def test_whatever_is_called_figures_are_possible_and_memory_is_bounded(calls, memory):
    one, other, now = Transitions(memory=memory), Transitions(memory=memory), 0.0
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "MOST_CLIENTS": 2,
            "MOST_ADAPTERS": 6,
            "MOST_FOLLOWERS": 4,
            "SUPPORT": 1.0,
            "LIFT": 0.0,
        }.items():
            patch.setattr(module, name, value)
        for adapter, key, pause in calls:
            now += pause
            one.called(adapter, key, now=now)
            other.called(adapter, key, now=now)
            clients, adapters, pairs = one.sizes()
            assert clients <= 2 and adapters <= 6 and pairs <= 6 * 4
        assert one.all() == other.all()
        for each in one.all():
            assert each.first != each.then
            assert 0 < each.confidence <= 1 and each.support > 0 and each.lift > 0
            assert each in one.followers(each.first)


@given(CALLS)
def test_without_bounds_or_fading_it_counts_what_a_plain_walk_counts(calls):
    seen, now, last, runs, pairs = Transitions(memory=1e15), 0.0, {}, {}, {}
    for adapter, key, pause in calls:
        now += pause
        seen.called(adapter, key, now=now)
        before, at = last.get(key, (None, -math.inf))
        last[key] = adapter, now
        if before == adapter and now - at <= 60:
            continue
        runs[adapter] = runs.get(adapter, 0) + 1
        if now - at <= 60:
            pairs[before, adapter] = pairs.get((before, adapter), 0) + 1
    assert seen.sizes()[2] == len(pairs)
    for (first, then), times in pairs.items():
        elsewhere = sum(count for (other, to), count in pairs.items() if to == then and other != first)
        others = sum(count for name, count in runs.items() if name not in (first, then))
        confidence = times / runs[first]
        lift = confidence / min(1.0, elsewhere / others) if elsewhere and others else math.inf
        assert seen.measured(first, then) == Transition(
            first, then, pytest.approx(times), pytest.approx(confidence), pytest.approx(lift)
        )
        learnable = times >= SUPPORT and confidence >= CONFIDENCE and lift >= LIFT
        assert (then in learnt(seen, first)) is learnable
