"""What requests spent their time on."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ledger_kit import Books, parts

from lorapick.model import events
from lorapick.model.effects import Dispatch, Hold
from lorapick.model.ledger import LoadBy, RequestRow
from lorapick.model.picks import Pick
from lorapick.model.pods import Role
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.tiers import Tier


def test_a_first_request_waits_for_its_load_and_is_served() -> None:
    book = Books()
    book.arrive("x")
    book.wait(0.5)
    book.start("r1")
    book.wait(2.0)
    book.end("r1", status=200)
    row = book.request("r1")
    assert parts(row) == (0.0, 0.5, 0.0, 2.0)
    assert (row.hit, row.tier, row.pod, row.status, row.load) == (False, "disk", "a", 200, book.loads()[0].id)


def test_a_second_one_finds_it() -> None:
    book = Books()
    book.use("x", "a")
    book.arrive("x")
    book.wait(1.0)
    book.end("r1", status=200)
    row = book.request("r1")
    assert (parts(row), row.hit, row.tier, row.load) == ((0.0, 0.0, 0.0, 1.0), True, "gpu_idle", None)


def test_it_stands_still_while_its_pod_loads_another() -> None:
    book = Books(slots=2)
    book.use("x", "a")
    book.arrive("x")
    book.wait(1.0)
    book.arrive("y")
    book.wait(0.4)
    book.start("r2")
    book.wait(1.0)
    book.end("r1", status=200)
    row = book.request("r1")
    (_, load) = book.loads()
    assert parts(row) == (0.0, 0.0, 0.4, 2.0)
    assert (row.drain_load, row.drain_most) == (load.id, pytest.approx(0.4))
    assert row.hit is True


def test_who_is_held_for_a_slot_queues() -> None:
    book = Books(slots=1)
    book.use("x", "a")
    book.arrive("x")
    book.arrive("y")
    book.wait(3.0)
    book.end("r1", status=200)
    book.wait(0.2)
    book.start("r2")
    book.wait(1.0)
    book.end("r2", status=200)
    assert parts(book.request("r2")) == (3.0, 0.2, 0.0, 1.0)


def test_who_is_held_for_a_load_waits_for_that_load() -> None:
    """As told by hand: r2 follows r1's load while its pod's queue is full."""
    book = Books()
    book.arrive("x")
    books, arrived = book.books, events.RequestArrived(t=0.1, id=90, request=Request(id="r2", model="x"))
    follows = Pick(request_id="r2", adapter="x", pod=None, score=None, tier=None, follows="a")
    hold = Hold(cause=90, request_id="r2", until=9.0, reason=Reason.HELD_FOR_LOAD, pick=follows)
    books.observe(arrived, [hold], changes=())
    to_a = Target(pod="a", address="a:1")
    sent = Pick(request_id="r2", adapter="x", pod="a", score=1.0, tier=Tier.LOADING)
    dispatch = Dispatch(cause=91, request_id="r2", target=to_a, fallbacks=(), pick=sent)
    books.observe(events.Ticked(t=0.4, id=91), [dispatch], changes=())
    book.wait(0.6)
    book.start("r1")
    end = events.RequestEnded(t=1.6, id=99, request_id="r2", outcome=Outcome.SERVED, status=200)
    (row,) = books.observe(end, (), changes=())
    assert isinstance(row, RequestRow)
    assert parts(row) == (0.0, 0.5, 0.0, 1.0)
    assert (round(row.load_wait_held, 2), row.load, row.hit) == (0.3, book.loads()[0].id, False)


def test_prefill_and_decode_of_a_stream() -> None:
    book = Books(slots=2)
    book.arrive("x", stream=True)
    book.wait(0.5)
    book.start("r1")
    book.apply(events.BodyStarted, request_id="r1")
    book.wait(0.25)
    book.arrive("y")
    book.wait(0.25)
    book.start("r2")
    book.wait(1.0)
    book.end("r1", status=200)
    row = book.request("r1")
    assert row.prefill == pytest.approx(0.0)
    assert row.decode == pytest.approx(row.served) == pytest.approx(1.25)
    assert row.drain == pytest.approx(0.25)


def test_without_a_stream_nobody_knows_prefill() -> None:
    book = Books()
    book.arrive("x")
    book.start("r1")
    book.apply(events.BodyStarted, request_id="r1")
    book.end("r1", status=200)
    row = book.request("r1")
    assert (row.prefill, row.decode) == (None, None)


def test_refusals_have_their_reason_and_no_pod() -> None:
    book = Books()
    book.report("a", registered=("x", "y", "z"))
    book.arrive("nobody-knows")
    book.apply(events.RequestRefused, reason="body_invalid", status=400)
    known, unknown = book.all(RequestRow)
    assert (known.id, known.outcome, known.status, known.reason) == ("r1", "rejected", 404, "adapter_unknown")
    assert (unknown.id, unknown.model, unknown.reason, unknown.pod) == (None, None, "body_invalid", None)


def test_a_client_that_leaves_the_queue_has_only_queued() -> None:
    book = Books(slots=1)
    book.use("x", "a")
    book.arrive("x")
    book.arrive("y")
    book.wait(2.0)
    book.end("r2", Outcome.ABANDONED)
    row = book.request("r2")
    assert (parts(row), row.outcome, row.pod, row.hit) == ((2.0, 0.0, 0.0, 0.0), "abandoned", None, None)


def test_a_fallback_is_booked_where_it_served() -> None:
    book = Books(pods=("a", "b"))
    book.arrive("x")
    first = book.fleet.state.flights["r1"].pod
    other = "b" if first == "a" else "a"
    book.fallback("r1", other)
    book.wait(0.3)
    book.start("r1")
    book.wait(1.0)
    book.end("r1", status=200)
    row = book.request("r1")
    assert (row.pod, row.tier, row.hit) == (other, None, False)
    assert parts(row) == (0.0, 0.3, 0.0, 1.0)


SIDES = {"a": Role.PREFILL, "b": Role.DECODE}


@pytest.mark.parametrize(("ok", "prefilled_by"), [(True, "a"), (False, None)])
def test_the_pod_that_prefilled_is_named(ok: bool, prefilled_by: str | None) -> None:
    book = Books(pods=("a", "b"), roles=SIDES)
    book.arrive("x", prompt_tokens=4000)
    book.wait(0.3)
    book.apply(events.PrefillEnded, request_id="r1", ok=ok)
    book.wait(1.0)
    book.end("r1", status=200)
    row = book.request("r1")
    assert (row.pod, row.prefilled_by) == ("b", prefilled_by)
    assert {(load.pod, load.caused_by, load.request) for load in book.loads()} == {
        ("a", LoadBy.REQUEST, "r1"),
        ("b", LoadBy.REQUEST, "r1"),
    }


def test_a_pod_that_prefills_and_then_decodes_as_the_last_fallback_did_everything() -> None:
    book = Books(pods=("a", "b"), roles=SIDES)
    book.arrive("x", prompt_tokens=4000)
    book.fallback("r1", "a")
    book.end("r1", status=200)
    assert (book.request("r1").pod, book.request("r1").prefilled_by) == ("a", None)


def test_who_joins_a_load_under_way_has_no_hit() -> None:
    book = Books()
    book.arrive("x")
    book.wait(0.2)
    book.arrive("x")
    book.wait(0.1)
    book.start("r1")
    book.end("r1", status=200)
    book.wait(1.0)
    book.end("r2", status=200)
    assert (book.request("r1").hit, book.request("r2").hit) == (False, False)


COURSE = st.lists(
    st.tuples(
        st.sampled_from(("arrive", "start", "end", "report", "fallback", "gone", "fail")),
        st.integers(0, 11),
        st.sampled_from((0.0, 0.1, 0.5, 20.0)),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(COURSE)
@example([("arrive", 2, 0.0), ("arrive", 2, 0.1), ("end", 1, 0.0)])
@example([("arrive", 0, 0.0), ("gone", 0, 0.0), ("end", 0, 0.0)])
@example([("arrive", 0, 0.0), ("fallback", 1, 0.1), ("start", 0, 0.0), ("end", 0, 0.0)])
def test_a_hit_is_what_signals_count_as_one(course: list[tuple[str, int, float]]) -> None:
    book = Books(slots=1, pods=("a", "b"), adapters=("x", "y", "z"))
    there_now = {"a", "b"}
    for verb, number, pause in course:
        book.wait(pause)
        there = [*book.fleet.state.flights]
        flying = there[number % len(there)] if there else None
        pod = "ab"[number % 2]
        match verb:
            case "arrive":
                book.arrive("xyz"[number % 3])
            case "report":
                book.report(pod)
            case "gone" if number == 0:
                book.gone(pod)
                there_now.discard(pod)
            case "start" if flying is not None:
                book.start(flying)
            case "fallback" if flying is not None and {pod, book.fleet.state.flights[flying].pod} <= there_now:
                book.fallback(flying, pod)
            case "end" | "fail" if flying is not None:
                counted = _counted(book)
                book.end(flying, status=200 if verb == "end" else 404)
                row = book.request(flying)
                assert (bool(row.hit), row.hit is not None) == tuple(
                    after > before for before, after in zip(counted, _counted(book), strict=True)
                )
            case _:
                pass


def _counted(book: Books) -> tuple[int, int]:
    """Hits that signals have counted, and requests that could have been."""
    tracks = book.fleet.state.signals.pods.values()
    return sum(track.hits.total(book.now) for track in tracks), sum(track.asked.total(book.now) for track in tracks)


def test_strangers_leave_no_row() -> None:
    book = Books()
    book.end("stranger")
    book.fallback("stranger", "a")
    book.apply(events.BodyStarted, request_id="stranger")
    assert (book.all(RequestRow), book.books.open_requests) == ([], 0)
