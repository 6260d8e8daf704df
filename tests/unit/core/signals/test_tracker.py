"""What is fed by requests: errors, latency, hits."""

from lorapick.model import events
from lorapick.model.requests import Outcome
from lorapick.testing.playbook import Playbook, plain_pod


def test_a_hit_was_there_since_before_its_request_was_sent():
    book = Playbook(pods=(plain_pod("a", max_loras=2),), adapters=("legal",))
    book.arrive("legal", id="first")
    book.wait(1.0)
    book.end("first", status=200)
    book.arrive("legal", id="second")
    book.wait(0.5)
    book.end("second", status=200)
    track = book.fleet.state.signals.pod("a")
    now = book.now
    assert (track.asked.total(now), track.hits.total(now), track.believed.total(now)) == (2, 1, 1)
    assert track.stays.swaps.total(now) == 1


def test_errors_are_ours_not_clients_mistakes():
    book = Playbook(pods=(plain_pod("a"),), adapters=("legal",))
    book.report("a", registered=("legal",))
    book.arrive("nobody-knows-it")
    ends = ((Outcome.SERVED, 200), (Outcome.ABANDONED, None), (Outcome.FAILED, 400), (Outcome.FAILED, 503))
    for number, (outcome, status) in enumerate(ends):
        book.arrive("legal", id=f"x{number}")
        book.end(f"x{number}", outcome, status=status)
    signals = book.fleet.state.signals
    assert signals.outcomes.ended.total(book.now) == 4
    assert signals.outcomes.errors.total(book.now) == 1


def test_what_a_gone_pod_counted_is_gone_with_it():
    book = Playbook(pods=(plain_pod("a"), plain_pod("b")), adapters=("legal",))
    book.arrive("legal")
    pod = next(iter(book.fleet.state.signals.pods))
    book.apply(events.PodGone, pod=pod)
    assert pod not in book.fleet.state.signals.pods
