import pytest
from retention_kit import MINUTE, asked, batch, policy, steady

from lorapick.model.retention import RetentionFacts


def test_the_articles_formula():
    pinned = {"pinned": RetentionFacts(pinned=True)}
    window = policy("window", pinned, frequency_weight=2.0, recency_weight=8.0, pinned_bonus=100.0)
    asked(window, [(10.0, "pinned"), (20.0, "pinned"), (30.0, "other")])
    assert window.worth("pinned", now=36.0) == 2 * 2 + 8 / 16 + 100
    assert window.worth("other", now=36.0) == 2 * 1 + 8 / 6
    assert window.worth("nobody", now=36.0) == 0.0


def test_a_use_counts_as_at_least_a_second_ago():
    window = policy("window")
    window.used("a", 10.0)
    assert window.worth("a", now=10.0) == window.worth("a", now=11.0) == 2.0
    assert window.worth("a", now=12.0) == 1.5


def test_the_window_ends_exactly():
    window = policy("window")
    asked(window, [(0.0, "a"), (0.0, "a"), (100.0, "a")])
    assert window.requests("a", 599.999) == 3
    assert window.requests("a", 600.0) == 1
    assert window.requests("a", 699.999) == 1
    assert window.requests("a", 700.0) == 0


def test_it_cures_ghosts_after_one_window():
    window = policy("window")
    for request in range(50_000):
        window.used("ghost", request * 0.1)
    asked(window, steady("today", gap=12.0, begin=5000.0, until=6000.0))
    assert window.least(["ghost", "today"], now=5400.0) == "ghost" or window.requests("ghost", 5400.0) > 40
    assert window.least(["ghost", "today"], now=5600.0) == "ghost"


def test_it_does_not_cure_a_batch_of_200_for_ten_minutes():
    window = policy("window")
    until = 30 * MINUTE
    blip = 10 * MINUTE
    stream = sorted([*steady("popular", gap=12.0, until=until), *batch("rare", at=blip)])
    found = []
    for now, adapter in stream:
        window.used(adapter, now)
        found.append((now, window.least(["popular", "rare"], now=now)))
    wrong = [now for now, least in found if now > blip + 2 and least == "popular"]
    assert min(wrong) == pytest.approx(blip + 12)
    assert max(wrong) == pytest.approx(blip + 10 * MINUTE, abs=12.0)
    assert window.requests("rare", until) == 0


def test_a_busy_window_outweighs_a_pin_so_pins_are_no_candidates():
    window = policy("window", {"pin": RetentionFacts(pinned=True)})
    asked(window, steady("busy", gap=0.5, until=10 * MINUTE))
    assert window.worth("pin", now=599.0) == 1000.0
    assert window.worth("busy", now=599.0) > 1000.0


def test_removal_forgets_recency_and_not_the_window():
    window = policy("window")
    asked(window, steady("a", gap=1.0, until=10.0))
    window.removed("a", 10.0)
    assert window.worth("a", now=10.0) == 10.0


def test_memory_is_the_requests_of_one_window():
    window = policy("window", window=60.0)
    for number in range(20_000):
        window.used(f"a{number % 5000}", number * 0.1)
    assert len(window._window) == len(window._counts) == 600
    window.worth("a0", now=1e6)
    assert not window._window and not window._counts
