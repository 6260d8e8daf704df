"""Explanations: winners, losers, holds and refusals, with terms that add up to scores [R2.6]."""

import pytest
from msgspec.structs import replace

from lorapick.core.explain import ALWAYS_ROWS, KEPT, MOST_WAITS, SAMPLE, Journal
from lorapick.model.events import By, LoadStarted, RequestArrived
from lorapick.model.pods import LoadedAdapter, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Request
from lorapick.model.settings import PickingSettings, Settings
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.testing.playbook import Playbook, plain_pod


@pytest.fixture
def book():
    return Playbook(pods=["a", "b", "c"], adapters=["legal", "code"])


def test_scores_are_the_weighted_sums_of_their_terms(book):
    book.use("legal", "a")
    book.report("a", waiting=2, running=3, gpu_utilization=0.4)
    book.arrive("legal", blocks=(1, 2, 3), subset=("b",))
    book.arrive("legal", blocks=(1, 2, 4))
    explanation = book.explain("r2")
    assert explanation.weights == {"adapter": 0.5, "kv": 0.2, "queue": 0.15, "gpu": 0.15}
    for verdict in explanation.verdicts:
        weighted = sum(weight * getattr(verdict.terms, term) for term, weight in explanation.weights.items())
        assert verdict.score == pytest.approx(weighted, abs=1e-12)
    scores = [verdict.score for verdict in explanation.verdicts]
    assert scores == sorted(scores, reverse=True)
    assert [verdict.pod for verdict in explanation.verdicts if verdict.won] == [book.effects[0].target.pod]


def test_what_is_explained_is_what_was_read_not_what_is_so_now(book):
    book.arrive("legal")
    winner = book.effects[0].target.pod
    before = book.explain("r1")
    book.start("r1")
    book.report(winner, waiting=8)
    book.silent(winner, SilentWhy.REFUSED)
    for pod in ("a", "b", "c"):
        book.gone(pod)
    assert book.explain("r1") == before
    assert before.verdicts[0].tier is Tier.DISK


def test_losers_are_told_what_cost_them_the_request(book):
    book.use("legal", "a")
    book.use("legal", "b")
    book.silent("c", SilentWhy.REFUSED)
    book.arrive("legal")
    winner = book.effects[0].target.pod
    loser = "b" if winner == "a" else "a"
    reasons = {verdict.pod: verdict.reason for verdict in book.explain("r1").verdicts}
    assert reasons == {winner: None, loser: Reason.LOST_TIE, "c": Reason.CIRCUIT_OPEN}
    book.arrive("legal")
    assert book.verdict("r2", loser).reason is Reason.OUTSCORED


def test_each_pod_says_how_its_tier_is_known(book):
    book.use("legal", "a")
    book.report("b", loaded=())
    book.apply(LoadStarted, pod="c", adapters=("legal",), by=By.CONTROLLER)
    book.arrive("legal")
    there = book.verdict("r1", "a")
    assert (there.source, there.since, there.last_evidence, there.evidence) == (
        Source.INFERRED, 0.0, 0.0, Evidence.ANSWER,
    )  # fmt: skip
    assert book.verdict("r1", "b").source is Source.INFERRED, "no cell: nobody ever spoke of it there"
    assert book.verdict("r1", "c").source is Source.COMMANDED
    book.report("b", loaded=(LoadedAdapter(name="legal", on_gpu=True),))
    book.arrive("legal")
    assert book.verdict("r2", "b").source is Source.REPORTED
    book.arrive("base")
    assert book.verdict("r3", "a").source is None


def test_a_hold_is_explained_and_then_its_dispatch():
    book = Playbook(pods=[plain_pod(pod, max_num_seqs=1, max_queue=1) for pod in ("a", "b")], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.arrive("legal")
    book.arrive("legal")
    held = book.explain("r3")
    assert (held.outcome, held.reason) == ("held", Reason.HELD_FOR_LOAD)
    assert {verdict.pod: verdict.reason for verdict in held.verdicts} == {
        "a": Reason.QUEUE_FULL,
        "b": Reason.HELD_FOR_LOAD,
    }
    assert not any(verdict.won for verdict in held.verdicts)
    book.start("r1")
    book.end("r1")
    assert book.explain("r3").outcome == "dispatched"
    assert book.verdict("r3", "a").won


def test_what_a_request_waited_for_is_kept_beside_its_last_decision():
    book = Playbook(pods=[plain_pod(pod, max_num_seqs=1, max_queue=1) for pod in ("a", "b")], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.arrive("legal")
    book.wait(0.25)
    assert book.arrive("legal") == ["r3 waits for a until 1.4"]
    (wait,) = book.explain("r3").course
    assert (wait.t, wait.reason, wait.follows, wait.until) == (0.25, Reason.HELD_FOR_LOAD, "a", pytest.approx(1.4))
    book.wait(0.25)
    book.start("r1")
    book.end("r1")
    sent = book.explain("r3")
    assert (sent.outcome, sent.course, sent.waited) == ("dispatched", (wait,), 0.25)
    book.end("r3")
    book.arrive("legal", id="r3")
    assert book.explain("r3").course == (), "the id is used again, by another request"


def test_a_long_course_keeps_its_beginning_and_its_end():
    journal = Journal()
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    taken = book.fleet.state.journal.latest(1)[0]
    for number in range(MOST_WAITS + 3):
        waits = replace(taken.pick, pod=None, reason=Reason.HELD_FOR_SLOT)
        journal.record(taken._replace(t=float(number), pick=waits, outcome="held", until=99.0))
    journal.record(taken._replace(t=20.0))
    explanation = journal.explain("r1")
    assert [wait.t for wait in explanation.course] == [0.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert (explanation.course_left_out, explanation.outcome) == (3, "dispatched")


def test_refusals_are_counted_by_reason_and_clients_mistakes_are_not(book):
    journal = book.fleet.state.journal
    book.arrive("legal", deadline=-1.0)
    (refused,) = journal.latest(1)
    mistaken = replace(refused.pick, request_id="mistaken", reason=Reason.ADAPTER_UNKNOWN)
    journal.record(refused._replace(pick=mistaken))
    book.wait(50.0)
    book.arrive("code", deadline=-1.0)
    book.arrive("legal")
    assert journal.refused(0.0) == {"deadline": 2}
    assert journal.refused(10.0) == {"deadline": 1}


def test_a_wait_for_a_place_is_explained_and_then_its_refusal(book):
    for pod in ("a", "b", "c"):
        book.report(pod, waiting=8)
    book.arrive("legal")
    held = book.explain("r1")
    assert (held.outcome, held.reason, held.follows) == ("held", Reason.HELD_FOR_SLOT, None)
    assert [(verdict.reason, verdict.score) for verdict in held.verdicts] == [(Reason.QUEUE_FULL, None)] * 3
    assert [(wait.reason, wait.because) for wait in held.course] == [(Reason.HELD_FOR_SLOT, Reason.QUEUE_FULL)]
    for pod in ("a", "b", "c"):
        book.report(pod, waiting=8, every=20.0)
    book.wait(30.0)
    explanation = book.explain("r1")
    assert (explanation.outcome, explanation.reason) == ("rejected", Reason.DEADLINE)
    assert [(verdict.reason, verdict.score) for verdict in explanation.verdicts] == [(Reason.QUEUE_FULL, None)] * 3
    book.arrive("legal", deadline=-1.0)
    assert book.explain("r2").reason is Reason.DEADLINE


def test_a_policy_without_terms_is_explained_by_its_score():
    book = Playbook(pods=["a", "b"], settings=Settings(picking=PickingSettings(policy="round-robin")))
    book.arrive("base")
    book.arrive("base")
    explanation = book.explain("r2")
    assert (explanation.policy, explanation.weights) == ("round-robin", {})
    assert [(verdict.pod, verdict.score, verdict.terms) for verdict in explanation.verdicts] == [
        ("b", 0.0, None),
        ("a", -1.0, None),
    ]


def test_the_journal_is_bounded_and_newest_first(book):
    for number in range(KEPT + 10):
        book.fleet.apply(_arrival(number), 0.0)
    journal = book.fleet.state.journal
    assert len(journal) == KEPT
    assert journal.explain("n0") is None
    latest = [decision.pick.request_id for decision in journal.latest(3)]
    assert latest == [f"n{KEPT + 9}", f"n{KEPT + 8}", f"n{KEPT + 7}"]
    assert journal.latest(0) == []
    assert len(journal.latest(10 * KEPT)) == KEPT


def test_large_fleets_keep_a_sample_and_every_refusal():
    book = Playbook(pods=[f"p{index}" for index in range(ALWAYS_ROWS + 1)])
    for number in range(320):
        book.fleet.apply(_arrival(number), 0.0)
    journal = book.fleet.state.journal
    kept = len(journal)
    assert 320 / SAMPLE / 2 < kept < 320 / SAMPLE * 2
    winners = {decision.pick.pod for decision in journal.latest(kept)}
    assert len(winners) > kept / 2, "the sample is not of one side of the ties"
    for _ in range(5):
        book.arrive("base", subset=())
    assert len(journal) == kept + 5


def _arrival(number):
    return RequestArrived(t=0.0, id=number, request=Request(id=f"n{number}", model="base"))


def test_a_refusal_says_what_the_client_was_told_and_how_long_it_had_waited(book):
    for pod in ("a", "b", "c"):
        book.report(pod, waiting=8, every=100.0)
    book.arrive("legal")
    assert (book.explain("r1").told, book.explain("r1").waited) == (None, None)
    book.wait(30.0)
    refused = book.explain("r1")
    assert refused.told == "it has waited for 30 s, and still no pod can serve 'legal' now: 3 queue_full"
    assert refused.waited == 30.0
    book.arrive("legal", id="low", priority=-1)
    assert book.explain("low").told == "its priority is -1, below 0 (objectives), and it would have to wait"


def test_a_request_that_got_its_place_says_how_long_it_had_waited(book):
    for pod in ("a", "b", "c"):
        book.report(pod, waiting=8, every=100.0)
    book.arrive("legal")
    book.wait(1.5)
    book.report("a", waiting=0)
    assert (book.explain("r1").outcome, book.explain("r1").waited) == ("dispatched", 1.5)
