"""What each adapter goes through."""

from lorapick.core.signals.adapters import Courses
from lorapick.core.signals.traffic import TrafficBins


def test_rates_shares_and_who_is_new():
    traffic = TrafficBins()
    traffic.known(["old"])
    courses = Courses(traffic)

    def arrive(name, now):
        traffic.arrived(name, now)
        courses.arrived(name, now=now)

    for t in range(100):
        arrive("old", float(t))
        if t >= 75:
            arrive("new", float(t))
    new, old = courses.signals(now=100.0, watched=100.0)
    assert (new.adapter, old.adapter) == ("new", "old")
    assert new.share == 0.2 and old.requests_per_second == 1.0 and new.first_seen == 75.0
    assert courses.new(50.0, now=100.0) == (["new"], 25)
    assert courses.active(99.5) == 0 and courses.active(98.0) == 2


def test_who_is_not_asked_for_any_more_is_forgotten_and_not_new_again():
    traffic = TrafficBins()
    courses = Courses(traffic)
    traffic.arrived("x", 0.0)
    courses.arrived("x", now=0.0)
    courses.forget(5000.0)
    assert courses.signals(now=5000.0, watched=5000.0) == ()
    traffic.arrived("x", 6000.0)
    courses.arrived("x", now=6000.0)
    assert courses.new(5500.0, now=6000.0) == ([], 0)
