import pytest
from retention_kit import MINUTE, asked, batch, policy, steady

from lorapick.model.retention import RetentionFacts
from lorapick.model.tiers import Tier


def test_worth_is_rate_times_cost_per_room():
    facts = {
        "plain": RetentionFacts(room=1.0, from_cpu=0.1, from_disk=0.7),
        "slow": RetentionFacts(room=1.0, from_cpu=0.2, from_disk=0.7),
        "large": RetentionFacts(room=4.0, from_cpu=0.1, from_disk=0.7),
    }
    cost = policy("cost", facts)
    now = asked(cost, [(t, name) for name in facts for t, _ in steady("", gap=10.0, until=60 * MINUTE)])
    plain, slow, large = (cost.worth(name, now=now) for name in facts)
    assert plain == pytest.approx(0.1 * 0.1, rel=0.03)
    assert slow == pytest.approx(2 * plain)
    assert large == pytest.approx(plain / 4)
    assert cost.worth("plain", now=now, leaves_for=Tier.DISK) == pytest.approx(7 * plain)
    assert cost.least([*facts], now=now) == "large"


def test_the_level_decides_what_a_loss_costs():
    facts = {
        "near": RetentionFacts(from_cpu=0.2, from_disk=0.3),
        "far": RetentionFacts(from_cpu=0.1, from_disk=5.0),
    }
    cost = policy("cost", facts)
    now = asked(cost, [*steady("near", gap=5.0, until=300.0), *steady("far", gap=5.0, until=300.0)])
    assert cost.least(["near", "far"], now=now, leaves_for=Tier.CPU) == "far"
    assert cost.least(["near", "far"], now=now, leaves_for=Tier.DISK) == "near"


@pytest.mark.parametrize("at", [600.0, 607.0, 609.5])
def test_a_batch_of_200_gives_its_place_back_when_it_is_over(at):
    cost = policy("cost")
    stream = [*steady("popular", gap=12.0, until=20 * MINUTE), *batch("rare", at=at)]
    for now, adapter in sorted(stream):
        cost.used(adapter, now)
        if at < now < at + 2.0:
            continue  # while it runs, its adapter would come back at once
        if now > at + 5.0:
            assert cost.least(["popular", "rare"], now=now) == "rare"
            assert cost.victim(["popular"], now=now, incoming="rare") is None
    assert now > at + 9 * MINUTE


def test_a_batch_keeps_its_adapter_while_it_runs():
    cost = policy("cost")
    now = asked(cost, [*steady("popular", gap=12.0, until=599.0), *batch("rare", at=600.0)[:100]])
    assert cost.least(["popular", "rare"], now=now) == "popular"


def test_a_ghost_is_gone_in_minutes_and_a_new_adapter_does_not_go_first():
    cost = policy("cost")
    for request in range(50_000):
        cost.used("ghost", request * 0.1)
    gone = 5000.0
    wrong = []
    for now, adapter in steady("new", gap=12.0, begin=gone, until=gone + 20 * MINUTE):
        cost.used(adapter, now)
        if cost.least(["ghost", "new"], now=now) == "new":
            wrong.append(now - gone)
    assert max(wrong) < 5 * MINUTE


def test_a_new_popular_adapter_catches_up_within_seconds():
    cost = policy("cost")
    stream = [*steady("old", gap=12.0, until=20 * MINUTE), *steady("new", gap=1.0, begin=600.0, until=20 * MINUTE)]
    least = []
    for now, adapter in sorted(stream):
        cost.used(adapter, now)
        if now > 600.0:
            least.append((now - 600.0, cost.least(["old", "new"], now=now)))
    assert max((now for now, adapter in least if adapter == "new"), default=0.0) < 10.0


def test_who_is_asked_for_once_is_not_let_in():
    cost = policy("cost")
    asked(cost, [entry for i in range(4) for entry in steady(f"steady-{i}", gap=12.0, until=10 * MINUTE)])
    slots = [f"steady-{i}" for i in range(4)]
    for number in range(500):
        now = 10 * MINUTE + number * 0.1
        cost.used(f"once-{number}", now)
        assert cost.victim(slots, now=now, incoming=f"once-{number}") is None


def test_who_was_let_in_all_the_same_is_the_next_to_leave():
    cost = policy("cost")
    now = asked(cost, [entry for i in range(4) for entry in steady(f"steady-{i}", gap=12.0, until=10 * MINUTE)])
    cost.used("once", now)
    cost.loaded("once", now)
    assert cost.least(["steady-0", "once", "steady-1"], now=now) == "once"


def test_an_old_friend_is_let_in_and_a_pin_always():
    cost = policy("cost", {"pin": RetentionFacts(pinned=True)})
    stream = [*steady("friend", gap=6.0, until=10 * MINUTE), *steady("slow", gap=30.0, until=10 * MINUTE)]
    now = asked(cost, stream)
    cost.removed("friend", now)
    assert cost.victim(["slow"], now=now, incoming="friend") == "slow"
    assert cost.victim(["friend"], now=now, incoming="slow") is None
    assert cost.victim(["friend"], now=now, incoming="pin") == "friend"
