"""A replay leads to the decisions of the log, and names the first that differs."""

import msgspec
import pytest

from lorapick.core.fleet import Fleet
from lorapick.model import events
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import AdmissionSettings, PickingSettings, Settings
from lorapick.sim.replay import PROGRESS_EVERY, replay
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.wire.eventlog import Decided, Failed, LineEncoder, LogReader, header_of

SEED = 3


def busy(policy="weighted"):
    """Some hundred events: loads that others follow, holds, refusals, time passing."""
    small = [plain_pod(name, max_num_seqs=1, max_queue=1, max_loras=1) for name in ("a", "b")]
    settings = Settings(picking=PickingSettings(policy=policy), admission=AdmissionSettings(max_wait=0.3))
    book = Playbook(pods=small, adapters=["legal", "code", "tax"], settings=settings, seed=SEED)
    for number in range(120):
        book.now += 0.02
        model = ("legal", "legal", "legal", "legal", "code", "nobody")[number % 6]
        book.apply(events.RequestArrived, request=Request(id=f"r{number}", model=model))
        if number % 6 == 5:
            for flight in [*book.fleet.state.flights.values()][:4]:
                book.apply(events.RequestEnded, request_id=flight.request.id, outcome=Outcome.SERVED, status=200)
        if number % 7 == 6:
            book.apply(events.Ticked)
    return book


def lines_of(book, *, settings=None):
    encoder = LineEncoder()
    header = encoder.header(header_of(settings or book.settings, seed=SEED, epoch=0.0))
    steps = (bytes(encoder.step(event, answer)) for event, answer in zip(book.events, book.answers, strict=True))
    return b"".join([header, *steps]).splitlines(keepends=True)


def replayed(lines):
    return replay(LogReader(lines))


@pytest.mark.parametrize("policy", ["weighted", "cost", "round-robin", "power-of-two"])
def test_the_same_events_lead_to_the_same_decisions(policy):
    book = busy(policy)
    found = replayed(lines_of(book))
    assert found.difference is None
    assert found.events == len(book.events)
    kinds = [kind for kind in ("dispatch", "hold", "reject") if kind in found.answers]
    assert found.answers["dispatch"] > 50 and found.answers["reject"] > 20, found.answers
    assert ("hold" in kinds) == (policy in ("weighted", "cost"))
    assert found.seconds == pytest.approx(book.events[-1].t)
    assert (found.failures, found.cut_at) == (0, None)
    assert replayed(lines_of(book)) == found


def test_the_digest_is_of_all_effects():
    book = busy()
    lines = lines_of(book)
    ended = next(number for number, line in enumerate(lines) if b'"RequestEnded"' in line)
    line = msgspec.json.decode(lines[ended])
    line["outcome"] = "failed"
    changed = replayed([*lines[:ended], msgspec.json.encode(line) + b"\n", *lines[ended + 1 :]])
    assert changed.digest != replayed(lines).digest


def test_the_first_difference_is_named_and_ends_the_replay():
    book = busy()
    lines = lines_of(book)
    at = [number for number, line in enumerate(lines) if b'"dispatch"' in line][10]
    decided = msgspec.json.decode(lines[at], type=Decided)
    elsewhere = msgspec.structs.replace(decided.answers[0], pod="z")
    decided = msgspec.structs.replace(decided, answers=(elsewhere, *decided.answers[1:]))
    found = replayed([*lines[:at], msgspec.json.encode(decided) + b"\n", *lines[at + 1 :]])
    difference = found.difference
    assert (difference.line, difference.event.id) == (at, decided.id)
    assert difference.logged == decided
    assert difference.replayed.answers[0].pod in ("a", "b")
    assert found.events == decided.id


def test_a_decision_that_the_log_does_not_have_is_a_difference():
    lines = lines_of(busy())
    at = next(number for number, line in enumerate(lines) if b'"dispatch"' in line)
    found = replayed([*lines[:at], *lines[at + 1 :]])
    assert found.difference.logged.answers == ()
    assert len(found.difference.replayed.answers) == 1


def test_another_seed_shows():
    """The header's seed counts: ties fall otherwise under another."""
    lines = lines_of(busy("random"))
    header = msgspec.json.decode(lines[0])
    header["seed"] += 1
    assert replayed(lines).difference is None
    assert replayed([msgspec.json.encode(header) + b"\n", *lines[1:]]).difference is not None


def test_what_the_core_refused_is_refused_again():
    fleet = Fleet(Settings(), seed=SEED)
    encoder = LineEncoder()
    lines = [encoder.header(header_of(Settings(), seed=SEED, epoch=0.0))]
    pod = events.PodAppeared(t=0.0, id=1, pod=plain_pod("a"))
    twice = [events.RequestArrived(t=n, id=n, request=Request(id="r", model="base")) for n in (2, 3)]
    for event in (pod, *twice):
        try:
            outcome = fleet.apply(event, event.t)
        except ValueError as error:
            outcome = error
        lines += bytes(encoder.step(event, outcome)).splitlines(keepends=True)
    found = replayed(lines)
    assert (found.difference, found.failures, found.events) == (None, 1, 3)
    # Its words may differ, its class may not.
    last = msgspec.json.decode(lines[-1], type=Failed)
    for change, same in (({"detail": "other words"}, True), ({"error": "KeyError"}, False)):
        line = msgspec.json.encode(msgspec.structs.replace(last, **change)) + b"\n"
        assert (replayed([*lines[:-1], line]).difference is None) == same
    assert replayed(lines[:-1]).difference is None  # the log ends before it says what came of the event
    more = bytes(encoder.step(events.Ticked(t=9.0, id=9), []))
    assert isinstance(replayed([*lines[:-1], more]).difference.replayed, Failed)


def test_a_log_that_is_cut_off_counts_up_to_there():
    lines = lines_of(busy())
    found = replayed([*lines[:100], lines[100][:10]])
    assert found.difference is None
    assert found.cut_at == 101
    assert replayed([*lines[:1]]).events == 0


def test_progress_is_told():
    book = busy()
    told = []
    replay(LogReader(lines_of(book)), progress=lambda: told.append(1))
    assert len(told) == len(book.events) // PROGRESS_EVERY
