"""What each pod would have cost as the one that prefills, and why others could not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings
from lorapick.model.events import By, LoadSucceeded
from lorapick.model.picks import PrefillVerdict
from lorapick.model.pods import Role, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.wire.words import explained

LONG = {"prompt_tokens": 2000, "stream": True}
SHORT = {"prompt_tokens": 20, "stream": True}


def book_of(*roles: str, policy: str = "weighted", zones: tuple[str, ...] = (), **settings: object) -> Playbook:
    pods = [
        plain_pod(f"{role[0]}{place}", role=Role(role), max_loras=2, zone=zones[place - 1] if zones else None)
        for place, role in enumerate(roles, start=1)
    ]
    made = Settings(picking=PickingSettings(policy=policy), disaggregation=DisaggregationSettings(**settings))
    return Playbook(pods=pods, adapters=("legal", "code"), settings=made)


def side(book: Playbook, request_id: str = "r1") -> dict[str, PrefillVerdict]:
    return {verdict.pod: verdict for verdict in book.explain(request_id).prefill_side}


def test_the_chosen_one_comes_first_with_its_parts():
    book = book_of("prefill", "decode", "prefill")
    book.arrive("legal", **LONG)
    explained_ = book.explain("r1")
    first, other = explained_.prefill_side
    assert (first.pod, first.chosen, first.reason) == (explained_.prefill, True, None)
    assert first.queue == 0 and first.prompt == pytest.approx(2000 * book.fleet.state.legs.per_token)
    assert first.load > 0 and first.transfer > 0
    pair = explained_.pair
    assert first.queue + first.load + first.prompt == pytest.approx(pair.prefill)
    assert first.transfer == pytest.approx(pair.transfer)
    assert (other.chosen, other.reason) == (False, Reason.LOST_TIE)


def test_what_is_queued_and_far_costs_more():
    book = book_of("prefill", "decode", "prefill", zones=("east", "west", "west"))
    for pod in ("p1", "p3"):
        book.apply(LoadSucceeded, pod=pod, adapter="legal", by=By.CONTROLLER)
    book.arrive("legal", **LONG)
    assert side(book)["p3"].chosen and side(book)["p1"].reason is Reason.OUTSCORED
    assert side(book)["p1"].transfer > side(book)["p3"].transfer
    book.arrive("legal", **LONG)
    again = side(book, "r2")
    assert again["p3"].queue > 0
    assert side(book)["p3"].queue == 0  # as it was then


def test_a_pod_that_only_decodes_is_not_among_them_nor_one_that_prefills_called_of_the_wrong_role():
    book = book_of("prefill", "decode", "prefill", "decode")
    book.arrive("legal", **LONG)
    assert sorted(side(book)) == ["p1", "p3"]
    words = explained(book.explain("r1")).words
    assert not [line for line in words if "only does prefill" in line]


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (lambda book: book.drain("p1"), Reason.DRAINING),
        (lambda book: book.silent("p1", SilentWhy.REFUSED), Reason.CIRCUIT_OPEN),
        (lambda book: (book.wait(6.0), book.report("d2"), book.report("p3")), Reason.STALE),
        (lambda book: book.report("p1", waiting=99), Reason.QUEUE_FULL),
    ],
)
def test_who_could_not_has_its_own_reason(happens, reason):
    book = book_of("prefill", "decode", "prefill")
    happens(book)
    book.arrive("legal", **LONG)
    assert side(book)["p1"].reason is reason and side(book)["p1"].counted is None
    assert side(book)["p3"].chosen


def test_nobody_to_prefill_is_explained_by_pod():
    book = book_of("prefill", "decode", "prefill")
    book.silent("p1", SilentWhy.REFUSED)
    book.drain("p3")
    book.arrive("legal", **LONG)
    assert book.explain("r1").unsplit == "nobody_prefills"
    assert {pod: verdict.reason for pod, verdict in side(book).items()} == {
        "p1": Reason.CIRCUIT_OPEN,
        "p3": Reason.DRAINING,
    }
    words = explained(book.explain("r1")).words
    assert "d2 prefills by itself, since no other pod could." in words
    assert [line for line in words if line.startswith("Not p3 to prefill: the pod is draining")]


def test_a_pod_that_is_left_alone_says_so():
    book = book_of("prefill", "decode")
    for number in range(1, 4):
        book.arrive("legal", **LONG)
        book.prefilled(f"r{number}", ok=False)
    book.arrive("legal", **LONG)
    verdict = side(book, "r4")["p1"]
    assert (verdict.reason, verdict.paused) == (Reason.CIRCUIT_OPEN, True)


def test_a_second_load_is_not_begun():
    book = book_of("prefill", "decode", "prefill")
    book.arrive("legal", **LONG)
    book.arrive("legal", **LONG)
    loads = next(pod for pod in ("p1", "p3") if side(book)[pod].chosen)
    other = {"p1": "p3", "p3": "p1"}[loads]
    assert side(book, "r2")[loads].chosen
    assert side(book, "r2")[other].reason is Reason.HELD_FOR_LOAD


@pytest.mark.parametrize(
    ("decide", "request_", "unsplit", "compared"),
    [
        (Decide.TOKENS, SHORT, "few_tokens", True),
        (Decide.TOKENS, {"stream": True}, "unknown_length", False),
        (Decide.COST, SHORT, "dearer", True),
        (Decide.TOKENS, LONG, None, True),
        (Decide.ALWAYS, {"stream": True}, None, True),
    ],
)
def test_why_it_was_not_split(decide, request_, unsplit, compared):
    book = book_of("prefill", "decode", decide=decide)
    book.arrive("legal", **request_)
    assert book.explain("r1").unsplit == unsplit
    assert bool(side(book)) is compared
    if unsplit and compared:
        assert (side(book)["p1"].chosen, side(book)["p1"].reason) == (False, None)


def test_an_unknown_length_is_not_counted_as_nobody():
    book = book_of("prefill", "decode")
    book.arrive("legal", stream=True)
    assert book.fleet.state.tally.splits == {"alone": 1}


def test_a_fleet_that_does_not_split_says_nothing():
    book = book_of("both", "both")
    book.arrive("legal", **LONG)
    assert (book.explain("r1").unsplit, side(book)) == (None, {})


def test_each_by_itself_has_scores_of_the_policy():
    book = book_of("prefill", "decode", "prefill", choice=Choice.INDEPENDENT)
    book.drain("p3")
    book.arrive("legal", **LONG)
    assert side(book)["p1"].chosen and side(book)["p1"].score is not None and side(book)["p1"].counted is None
    assert side(book)["p3"].reason is Reason.DRAINING
    book.prefilled("r1")
    book.start("r1")
    book.end("r1", status=200)
    book.arrive("legal", **SHORT)
    assert (book.explain("r2").unsplit, side(book, "r2")) == ("few_tokens", {})


def test_refused_and_held_requests_have_it_too():
    book = book_of("prefill", "decode")
    book.gone("d2")
    book.arrive("legal", **LONG)
    assert book.explain("r1").outcome == "rejected"
    assert list(side(book)) in ([], ["p1"])


@given(st.lists(st.tuples(st.sampled_from(["legal", "code"]), st.integers(1, 4000), st.booleans()), max_size=30))
def test_the_slow_twin_agrees_with_the_choice(requests):
    """Whoever was taken is the cheapest of those that could, by the explanation's own figures."""
    book = book_of("prefill", "decode", "prefill", "decode", "both", zones=("a", "a", "b", "b", "a"))
    for number, (model, tokens, over) in enumerate(requests):
        book.arrive(model, id=f"q{number}", prompt_tokens=tokens, stream=True)
        flight = book.fleet.state.flights.get(f"q{number}")
        explanation = book.explain(f"q{number}")
        if flight is not None and explanation.prefill is not None:
            costs = {v.pod: v.counted for v in explanation.prefill_side if v.counted is not None}
            assert costs[explanation.prefill] == pytest.approx(min(costs.values()))
        if over and flight is not None and flight.pod is not None:
            book.prefilled(f"q{number}")
            book.end(f"q{number}", status=200)
        book.now += 0.01


def test_too_few_tokens_are_said_with_their_number():
    book = book_of("prefill", "decode")
    book.arrive("legal", **SHORT)
    explanation = book.explain("r1")
    assert (explanation.uncached_tokens, explanation.least_uncached_tokens) == (20, 256)
    assert [line for line in explained(explanation).words if "some 20 tokens" in line and "from 256 on" in line]


def test_where_cost_decides_there_is_no_limit():
    book = book_of("prefill", "decode", decide=Decide.COST)
    book.arrive("legal", **SHORT)
    explanation = book.explain("r1")
    assert (explanation.uncached_tokens, explanation.least_uncached_tokens) == (20, None)


@pytest.mark.parametrize("choice", [*Choice])
def test_a_dead_pod_that_only_prefills_has_one_sentence(choice):
    book = book_of("prefill", "decode", "prefill", choice=choice)
    book.silent("p1", SilentWhy.REFUSED)
    book.arrive("legal", **LONG)
    assert (side(book)["p1"].silent, side(book)["p1"].only, side(book)["p3"].silent) == (True, True, False)
    said = [line for line in explained(book.explain("r1")).words if line.startswith("Not p1")]
    assert said == ["Not p1 to prefill: the pod does not answer."]
