"""How requests fare, also where there are few, or none that is answered."""

from lorapick.core.signals.outcomes import Outcomes
from lorapick.model.requests import Outcome


def test_a_quiet_fleets_failures_are_of_ten_minutes():
    outcomes = Outcomes()
    for minute in range(10):
        outcomes.arrived(now=60.0 * minute)
        outcomes.left(Outcome.FAILED if minute % 2 else Outcome.SERVED, 503 if minute % 2 else 200,
                      seconds=1.0, now=60.0 * minute)  # fmt: skip
    failures = outcomes.failures(590.0)
    assert (failures.failed, failures.ended, failures.share) == (5, 10, 0.5)
    assert failures.recent == 3
    assert outcomes.failures(5000.0).share is None


def test_a_busy_fleets_are_of_the_last_minute():
    outcomes = Outcomes()
    for second in range(600):
        failed = second < 500
        outcomes.left(Outcome.FAILED if failed else Outcome.SERVED, 503 if failed else 200,
                      seconds=1.0, now=float(second))  # fmt: skip
    assert outcomes.failures(599.0).failed == 0


def test_p95_needs_a_few_answers():
    outcomes = Outcomes()
    for number in range(4):
        outcomes.left(Outcome.SERVED, 200, seconds=3.0, now=55.0 * number)
    assert outcomes.p95("latency", now=230.0) is None
    outcomes.left(Outcome.SERVED, 200, seconds=3.0, now=231.0)
    assert abs(outcomes.p95("latency", now=232.0) - 3.0) < 0.1
    outcomes.body_started(0.5, now=232.0)
    assert outcomes.p95("ttft", now=232.0) is None


def test_who_gave_up_is_late_and_counts_as_nothing_else():
    outcomes = Outcomes()
    for number in range(6):
        outcomes.left(Outcome.ABANDONED, None, seconds=10.0 + number, now=float(number))
    assert outcomes.late(2.0, now=6.0) == 6 and outcomes.late(20.0, now=6.0) == 0
    assert outcomes.ended.total(6.0) == 0 and outcomes.p95("latency", now=6.0) is None


def test_nobody_served_is_told_after_five_minutes():
    outcomes = Outcomes()
    for second in range(0, 900, 10):
        outcomes.arrived(now=float(second))
        if second < 100:
            outcomes.left(Outcome.SERVED, 200, seconds=1.0, now=float(second))
        found = outcomes.nobody_served(float(second))
        if not 380 <= second < 450:  # a window is exact to one bin
            assert (found > 0) is (second >= 450), second
    outcomes.refused(404, now=900.0)
    assert outcomes.nobody_served(900.0) == 0, "a client's mistake is answered"


def test_a_restarts_failures_are_of_one_instant():
    outcomes = Outcomes()
    for second in range(60):
        outcomes.left(Outcome.SERVED, 200, seconds=1.0, now=float(second))
    for _ in range(8):
        outcomes.left(Outcome.FAILED, 503, seconds=1.0, now=59.0)
    assert outcomes.failures(60.0).failed == 8 and not outcomes.failures(60.0).lasting
    for second in range(60, 80):
        outcomes.left(Outcome.FAILED, 503, seconds=1.0, now=float(second))
    assert outcomes.failures(80.0).lasting
