"""Figures of fleet, pods and adapters; points of the history."""

from lorapick.core.signals.views import look, sample
from lorapick.model.signals import POINT_EVERY
from lorapick.testing.playbook import Playbook, plain_pod


def test_an_idle_fleet_claims_nothing():
    book = Playbook(pods=(plain_pod("a", max_loras=4),), adapters=("legal",))
    signals = look(book.fleet.state, now=book.now)
    fleet, pod = signals.fleet, signals.pods[0]
    assert (fleet.slots, fleet.slots_used, fleet.active_adapters, fleet.requests_per_second) == (4, 0, 0, 0.0)
    unknown = (fleet.hit_ratio, fleet.latency_p95, fleet.error_ratio, fleet.mean_residency, fleet.new_traffic_share)
    assert unknown == (None,) * 5
    assert (pod.hit_ratio, pod.mean_residency, pod.useful_share, pod.queue_critical) == (None, None, None, False)
    assert signals.adapters == ()


def test_rates_are_of_what_was_watched():
    book = Playbook(pods=(plain_pod("a", max_loras=1),), adapters=("x", "y"))
    for second in range(20):
        name = "xy"[second % 2]
        book.arrive(name, id=f"r{second}")
        book.wait(1.0)
        book.end(f"r{second}", status=200)
    signals = look(book.fleet.state, now=book.now)
    pod = signals.pods[0]
    assert abs(pod.swaps_per_second - 1.0) < 0.1
    assert pod.hit_ratio == 0.0 and signals.fleet.hit_ratio == 0.0
    # Conservation: one slot that changes hands once a second is held for a second each time.
    assert pod.evictions_per_second == 19 / 60  # a rate of residencies is of a minute at least
    assert abs(pod.residency_p50 - 1.0) < 0.06
    assert [row.adapter for row in signals.adapters] == ["x", "y"]
    assert abs(signals.adapters[0].mean_residency - 1.0) < 0.1


def test_what_waits_for_a_load_is_a_queue():
    book = Playbook(pods=(plain_pod("a", max_loras=2),), adapters=("x", "y"))
    book.arrive("x")
    book.arrive("x")
    assert look(book.fleet.state, now=book.now).pods[0].swap_queue == 2


def test_points_come_every_few_seconds():
    book = Playbook(pods=("a",), adapters=("x",))
    state = book.fleet.state
    state.signals.points.clear()
    start = state.signals.next_point = book.now
    for tenth in range(200):
        sample(state, now=start + tenth / 10)
    points = state.signals.points
    assert len(points) == 20 / POINT_EVERY
    assert [point.t for point in points] == [start + POINT_EVERY * n for n in range(len(points))]


def test_a_full_queue_of_long_ago_is_no_news():
    book = Playbook(pods=(plain_pod("a", max_queue=2, max_num_seqs=4),), adapters=("legal",))
    book.report("a", waiting=9, running=4)
    assert look(book.fleet.state, now=book.now).pods[0].queue_critical
    assert not look(book.fleet.state, now=book.now + 60.0).pods[0].queue_critical
