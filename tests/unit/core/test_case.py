"""What one decision reads, and what it becomes as a value."""

import pytest

from lorapick.core.case import PREFILL, RETRY_AFTER, TIERS, Case, has_alone, pick_value, reject
from lorapick.core.columns import REASONS
from lorapick.core.picking.pick import NOBODY, Choice
from lorapick.core.state import Flight
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Role
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import LoadTimes, PickingSettings, Settings
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod


def book_of(policy="weighted", **settings):
    settings = Settings(picking=PickingSettings(policy=policy), **settings)
    return Playbook(pods=["a", "b"], adapters=["legal", "code"], settings=settings)


def case_of(book, model="legal", **fields):
    state = book.fleet.state
    request = Request(id="q", model=model, **fields)
    return Case(state, Flight(request, state.adapters.get(model), now=book.now), now=book.now, cause=99)


def masked(case):
    return [REASONS[code] for code in case.query.mask] if case.query.mask is not None else None


def test_tiers_are_by_code():
    assert all(TIERS[tier] is tier for tier in Tier)


def test_its_session_is_where_it_was_last():
    book = book_of()
    book.arrive("legal", session="s", subset=("b",))
    assert case_of(book, session="s").query.session_row == 1
    book.gone("b")
    assert case_of(book, session="s").query.session_row == -1


def test_rows_where_the_adapter_failed_to_load_are_masked():
    book = book_of()
    assert masked(case_of(book)) is None
    book.apply(events.LoadFailed, pod="a", adapter="legal", by=events.By.ENGINE, why="no such file")
    assert masked(case_of(book)) == [Reason.CIRCUIT_OPEN, None]
    assert masked(case_of(book, "code")) is None
    assert masked(case_of(book, subset=("b",))) == [Reason.NOT_IN_SUBSET, None]
    assert masked(case_of(book_of("round-robin"))) is None


def test_what_things_take_is_told_to_those_who_ask():
    book = book_of("cost", load_times=LoadTimes(cpu=0.2, disk=0.9))
    book.arrive("legal", subset=("b",))
    book.wait(0.3)
    costs = case_of(book, prompt_tokens=1000).query.costs
    assert (costs.from_cpu, costs.from_disk) == (0.2, 0.9)
    assert costs.prefill == pytest.approx(1000 * PREFILL)
    assert costs.remaining == {1: pytest.approx(0.6)}
    assert case_of(book, "base").query.costs.remaining == {}
    assert case_of(book_of()).query.costs.base == 0.0


def test_a_decision_as_a_value():
    book = book_of()
    book.use("legal", "b")
    case = case_of(book)
    made = pick_value(case, Choice(1, 0.5, (0,)), follows="b")
    assert (made.pod, made.tier, made.score, made.fallbacks) == ("b", Tier.GPU_IDLE, 0.5, ("a",))
    assert (made.adapter, made.follows, made.policy, made.degraded) == ("legal", "b", "weighted", False)
    nobody = pick_value(case, NOBODY, reason=Reason.QUEUE_FULL)
    assert (nobody.pod, nobody.tier, nobody.score, nobody.reason) == (None, None, None, Reason.QUEUE_FULL)


@pytest.mark.parametrize(
    ("reason", "status", "retry"),
    [(Reason.SHED, 429, RETRY_AFTER), (Reason.DEADLINE, 503, RETRY_AFTER), (Reason.ADAPTER_UNKNOWN, 404, None)],
)
def test_a_refusal_ends_the_request(reason, status, retry):
    book = book_of()
    case = case_of(book)
    book.fleet.state.flights["q"] = case.flight
    book.fleet.state.tally.arrivals += 1
    effect = reject(case, reason, message="no")
    assert (effect.status, effect.reason, effect.retry_after, effect.cause) == (status, reason, retry, 99)
    assert "q" not in book.fleet.state.flights
    assert book.fleet.state.tally.outcomes[Outcome.REJECTED] == 1
    assert book.explain("q").outcome == "rejected"
    book.fleet.check()


def test_an_adapter_of_another_base_is_asked_for_there():
    book = book_of()
    book.apply(events.AdapterDeclared, adapter=Adapter(name="legal", base_model="base", rank=16))
    query = case_of(book).query
    assert (query.base, query.rank) == (book.fleet.state.columns.base_models["base"], 16.0)


# -- pods that leave, on each side

ROLES = {"p1": Role.PREFILL, "p2": Role.PREFILL, "d3": Role.DECODE, "d4": Role.DECODE, "b5": Role.BOTH}


@pytest.mark.parametrize(
    ("leaves", "other", "alone"),
    [
        ("d3", None, True),
        ("d3", "p1", True),
        ("d3", "d4", False),
        ("d3", "b5", False),
        ("p1", None, True),
        ("p1", "d3", True),
        ("p1", "p2", False),
        ("p1", "b5", False),
        ("b5", "p1", True),
        ("b5", "d3", False),
    ],
)
def test_a_copy_on_the_other_side_is_none(leaves, other, alone):
    pods = [plain_pod(name, role=role, max_loras=2) for name, role in ROLES.items()]
    book = Playbook(pods=pods, adapters=["legal"], settings=Settings())
    for pod in (leaves, *([other] if other is not None else [])):
        book.apply(events.LoadSucceeded, pod=pod, adapter="legal", by=events.By.CONTROLLER)
    columns = book.fleet.state.columns
    assert has_alone(columns, columns.row_of[leaves], name="legal") is alone


def test_a_pod_that_leaves_serves_what_only_pods_that_prefill_have_besides():
    pods = [plain_pod(name, role=ROLES[name], max_loras=2) for name in ("p1", "d3", "d4")]
    book = Playbook(pods=pods, adapters=["legal"], settings=Settings())
    for pod in ("p1", "d3"):
        book.apply(events.LoadSucceeded, pod=pod, adapter="legal", by=events.By.CONTROLLER)
    for _ in range(3):
        book.use("legal", "d3")
    book.drain("d3")
    assert book.fleet.state.placement.leaving
    assert book.arrive("legal", prompt_tokens=20)[0].startswith("r1 -> d3 (gpu_idle)")
