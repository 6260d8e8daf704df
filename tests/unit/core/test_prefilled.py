"""The end of a prefill elsewhere is not yet a seat in the batch: the slot is kept until that."""

import pytest
from msgspec.structs import replace

from lorapick.core import splitting
from lorapick.core.admission.leg_times import UNSEEN
from lorapick.core.placement import giving, guard
from lorapick.core.placement.targets import Target
from lorapick.model import events
from lorapick.model.effects import Touch
from lorapick.model.placement import Why
from lorapick.model.pods import Pod, Role
from lorapick.model.requests import Outcome
from lorapick.model.settings import BudgetSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 4000, "stream": True}
SHORT = {"prompt_tokens": 20, "stream": True}
AT_ONCE = Settings(budgets=BudgetSettings(loads_at_once=4, pods_loading_share=1.0))


def pod(name: str, role: Role) -> Pod:
    return replace(plain_pod(name), role=role)


def book_of() -> Playbook:
    return Playbook(pods=(pod("p1", Role.PREFILL), pod("d2", Role.DECODE)), adapters=("legal", "code", "sql"))


def test_where_nobody_looks_at_bodies_a_request_counts_as_running_soon_after_its_headers():
    book = book_of()
    book.arrive("legal", **LONG)
    book.start("r1")
    home = book.fleet.state.residency.home(book.fleet.state.columns.row_of["d2"])
    book.wait(UNSEEN / 2)
    assert [*home.reserved] == ["legal"]
    book.wait(UNSEEN)
    assert home.reserved == {} and home.busy("legal")


def test_where_bodies_are_looked_at_a_slot_is_kept_for_as_long_as_none_begins():
    book = book_of()
    book.arrive("code", **SHORT)
    book.start("r1")
    book.body("r1")
    book.arrive("legal", **LONG)
    book.start("r2")
    book.wait(20 * UNSEEN)
    home = book.fleet.state.residency.home(book.fleet.state.columns.row_of["d2"])
    assert [*home.reserved] == ["legal"]
    book.end("r2", Outcome.FAILED)
    assert home.reserved == {}


@pytest.mark.parametrize("blip", [False, True])
def test_a_pod_that_goes_while_its_answer_begins_has_no_slot_kept_on_a_fallback(blip):
    book = book_of()
    book.arrive("legal", **LONG)
    book.start("r1")
    book.gone("d2")
    assert book.fleet.state.flights["r1"].standby == -1
    if blip:
        book.appear(pod("d2", Role.DECODE))
        book.body("r1")
    book.end("r1", Outcome.SERVED if blip else Outcome.FAILED)
    assert not book.fleet.state.flights


def test_who_waits_for_the_slot_goes_as_soon_as_the_request_runs():
    book = Playbook(pods=(pod("p1", Role.PREFILL), small("d2", slots=1)), adapters=("legal", "code"))
    book.arrive("legal", **LONG)
    book.start("r1")
    assert "waits" in book.arrive("code", **SHORT)[0]
    book.body("r1")
    assert "r2" in book.fleet.state.flights and book.fleet.state.flights["r2"].row == -1, "legal is in use"
    told = book.end("r1", status=200)
    assert [line for line in told if line.startswith("r2 ")], told


def small(name: str, *, slots: int) -> Pod:
    found = pod(name, Role.DECODE)
    return replace(found, limits=replace(found.limits, max_loras=slots))


def test_who_had_to_stand_back_for_another_touch_is_brought_in_after_it():
    book = Playbook(
        pods=(pod("p1", Role.PREFILL), pod("d2", Role.DECODE)), adapters=("legal", "code"), settings=AT_ONCE
    )
    assert "Touch" in book.arrive("legal", **LONG)
    assert "Touch" not in book.arrive("code", **LONG), "one touch at a time"
    assert book.tier("d2", "code") == "disk"
    told = book.apply(events.Touched, pod="d2", adapter="legal")
    assert "Touch" in told and book.tier("d2", "code") == "loading"


@pytest.mark.parametrize("slots", [2, 6])
def test_until_who_is_awaited_is_on_its_way_nobody_else_loads_into_the_last_slots_there(slots):
    book = Playbook(
        pods=(pod("p1", Role.PREFILL), small("d2", slots=slots)), adapters=("legal", "code", "sql"), settings=AT_ONCE
    )
    book.use("legal", "d2")
    book.arrive("code", **LONG)
    state = book.fleet.state
    row = state.columns.row_of["d2"]
    book.apply(events.TouchFailed, pod="d2", adapter="code", why="HTTP 500")
    assert [*state.residency.home(row).absent] == ["code"]
    assert state.gates.may_bring(row)
    assert bool(state.columns.pressure[row]) is (slots == 2)
    assert "Touch" in book.wait(3.0) and not state.residency.rows_absent


def test_no_command_throws_anybody_out_while_somebody_is_awaited_there_who_is_not_on_the_way():
    names = ("legal", "code", "sql", "docs")
    book = Playbook(pods=(pod("p1", Role.PREFILL), small("d2", slots=2)), adapters=names, settings=AT_ONCE)
    for name in ("sql", "legal"):
        book.use(name, "d2")
        book.wait(1.0)
    book.report("d2")
    state = book.fleet.state
    row = state.columns.row_of["d2"]
    target = Target(row, "docs", Why.OPERATOR)
    assert guard.refuse(state, target, now=book.now) != "evicts_kept"
    giving.touch(state, Target(row, "legal", Why.OPERATOR), now=book.now, cause=0)
    book.arrive("code", **LONG)  # its own touch has to wait
    assert [*state.residency.home(row).absent] == ["code"]
    assert guard.refuse(state, target, now=book.now) == "evicts_kept"


def test_whom_it_would_throw_out_is_touched_before_who_is_awaited_comes_in():
    names = ("legal", "code", "sql")
    book = Playbook(pods=(pod("p1", Role.PREFILL), small("d2", slots=2)), adapters=names, settings=AT_ONCE)
    for name in ("legal", "sql"):
        book.use(name, "d2")
        book.wait(1.0)
    state = book.fleet.state
    row = state.columns.row_of["d2"]
    assert "Touch" in book.arrive("legal", **LONG)
    book.apply(events.TouchFailed, pod="d2", adapter="legal", why="HTTP 500")
    state.residency.reserve(row, "code")
    home = state.residency.home(row)
    assert home.endangered() == "legal" and [*home.absent] == ["code"] and home.has_idle()
    told = splitting.bring_awaited(state, now=book.now + 5.0, cause=0)
    assert [(each.pod, each.adapter) for each in told if isinstance(each, Touch)] == [("d2", "legal")]
