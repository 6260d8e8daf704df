"""Spans of requests, by what happens to them."""

import random

import pytest
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from lorapick.live.tracing import MOST_OPEN, Span, Tracing
from lorapick.model import events
from lorapick.model.effects import Dispatch
from lorapick.model.pods import SilentWhy
from lorapick.model.requests import Outcome, Request, Target
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.wire.traceparent import read, write

TRACE, CALLER = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
SAMPLED = write(TRACE, CALLER)
UNSAMPLED = SAMPLED[:-2] + "00"


class Traced(Playbook):
    """A fleet whose requests are followed."""

    def __init__(self, *, sample: float = 0.0, **parts: object) -> None:
        self.spans: list[Span] = []
        self.clock = ManualClock(0.0)
        self.tracing = Tracing(
            self.spans.append,
            sample=sample,
            changes=lambda: self.fleet.changes,
            clock=lambda: self.now,
            ids=random.Random(1),
        )
        super().__init__(**parts)  # type: ignore[arg-type]

    def apply(self, kind: type[events.Event], **fields: object) -> list[str]:
        told = super().apply(kind, **fields)
        self.tracing.observe(self.events[-1], self.effects)
        return told

    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def span(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found


def narrow() -> Traced:
    """Two pods with one seat each."""
    return Traced(pods=[plain_pod(pod, max_num_seqs=1, max_queue=1) for pod in ("a", "b")], adapters=["legal"])


def test_a_traced_request_from_its_arrival_to_its_end() -> None:
    book = Traced(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", traceparent=SAMPLED, subset=("a",))
    header = read(book.tracing.header("r1"))
    assert header is not None and header.sampled
    book.wait(0.5)
    book.start("r1")
    book.apply(events.BodyStarted, request_id="r1")
    book.wait(1.0)
    book.apply(
        events.RequestEnded, request_id="r1", outcome=Outcome.SERVED, status=200, prompt_tokens=7, output_tokens=9
    )
    assert book.names() == ["lorapick.pick", "lorapick.load_wait", "gateway.request"]
    pick, load, whole = book.spans
    assert {span.trace_id for span in book.spans} == {TRACE} == {header.trace_id}
    assert (whole.parent_id, whole.remote, whole.span_id) == (CALLER, True, header.span_id)
    assert [span.parent_id for span in (pick, load)] == [whole.span_id] * 2
    assert pick.attributes == {
        "lorapick.outcome": "dispatched",
        "lorapick.adapter": "legal",
        "lorapick.tier": "disk",
        "lorapick.pod": "a",
        "lorapick.policy": "weighted",
        "lorapick.score": pytest.approx(0.45),
    }
    assert load.attributes == {
        "lorapick.adapter": "legal",
        "lorapick.pod": "a",
        "lorapick.tier": "disk",
        "lorapick.load.shared": False,
    }
    assert whole.attributes == {
        "lorapick.request_id": "r1",
        "gen_ai.request.model": "legal",
        "lorapick.adapter": "legal",
        "lorapick.tier": "disk",
        "lorapick.pod": "a",
        "lorapick.response_started_s": 0.5,
        "lorapick.body_started_s": 0.5,
        "lorapick.outcome": "served",
        "http.response.status_code": 200,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 9,
    }
    assert [(span.end - span.start) / 1e9 for span in book.spans] == pytest.approx([0.0, 0.5, 1.5])
    assert [span.error for span in book.spans] == [None] * 3
    assert len(book.tracing) == 0
    assert book.tracing.header("r1") is None


def test_a_hold_has_its_own_span_and_ends_with_a_second_pick() -> None:
    book = narrow()
    book.arrive("legal", subset=("a",))
    book.arrive("legal")
    book.wait(0.25)
    book.arrive("legal", traceparent=SAMPLED)
    assert book.names() == ["lorapick.pick"]
    book.wait(0.25)
    book.start("r1")
    book.end("r1")
    assert book.names() == ["lorapick.pick", "lorapick.hold", "lorapick.pick"]
    held, hold, sent = book.spans
    assert (held.attributes["lorapick.outcome"], held.attributes["lorapick.follows"]) == ("held", "a")
    assert (sent.attributes["lorapick.outcome"], sent.attributes["lorapick.pod"]) == ("dispatched", "a")
    assert hold.attributes == {
        "lorapick.reason": "held_for_load", "lorapick.adapter": "legal", "lorapick.follows": "a",
    }  # fmt: skip
    assert (hold.end - hold.start) / 1e9 == pytest.approx(0.25)


def test_followers_of_a_load_wait_until_it_ends_and_who_leaves_no_longer() -> None:
    book = Traced(pods=["a"], adapters=["legal"])
    for _ in range(3):
        book.arrive("legal", traceparent=SAMPLED)
    book.wait(0.1)
    book.end("r3", Outcome.ABANDONED)
    assert book.span("lorapick.load_wait").error == "abandoned"
    assert book.span("gateway.request").error == "abandoned"
    book.wait(0.2)
    book.start("r1")
    waits = [span for span in book.spans if span.name == "lorapick.load_wait"]
    assert [span.attributes["lorapick.load.shared"] for span in waits] == [True, False, True]
    assert [(span.end - span.start) / 1e9 for span in waits] == pytest.approx([0.1, 0.3, 0.3])
    assert [span.error for span in waits] == ["abandoned", None, None]


def test_a_load_that_comes_to_nothing_is_an_error() -> None:
    book = Traced(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", traceparent=SAMPLED, subset=("a",))
    book.gone("a")
    assert book.span("lorapick.load_wait").error == "the load ended in disk"
    book.end("r1", Outcome.FAILED, status=503)
    whole = book.span("gateway.request")
    assert (whole.error, whole.attributes["http.response.status_code"]) == ("failed", 503)


def test_another_pod_than_picked_is_told() -> None:
    book = Traced(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", traceparent=SAMPLED, subset=("a",))
    book.fallback("r1", "b")
    assert book.span("lorapick.load_wait").error is not None
    book.start("r1")
    book.end("r1")
    whole = book.span("gateway.request")
    assert (whole.attributes["lorapick.pod"], whole.attributes["lorapick.fallback"]) == ("b", True)


def test_a_refusal_is_the_end() -> None:
    book = Traced(pods=["a"], adapters=["legal"])
    book.silent("a", SilentWhy.REFUSED)
    book.arrive("legal", traceparent=SAMPLED)
    assert book.names() == ["lorapick.pick", "gateway.request"]
    assert [span.error for span in book.spans] == ["no_pod", "no_pod"]
    assert book.span("gateway.request").attributes["http.response.status_code"] == 503
    assert len(book.tracing) == 0


def test_a_prefill_pod_is_an_attribute() -> None:
    book = Traced(pods=["a"], adapters=["legal"])
    book.arrive("legal", traceparent=SAMPLED)
    (answer,) = [effect for effect in book.effects if isinstance(effect, Dispatch)]
    split = Dispatch(
        cause=1, request_id="r1", target=answer.target, fallbacks=(), pick=answer.pick,
        prefill=Target(pod="d", address="d:1"),
    )  # fmt: skip
    book.spans.clear()
    book.tracing.observe(events.Ticked(t=book.now, id=99), [split])
    assert book.span("lorapick.pick").attributes["lorapick.prefill_pod"] == "d"


@pytest.mark.parametrize(
    ("sample", "header", "traced"),
    [
        (0.0, None, False),
        (0.0, SAMPLED, True),
        (1.0, UNSAMPLED, False),
        (1.0, None, True),
        (1.0, "00-broken", True),
        (0.0, "00-broken", False),
    ],
)
def test_the_callers_decision_counts_then_the_share(sample: float, header: str | None, traced: bool) -> None:
    book = Traced(pods=["a"], adapters=["legal"], sample=sample)
    book.arrive("legal", traceparent=header)
    assert (book.tracing.header("r1") is not None) is traced
    book.end("r1")
    assert bool(book.spans) is traced
    if traced and header != SAMPLED:
        assert book.spans[-1].parent_id is None


def test_the_share_is_decided_as_opentelemetry_does() -> None:
    theirs, mine = TraceIdRatioBased(0.25), random.Random(1)
    book = Traced(pods=["a"], sample=0.25)
    traced = []
    for number in range(400):
        before = len(book.spans)
        book.tracing.observe(events.RequestArrived(t=0.0, id=1, request=Request(id=f"q{number}", model="base")), ())
        traced.append(book.tracing.header(f"q{number}") is not None)
        trace_id = mine.getrandbits(128)
        assert traced[-1] is theirs.should_sample(None, trace_id, "x").decision.is_sampled()
        if traced[-1]:
            mine.getrandbits(64)
        assert len(book.spans) == before
    assert 60 < sum(traced) < 140


def test_too_many_in_flight_are_not_followed_and_counted() -> None:
    tracing = Tracing(lambda _: None, sample=1.0, changes=lambda: (), clock=lambda: 0.0)
    for number in range(MOST_OPEN + 2):
        tracing.observe(events.RequestArrived(t=0.0, id=1, request=Request(id=f"q{number}", model="base")), ())
    assert (len(tracing), tracing.not_followed) == (MOST_OPEN, 2)
    assert tracing.header(f"q{MOST_OPEN}") is None
