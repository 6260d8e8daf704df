"""What came of a prefill: in notes, and with the decision."""

import pytest

from lorapick.model.effects import PREFILL_FAILED, Note
from lorapick.model.picks import What
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome
from lorapick.model.settings import Settings
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 2000, "stream": True}


def book_of(*roles: str) -> Playbook:
    pods = [plain_pod(f"{role[0]}{place}", role=Role(role), max_loras=4) for place, role in enumerate(roles, start=1)]
    return Playbook(pods=pods, adapters=("legal",), settings=Settings())


@pytest.fixture
def book() -> Playbook:
    made = book_of("prefill", "decode")
    made.arrive("legal", **LONG)
    return made


def came(book: Playbook, request_id: str = "r1") -> list[tuple[What, str | None, str | None]]:
    return [(each.what, each.pod, each.why) for each in book.explain(request_id).came]


def notes(book: Playbook, kind: str = PREFILL_FAILED) -> list[Note]:
    return [each for each in book.effects if isinstance(each, Note) and each.kind == kind]


def test_nothing_is_known_at_first(book):
    assert came(book) == []


def test_a_good_one_is_kept_and_not_told(book):
    book.prefilled("r1")
    assert came(book) == [(What.PREFILLED, "p1", None)]
    assert notes(book) == []


@pytest.mark.parametrize(("why", "told"), [("kv_mismatch", "kv_mismatch"), (None, "unknown")])
def test_a_failure_is_told_with_whatever_is_said_of_it(book, why, told):
    book.prefilled("r1", ok=False, why=why)
    (note,) = notes(book)
    facts = {"pod": "p1", "end": "failed", "why": told, "request": "r1", "decode": "d2", "adapter": "legal"}
    assert (note.facts, note.quiet) == (facts, False)
    assert came(book) == [(What.FAILED, "p1", why)]


def test_a_reason_without_a_failure_is_none(book):
    book.prefilled("r1", ok=True, why="odd")
    assert came(book) == [(What.PREFILLED, "p1", None)]


def test_a_pod_that_goes_away_loses_what_it_prefilled(book):
    book.gone("p1")
    assert [note.facts["end"] for note in notes(book)] == ["lost"]
    assert came(book) == [(What.LOST, "p1", None)]


def test_one_of_which_nobody_speaks_is_overdue_and_may_end_all_the_same(book):
    book.wait(5.0)
    told = [each for answer in book.answers for each in answer if getattr(each, "kind", "") == PREFILL_FAILED]
    assert [each.facts["end"] for each in told] == ["overdue"]
    book.prefilled("r1", ok=False, why="prefiller_timeout")
    assert notes(book) == [], "it is counted already"
    assert came(book) == [(What.OVERDUE, "p1", None), (What.FAILED, "p1", "prefiller_timeout")]


def test_headers_of_an_answer_say_that_it_is_over(book):
    book.start("r1")
    assert came(book) == [(What.OVER, "p1", None)]


def test_an_error_is_named(book):
    book.start("r1", status=503)
    book.end("r1", Outcome.FAILED, status=503)
    assert came(book) == [(What.OVER, "p1", "status 503")]


def test_a_client_that_leaves_is_told_of(book):
    book.end("r1", Outcome.ABANDONED)
    assert came(book) == [(What.LEFT, "p1", None)]


def test_a_fallback_that_serves_is_told_of():
    book = book_of("prefill", "decode", "decode")
    book.arrive("legal", **LONG)
    other = book.effects[0].fallbacks[-1].pod
    book.fallback("r1", other)
    book.prefilled("r1")
    assert came(book) == [(What.SERVED_BY, other, None), (What.PREFILLED, "p1", None)]


def test_what_came_is_bounded():
    book = book_of("prefill", "decode", "decode")
    book.arrive("legal", **LONG)
    for turn in range(40):
        book.fallback("r1", ("d2", "d3")[turn % 2])
    assert len(came(book)) == 8


def test_an_id_that_comes_again_has_nothing_of_the_one_before(book):
    book.prefilled("r1", ok=False)
    book.end("r1")
    book.wait(1.0)
    book.report("p1")
    book.report("d2")
    book.arrive("legal", id="r1", **LONG)
    assert came(book) == []


def test_a_decision_that_is_not_kept_any_more_gets_nothing_of_a_later_one(book):
    journal = book.fleet.state.journal
    journal.on = False
    book.end("r1")
    book.wait(1.0)
    book.report("p1")
    book.report("d2")
    book.arrive("legal", id="r1", **LONG)
    journal.on = True
    book.prefilled("r1", ok=False)
    assert came(book) == []


def test_of_many_that_are_lost_at_once_one_is_printed_and_all_are_told(book):
    for _ in range(30):
        book.arrive("legal", **LONG)
    book.gone("p1")
    told = notes(book)
    assert len(told) == 31
    assert [note.quiet for note in told] == [False] + [True] * 30
