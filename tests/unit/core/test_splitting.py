"""Prefill on another pod: who could do it, who does, and when it is over."""

import random

import pytest
from msgspec.structs import replace

from lorapick.core.admission.leg_times import LATE, PATIENT
from lorapick.core.case import Case
from lorapick.core.splitting import UNKNOWN_TOKENS, prefill_leg, tokens_of
from lorapick.core.state import Flight
from lorapick.model import events
from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings
from lorapick.model.effects import Touch
from lorapick.model.events import Touched, TouchFailed
from lorapick.model.picks import What
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 2000, "stream": True}
SHORT = {"prompt_tokens": 20, "stream": True}


def pods(**roles):
    return [plain_pod(name, role=Role(role), max_loras=2) for name, role in roles.items()]


def book_of(*, policy="weighted", adapters=("legal", "code", "sql"), pair=("prefill", "decode"), more=(), **settings):
    roles = {f"{role[0]}{number}": role for number, role in enumerate((*pair, *more), start=1)}
    settings = Settings(picking=PickingSettings(policy=policy), disaggregation=DisaggregationSettings(**settings))
    return Playbook(pods=pods(**roles), adapters=adapters, settings=settings)


def tally(book):
    return book.fleet.state.tally


def test_tokens_are_counted_or_guessed_from_bytes():
    assert tokens_of(Request(id="r", model="m", prompt_tokens=7, prompt_bytes=400)) == 7
    assert tokens_of(Request(id="r", model="m", prompt_bytes=401, body_bytes=4000)) == 101
    assert tokens_of(Request(id="r", model="m", body_bytes=40)) == 10
    assert tokens_of(Request(id="r", model="m")) is None


def test_a_long_prompt_is_prefilled_elsewhere_while_the_adapter_comes():
    book = book_of()
    told = book.arrive("legal", **LONG)
    assert told == ["r1 -> d2 (disk) after p1 else p1", "note touch pod=d2 adapter=legal why=pair", "Touch"]
    assert book.tier("p1", "legal") == book.tier("d2", "legal") == "loading"
    assert (book.in_flight("p1"), book.in_flight("d2")) == (1, 1)
    assert tally(book).splits == {"split": 1}
    assert tally(book).loads == 2
    assert book.prefilled("r1")[0].startswith("note load_ended pod=p1")
    assert (book.in_flight("p1"), book.in_flight("d2")) == (0, 1)
    book.start("r1")
    book.end("r1")
    assert book.in_flight("d2") == 0
    assert book.fleet.state.legs.queued == {}


def test_a_short_prompt_stays_where_it_is_decoded():
    book = book_of()
    assert book.arrive("legal", **SHORT) == ["r1 -> d2 (disk)"]
    assert tally(book).splits == {"alone": 1}


def test_what_the_decoding_pod_has_cached_counts():
    book = book_of(uncached_tokens=1000)
    blocks = tuple(range(1, 126))
    book.arrive("legal", blocks=blocks, **LONG)
    book.prefilled("r1")
    book.start("r1")
    book.end("r1")
    assert "after" not in book.arrive("legal", blocks=blocks, **LONG)[0]


@pytest.mark.parametrize("choice", [*Choice])
def test_what_is_beyond_the_blocks_of_a_long_prompt_is_not_cached(choice):
    """An engine said 7,096 prompt tokens, 4,096 of them cached: all that 256 blocks of 64 bytes stand for."""
    book = book_of(choice=choice)
    long = {"prompt_bytes": 28_384, "blocks": tuple(range(1, 257)), "stream": True}
    book.arrive("legal", **long)
    book.prefilled("r1")
    book.start("r1")
    book.end("r1")
    assert "after p1" in book.arrive("legal", **long)[0]
    assert book.fleet.state.legs.queued == {0: 3000}
    assert book.explain("r2").unsplit is None


def test_only_what_the_decoding_pod_has_not_cached_is_transferred():
    book = book_of(decide=Decide.ALWAYS)
    long = {"prompt_bytes": 28_384, "blocks": tuple(range(1, 257)), "stream": True}
    for _ in range(2):
        book.arrive("legal", **long)
    pairs = [book.explain(request_id).pair for request_id in ("r1", "r2")]
    settings = book.settings.disaggregation
    each = settings.kv_bytes_per_token / settings.links.elsewhere
    assert [pair.transfer - settings.link_latency for pair in pairs] == pytest.approx([7096 * each, 3000 * each])
    (verdict,) = book.explain("r2").prefill_side
    assert verdict.transfer == pytest.approx(pairs[1].transfer)


def test_a_prompt_of_unknown_length_may_be_cached_too():
    book = book_of(decide=Decide.ALWAYS)
    known = {"prompt_bytes": 6_400, "blocks": tuple(range(1, 101)), "stream": True}
    for _ in range(2):
        book.arrive("legal", **known)
    assert book.explain("r2").pair.transfer == pytest.approx(book.settings.disaggregation.link_latency)


@pytest.mark.parametrize("decide", [Decide.TOKENS, Decide.COST])
def test_a_prompt_of_unknown_length_is_not_split(decide):
    book = book_of(decide=decide)
    assert book.arrive("legal") == ["r1 -> d2 (disk)"]


def test_always_is_always():
    book = book_of(decide=Decide.ALWAYS)
    assert "after p1" in book.arrive("legal")[0]
    assert book.fleet.state.legs.queued == {0: UNKNOWN_TOKENS}


def test_never_is_never():
    book = book_of(decide=Decide.NEVER)
    assert book.arrive("legal", **LONG) == ["r1 -> d2 (disk)"]
    assert tally(book).splits == {}


def test_by_cost_an_idle_pod_prefills_by_itself_and_a_busy_one_does_not():
    book = book_of(decide=Decide.COST)
    for _ in range(2):
        assert "after" not in book.arrive("legal", **SHORT)[0]
    for _ in range(8):
        book.arrive("legal", **LONG)
    assert tally(book).splits["split"] >= 1


def test_nobody_waits_for_a_pod_that_prefills():
    book = book_of()
    book.silent("p1")
    book.wait(6.0)
    book.report("d2")
    assert book.arrive("legal", **LONG) == ["r1 -> d2 (disk)"]
    assert tally(book).splits == {"nobody_prefills": 1}


def test_a_pod_of_role_prefill_takes_no_request_of_its_own():
    book = book_of()
    book.gone("d2")
    assert book.arrive("legal", **LONG) == ["r1 refused: 503 no_pod"]


def test_without_pods_that_prefill_nothing_is_split():
    book = book_of(pair=("both", "both"))
    assert not book.fleet.state.splits
    assert book.arrive("legal", **LONG)[0].startswith("r1 -> ")
    assert tally(book).splits == {}


def test_one_load_on_each_side_for_a_crowd():
    book = book_of(more=("prefill", "decode", "prefill", "decode"))
    for _ in range(20):
        book.arrive("legal", **LONG)
    loading = [pod for pod in ("p1", "d2", "p3", "d4", "p5", "d6") if book.tier(pod, "legal") == "loading"]
    assert len(loading) == 2
    assert {pod[0] for pod in loading} == {"p", "d"}
    assert tally(book).loads == 2


def test_a_failed_prefill_is_done_by_the_pod_that_decodes():
    book = book_of()
    book.arrive("legal", **LONG)
    book.prefilled("r1", ok=False)
    assert tally(book).legs_failed == 1
    assert book.tier("p1", "legal") == "disk"
    assert book.in_flight("d2") == 1


def test_a_prefilling_pod_that_goes_away_is_counted():
    book = book_of()
    book.arrive("legal", **LONG)
    book.gone("p1")
    assert tally(book).legs_lost == 1
    assert book.in_flight("d2") == 1
    book.start("r1")
    book.end("r1")


def test_a_decoding_pod_that_goes_away_leaves_the_prefill_to_its_end():
    book = book_of(more=("decode",))
    book.arrive("legal", **LONG)
    chosen = book.effects[0].target.pod
    book.gone(chosen)
    assert book.in_flight("p1") == 2, "the prefill, and the slot that is kept for the request"
    assert book.fleet.state.flights["r1"].leg is not None
    book.end("r1", Outcome.FAILED)
    assert book.in_flight("p1") == 0


def test_a_fallback_keeps_the_reservation_and_the_prefill():
    book = book_of(more=("decode",))
    book.arrive("legal", **LONG)
    first, other = book.effects[0].target.pod, book.effects[0].fallbacks[-1].pod
    book.fallback("r1", other)
    assert (book.in_flight(first), book.in_flight(other), book.in_flight("p1")) == (0, 1, 1)
    book.prefilled("r1")
    home = book.fleet.state.residency.home(book.fleet.state.columns.row_of[other])
    assert ([*home.reserved] == ["legal"] and not home.busy("legal")) or book.tier(other, "legal") == "loading"
    book.start("r1")
    book.body("r1")
    assert home.reserved == {}


def test_the_last_fallback_is_where_it_is_prefilled():
    book = book_of()
    book.arrive("legal", **LONG)
    assert [target.pod for target in book.effects[0].fallbacks] == ["p1"]
    book.fallback("r1", "p1")
    assert (book.in_flight("p1"), book.in_flight("d2")) == (1, 0)
    assert book.fleet.state.flights["r1"].leg is None


def test_a_client_that_leaves_during_the_prefill_frees_both():
    book = book_of()
    book.arrive("legal", **LONG)
    book.end("r1", Outcome.ABANDONED)
    assert (book.in_flight("p1"), book.in_flight("d2")) == (0, 0)
    assert book.fleet.state.legs.queued == {}


def test_headers_of_a_stream_end_the_prefill():
    book = book_of()
    book.arrive("legal", **LONG)
    book.start("r1")
    assert book.in_flight("p1") == 0
    assert book.fleet.state.flights["r1"].ran_from == book.now


def test_a_prefill_of_whose_end_nobody_speaks_is_over_some_time_and_the_slot_stays_reserved():
    book = book_of()
    book.arrive("legal", prompt_tokens=2000)
    told = book.wait(4.0)
    assert tally(book).legs_overdue == 1
    assert book.in_flight("p1") == 0
    home = book.fleet.state.residency.home(book.fleet.state.columns.row_of["d2"])
    assert [*home.reserved] == ["legal"]
    assert not [each for each in told if "load_failed" in each]
    book.start("r1")
    assert home.reserved == {}
    book.end("r1")


def test_nothing_is_learnt_of_service_where_nobody_knows_when_it_began():
    book = book_of()
    before = book.fleet.state.prices.service.base
    book.arrive("legal", prompt_tokens=2000)
    book.wait(4.0)
    book.start("r1")
    book.end("r1", status=200)
    assert book.fleet.state.prices.service.base == before


def test_no_load_begins_that_would_throw_out_a_reserved_adapter():
    book = book_of(adapters=("legal", "code", "sql"))
    for name in ("legal", "code"):
        book.use(name, "d2")
    book.arrive("legal", **LONG)
    assert any(isinstance(effect, Touch) for effect in book.effects)
    # Until the touch is answered, legal would be the next to go.
    assert book.arrive("sql", **SHORT)[0].startswith("r2 waits for a place")
    book.prefilled("r1")
    assert book.tier("d2", "legal") == "gpu_serving"


def test_independent_choice_takes_each_by_the_policy():
    book = book_of(choice=Choice.INDEPENDENT, policy="round-robin", more=("prefill", "decode"))
    told = [book.arrive("legal", **LONG)[0] for _ in range(2)]
    assert all(" after " in line for line in told)
    assert not any(isinstance(effect, Touch) for answer in book.answers for effect in answer)


@pytest.mark.parametrize("choice", [*Choice])
def test_a_prompt_of_unknown_length_is_not_split_whoever_chooses(choice):
    book = book_of(choice=choice, uncached_tokens=0)
    book.arrive("legal", stream=True)
    assert tally(book).splits == {"alone": 1}


def test_where_a_slot_is_reserved_only_its_answer_ends_a_commanded_load():
    book = book_of()
    book.arrive("legal", **LONG)
    for _ in range(3):
        book.wait(0.9)
        book.report("p1")
        book.report("d2")
        assert book.tier("d2", "legal") == "loading"
    book.apply(Touched, pod="d2", adapter="legal")
    assert book.tier("d2", "legal") == "gpu_serving"


@pytest.mark.parametrize("status", [404, 503])
def test_a_streamed_error_says_nothing_of_the_prefill(status):
    book = book_of()
    before = book.fleet.state.legs.per_token
    book.arrive("legal", **LONG)
    assert not [line for line in book.start("r1", status=status) if "load_ended pod=p1" in line]
    assert book.tier("p1", "legal") == "loading"
    book.end("r1", Outcome.FAILED, status=status)
    assert book.fleet.state.legs.per_token == before


@pytest.mark.parametrize("choice", [*Choice])
def test_a_pod_that_fails_every_prefill_at_once_draws_nobody(choice):
    book = book_of(more=("prefill",), choice=choice)
    sent = []
    for _ in range(30):
        book.arrive("legal", **LONG)
        where = book.effects[0].prefill
        sent.append(where.pod if where is not None else None)
        if where is not None:
            book.prefilled(f"r{len(sent)}", ok=where.pod != "p1")
        book.end(f"r{len(sent)}", status=200)
    assert sent.count("p1") <= 4
    assert sent.count("p3") >= 20


def slow(book, request_id, *, ok):
    """A request whose prefill is overdue for long when it ends."""
    book.arrive("legal", id=request_id, **LONG)
    assert book.effects[0].prefill is not None
    book.wait(20.0)
    told = [*book.report("p1"), *book.report("d2"), *book.prefilled(request_id, ok=ok, why="prefiller_timeout")]
    book.start(request_id)
    book.end(request_id, status=200)
    return told


def test_prefills_that_fail_long_after_they_were_overdue_count_for_the_pause_and_once():
    book = book_of()
    for number in range(PATIENT):
        assert not [line for line in slow(book, f"q{number}", ok=False) if "prefill_failed" in line]
    assert (tally(book).legs_overdue, tally(book).legs_failed) == (PATIENT, 0)
    came = [(each.what, each.why) for each in book.explain("q0").came]
    assert came[:2] == [(What.OVERDUE, None), (What.FAILED, "prefiller_timeout")]
    book.report("p1")
    assert " after " not in book.arrive("legal", **LONG)[0]
    assert tally(book).splits["nobody_prefills"] == 1


def test_a_prefill_that_was_overdue_and_ends_well_shows_that_its_pod_works():
    book = book_of()
    for ok in (False, False, True, False, False):
        slow(book, f"q{book.now}", ok=ok)
    assert not book.fleet.state.legs.paused(0, now=book.now)


def test_prefills_that_are_overdue_and_end_well_say_what_a_token_takes():
    book = book_of()
    slow(book, "load", ok=True)
    before = book.fleet.state.legs.per_token
    slow(book, "q", ok=True)
    assert book.fleet.state.legs.per_token > before


def test_a_prefill_that_ends_well_shows_that_its_pod_works():
    book = book_of()
    for number, ok in enumerate((False, False, True, False, False)):
        book.arrive("legal", id=f"q{number}", **LONG)
        book.prefilled(f"q{number}", ok=ok)
        book.end(f"q{number}", status=200)
    assert tally(book).legs_failed == 4
    assert not book.fleet.state.legs.paused(0, now=book.now)


@pytest.mark.parametrize("lost", ["gone", "restarted"])
def test_what_was_overdue_on_a_pod_says_nothing_of_the_next_one_in_its_row(lost):
    book = book_of()
    for number in range(PATIENT):
        book.arrive("legal", id=f"q{number}", **LONG)
    book.wait(20.0)
    assert tally(book).legs_overdue == PATIENT
    if lost == "gone":
        book.gone("p1")
        book.appear(pods(p9="prefill")[0])
        assert book.fleet.state.columns.row_of["p9"] == 0
    else:
        book.change(replace(pods(p1="prefill")[0], address="elsewhere:1"))
    for number in range(PATIENT):
        book.prefilled(f"q{number}", ok=False)
    assert not book.fleet.state.legs.paused(0, now=book.now)


@pytest.mark.parametrize("before", ["disk", "loading", "gpu"])
def test_overdue_is_four_times_what_the_choice_expects_with_load_and_queue(before):
    book = book_of()
    if before == "gpu":
        book.apply(events.LoadSucceeded, pod="p1", adapter="legal", by=events.By.CONTROLLER)
    elif before == "loading":
        book.arrive("legal", id="first", **LONG)
    book.wait(0.25)
    book.arrive("legal", id="q", prompt_tokens=20_000)
    expected = book.effects[0].pick.pair.prefill
    assert expected >= 2.0
    for _ in range(20):
        book.report("p1")
        book.report("d2")
        book.wait(expected * LATE / 20 - 1e-6)
        assert What.OVERDUE not in [each.what for each in book.explain("q").came]
    book.wait(1e-3)
    assert What.OVERDUE in [each.what for each in book.explain("q").came]


def test_a_pod_that_left_the_list_may_still_prefill_and_the_slot_stays_reserved():
    book = book_of()
    book.arrive("legal", **LONG)
    book.apply(Touched, pod="d2", adapter="legal")
    book.drain("p1")
    told = book.gone("p1")
    assert tally(book).legs_lost == 1 and [line for line in told if "prefill_failed" in line]
    assert "Touch" in told
    book.apply(Touched, pod="d2", adapter="legal")
    home = book.fleet.state.residency.home(book.fleet.state.columns.row_of["d2"])
    assert [*home.reserved] == ["legal"] and not home.busy("legal")
    book.use("code", "d2")
    # Nobody has told the engine of d2 of the request: legal would be the next to go.
    assert home.endangers_reserved()
    assert book.arrive("sql", **SHORT)[0].startswith("r2 waits for a place")
    assert not [line for line in book.prefilled("r1") if "prefill_failed" in line]
    assert [*home.reserved] == ["legal"], "its KV is on its way, or it waits for a seat"
    book.start("r1")
    book.body("r1")
    assert home.reserved == {} and home.busy("legal")
    assert [each.what for each in book.explain("r1").came] == [What.LOST, What.PREFILLED]
    assert (tally(book).legs_lost, tally(book).legs_failed) == (1, 0)


@pytest.mark.parametrize("how", ["failed", "answered", "left"])
def test_a_slot_whose_prefilling_pod_is_gone_is_free_when_the_request_runs_or_ends(how):
    book = book_of()
    book.arrive("legal", **LONG)
    book.gone("p1")
    home = book.fleet.state.residency.home(book.fleet.state.columns.row_of["d2"])
    assert [*home.reserved] == ["legal"]
    if how == "failed":
        book.prefilled("r1", ok=False)
    if how == "left":
        book.end("r1", Outcome.ABANDONED)
    else:
        book.start("r1")
        assert [*home.reserved] == ["legal"]
        book.body("r1")
    assert home.reserved == {}
    assert (tally(book).legs_lost, tally(book).legs_failed) == (1, 0)


def test_the_pod_that_prefills_has_the_prompt_cached_from_then_on():
    book = book_of()
    blocks = tuple(range(1, 126))
    book.arrive("legal", blocks=blocks, **LONG)
    assert book.fleet.state.prefixes.match(blocks) == {0: 1.0, 1: 1.0}


def test_an_id_that_comes_again_is_no_older_for_that():
    book = book_of()
    book.arrive("legal", id="again", prompt_tokens=2000)
    book.end("again", Outcome.ABANDONED)
    book.wait(0.9)
    book.report("p1")
    book.report("d2")
    book.arrive("legal", id="again", prompt_tokens=2000)
    book.wait(0.2)
    assert tally(book).legs_overdue == 0


def test_a_prefilling_process_that_is_another_one_has_lost_what_it_did():
    book = book_of()
    book.arrive("legal", **LONG)
    book.change(replace(pods(p1="prefill")[0], address="elsewhere:1"))
    assert tally(book).legs_lost == 1
    assert book.fleet.state.legs.queued == {}


def test_a_touch_that_failed_is_tried_again_while_the_slot_is_reserved():
    book = book_of()
    for name in ("legal", "code"):
        book.use(name, "d2")
    book.arrive("legal", **LONG)
    book.apply(TouchFailed, pod="d2", adapter="legal", why="no answer")
    told = []
    for _ in range(30):
        told += book.wait(1.0)
        told += [*book.report("p1"), *book.report("d2")]
    assert "Touch" in told


def legs_of(book, **fields):
    """Who could prefill a request that comes now, by pod."""
    state = book.fleet.state
    request = Request(id="q", model="legal", **{**LONG, **fields})
    case = Case(state, Flight(request, state.adapters["legal"], now=book.now), now=book.now, cause=99)
    tokens = tokens_of(request)
    rows = [row for row, pod in state.columns.live() if pod.role is Role.PREFILL]
    return {state.columns.targets[row].pod: prefill_leg(state, case.query, row=row, tokens=tokens) for row in rows}


def test_a_prefill_waits_for_the_tokens_that_are_queued_there():
    book = book_of(more=("prefill",))
    for pod in ("p1", "p3"):
        book.fleet.state.residency.arrived(book.fleet.state.columns.row_of[pod], "legal", now=book.now, seconds=None)
    book.fleet.state.legs.queued[0] = 3000
    legs, each = legs_of(book), book.fleet.state.legs.per_token
    assert legs["p1"].seconds == pytest.approx(5000 * each)
    assert legs["p3"].seconds == pytest.approx(2000 * each)


def test_a_prefill_is_shorter_by_what_is_cached_there():
    book = book_of(more=("prefill",))
    blocks = tuple(range(125))
    book.fleet.state.residency.arrived(0, "legal", now=book.now, seconds=None)
    book.fleet.state.prefixes.record(0, blocks[:50])
    assert legs_of(book, blocks=blocks)["p1"].seconds == pytest.approx(1200 * book.fleet.state.legs.per_token)


def test_a_prefill_waits_for_the_load_and_for_what_is_left_of_one():
    book = book_of()
    tokens = 2000 * book.fleet.state.legs.per_token
    whole = book.fleet.state.prices.loads.disk
    assert legs_of(book)["p1"].seconds == pytest.approx(tokens + whole)
    book.arrive("legal", **LONG)
    queued = 2000 * book.fleet.state.legs.per_token
    book.wait(0.25)
    left = book.fleet.state.residency.loading_until(0, "legal") - book.now
    assert 0 < left < whole
    assert legs_of(book)["p1"].seconds == pytest.approx(queued + tokens + left)


def test_after_a_fallback_the_slot_is_reserved_on_the_other_pod():
    book = book_of(more=("decode",))
    book.arrive("legal", **LONG)
    other = book.effects[0].fallbacks[-1].pod
    book.fallback("r1", other)
    assert [*book.fleet.state.residency.home(book.fleet.state.columns.row_of[other]).reserved] == ["legal"]


def test_when_a_prefill_is_overdue_its_adapter_is_touched():
    book = book_of()
    book.use("legal", "d2")
    book.arrive("legal", prompt_tokens=2000)
    assert not any(isinstance(effect, Touch) for effect in book.effects)
    assert "Touch" in book.wait(4.0)
    assert tally(book).legs_overdue == 1


def test_the_explanation_names_the_last_to_fall_back_to():
    book = book_of()
    book.arrive("legal", **LONG)
    assert book.explain("r1").fallbacks == tuple(target.pod for target in book.effects[0].fallbacks) == ("p1",)


def test_both_sides_go_round():
    book = book_of(policy="round-robin", more=("prefill", "decode", "prefill", "decode"))
    told = [book.arrive("legal", **LONG)[0].split(" else ")[0].split() for _ in range(6)]
    assert [line[-1] for line in told] == ["p1", "p3", "p5"] * 2
    assert sorted(line[2] for line in told) == ["d2", "d2", "d4", "d4", "d6", "d6"]


def test_the_pick_says_what_was_compared():
    book = book_of()
    book.arrive("legal", **LONG)
    made = book.effects[0].pick
    assert (made.prefill, made.prefill_tier.word, made.policy) == ("p1", "disk", "pairs")
    assert made.pair.prefill > 0 and made.pair.transfer > 0 and made.pair.alone > 0
    assert book.explain("r1").verdicts[0].pod == "d2"


# -- one load on each side [R3.3]

SIX = {"more": ("prefill", "decode", "prefill", "decode")}


def loading(book, name="legal"):
    """First letters of the pods that load it."""
    return sorted(pod[0] for pod in book.fleet.state.columns.row_of if book.tier(pod, name) == "loading")


def answer_touches(book, *, ok=True):
    """What pods say of touches that they have not answered."""
    for row, command in [*book.fleet.state.placement.commands.touches.items()]:
        facts = {"pod": book.fleet.state.columns.targets[row].pod, "adapter": command.adapter}
        book.apply(events.Touched, **facts) if ok else book.apply(events.TouchFailed, **facts, why="HTTP 500")


def once_on_each_side(book):
    """No side loads an adapter twice at a time."""
    for letter in "pd":
        assert loading(book).count(letter) <= 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("decide", [Decide.TOKENS, Decide.COST, Decide.ALWAYS])
def test_a_stampede_loads_once_on_each_side_in_whatever_order_things_happen(seed, decide):
    book, chance = book_of(decide=decide, **SIX), random.Random(seed)
    for number in range(20):
        book.arrive("legal", id=f"r{number}", **(LONG if decide is Decide.ALWAYS or chance.random() < 0.7 else SHORT))
        for _ in range(chance.randrange(3)):
            book.report(chance.choice([*book.fleet.state.columns.row_of]))
        book.wait(chance.random() * 0.03)
        once_on_each_side(book)
    split = tally(book).splits["split"] > 0
    assert tally(book).loads == 1 + split
    todo = [f"r{number}" for number in range(20)]
    while todo:
        each = chance.choice(todo)
        if book.fleet.state.flights[each].leg is not None and chance.random() < 0.8:
            book.prefilled(each, ok=chance.random() < 0.9)
        elif chance.random() < 0.2:
            answer_touches(book)
        else:
            todo.remove(each)
            book.start(each)
            book.end(each, status=200)
        once_on_each_side(book)
    assert tally(book).loads == 1 + split and tally(book).late_loads == 0


@pytest.mark.parametrize("seed", range(8))
def test_whoever_comes_while_loads_begin_and_end_begins_no_second_one_at_a_time(seed):
    book, chance = book_of(**SIX), random.Random(seed)
    todo, waiting = [], [f"r{number}" for number in range(40)]
    while todo or waiting:
        if waiting and chance.random() < 0.6:
            todo.append(waiting.pop())
            book.arrive("legal", id=todo[-1], **LONG)
        elif todo:
            each = todo.pop(chance.randrange(len(todo)))
            book.prefilled(each, ok=chance.random() < 0.8)
            book.start(each)
            book.end(each, status=200)
        once_on_each_side(book)
        book.wait(0.005)


def test_short_and_long_prompts_of_one_cold_adapter_share_its_loads():
    book = book_of(**SIX)
    for number in range(20):
        book.arrive("legal", **(LONG if number % 2 else SHORT))
    assert loading(book) == ["d", "p"] and tally(book).loads == 2


def test_a_failed_prefill_makes_no_second_load_while_others_wait_for_the_first():
    book = book_of(**SIX)
    for number in range(20):
        book.arrive("legal", id=f"r{number}", **LONG)
    assert loading(book) == ["d", "p"]
    first = book.fleet.state.flights["r0"].leg.row
    book.gone(book.fleet.state.columns.targets[first].pod)
    assert tally(book).legs_lost == 20
    assert loading(book) == ["d"]
    for number in range(20, 30):
        book.arrive("legal", id=f"r{number}", **LONG)
    assert loading(book) == ["d", "p"] and tally(book).loads == 3


def test_a_pod_that_fails_to_load_for_a_prefill_is_not_followed_by_all_the_others():
    book = book_of(**SIX)
    for number in range(6):
        book.arrive("legal", id=f"r{number}", **LONG)
    for number in range(6):
        book.prefilled(f"r{number}", ok=False)
    assert tally(book).legs_failed == 6 and loading(book) == ["d"]
    for number in range(6, 12):
        book.arrive("legal", id=f"r{number}", **LONG)
    assert loading(book) == ["d", "p"] and tally(book).loads == 3


def test_a_touch_that_fails_costs_one_load_more_on_that_pod_and_no_other():
    book = book_of(**SIX)
    for number in range(20):
        book.arrive("legal", id=f"r{number}", **LONG)
    answer_touches(book, ok=False)
    assert loading(book) == ["p"]
    for number in range(20):
        book.prefilled(f"r{number}")
    assert loading(book) == ["d"] and tally(book).late_loads == 1
    for number in range(20):
        book.start(f"r{number}")
        book.end(f"r{number}", status=200)
    assert tally(book).loads == 3
