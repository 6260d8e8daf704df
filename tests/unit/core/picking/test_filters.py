"""Each filter, its reason, its order [R2.1], and the three ways to ask it."""

import pytest

from lorapick.core.columns import CODE, REASONS
from lorapick.core.picking.filters import eligible, passing, veto
from lorapick.core.picking.query import Query, prepare
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Role, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Request
from lorapick.model.settings import AdmissionSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def refuse_not_ready(book):
    """Nothing to do: its row is freed."""


def refuse_draining(book):
    book.drain("pod")


def refuse_circuit_open(book):
    book.silent("pod", SilentWhy.REFUSED)


def refuse_pressure_critical(book):
    book.report("pod", memory_pressure=0.95)


def refuse_stale(book):
    book.wait(5.1)


def refuse_wrong_base(book):
    book.change(plain_pod("pod", base_model="another"))


def refuse_wrong_role(book):
    book.change(plain_pod("pod", role=Role.PREFILL))


def refuse_rank_too_large(book):
    book.change(plain_pod("pod", max_lora_rank=8))


def refuse_adapter_unregistered(book):
    book.report("pod", registered=("other",))


def refuse_pressure_soft(book):
    book.report("pod", memory_pressure=0.85)


def refuse_pressure_hard(book):
    book.report("pod", memory_pressure=0.90)


def refuse_queue_full(book):
    book.report("pod", waiting=8)


def refuse_load_budget(book):
    book.arrive("other", id="loads", subset=("pod",))


def refuse_slots_full(book):
    book.change(plain_pod("pod", max_loras=1))
    book.arrive("other", id="serves", subset=("pod",))
    book.start("serves")


CASES = {
    Reason.DRAINING: refuse_draining,
    Reason.CIRCUIT_OPEN: refuse_circuit_open,
    Reason.PRESSURE_CRITICAL: refuse_pressure_critical,
    Reason.STALE: refuse_stale,
    Reason.WRONG_BASE: refuse_wrong_base,
    Reason.WRONG_ROLE: refuse_wrong_role,
    Reason.RANK_TOO_LARGE: refuse_rank_too_large,
    Reason.ADAPTER_UNREGISTERED: refuse_adapter_unregistered,
    Reason.PRESSURE_SOFT: refuse_pressure_soft,
    Reason.PRESSURE_HARD: refuse_pressure_hard,
    Reason.LOAD_BUDGET: refuse_load_budget,
    Reason.SLOTS_FULL: refuse_slots_full,
    Reason.QUEUE_FULL: refuse_queue_full,
}


@pytest.fixture
def book():
    """Two pods; the second keeps the fleet able to serve."""
    return Playbook(pods=["pod", "spare"], adapters=[Adapter(name="legal", rank=16, base_model="base"), "other"])


@pytest.mark.parametrize("reason", CASES)
def test_each_filter_names_its_reason(book, reason):
    CASES[reason](book)
    if reason is Reason.STALE:
        book.report("spare")
    assert book.arrive("legal") == ["r1 -> spare (disk)"]
    verdict = book.verdict("r1", "pod")
    assert (verdict.reason, verdict.score, verdict.terms) == (reason, None, None)


def test_a_freed_row_is_not_ready(book):
    columns = book.fleet.state.columns
    row = columns.row_of["pod"]
    book.gone("pod")
    assert REASONS[veto(Query("r", None), columns, row=row, now=0.0)] is Reason.NOT_READY
    assert passing(Query("r", None), columns, now=0.0) == [columns.row_of["spare"]]


def test_the_subset_hint_matches_hosts(book):
    assert book.arrive("legal", subset=("spare:1234",)) == ["r1 -> spare (disk)"]
    assert book.verdict("r1", "pod").reason is Reason.NOT_IN_SUBSET


def test_the_label_selector(book):
    book.change(plain_pod("spare", labels={"zone": "west"}))
    assert book.arrive("legal", selector={"zone": "west"}) == ["r1 -> spare (disk)"]
    assert book.verdict("r1", "pod").reason is Reason.LABEL_MISMATCH


ORDER = (
    Reason.DRAINING,
    Reason.CIRCUIT_OPEN,
    Reason.PRESSURE_CRITICAL,
    Reason.STALE,
    Reason.WRONG_BASE,
    Reason.WRONG_ROLE,
    Reason.NOT_IN_SUBSET,
    Reason.RANK_TOO_LARGE,
    Reason.ADAPTER_UNREGISTERED,
    Reason.PRESSURE_HARD,
    Reason.QUEUE_FULL,
)
"""The first filter that vetoes names the reason; this order is part of the contract."""


def test_the_order_of_the_filters():
    """Everything is wrong with the pod at first; repair one thing after the other, from the front."""
    book = Playbook(pods=["pod", "spare"], adapters=[Adapter(name="legal", rank=16, base_model="base")])
    wrong = {"max_lora_rank": 8, "role": Role.PREFILL, "base_model": "another"}
    book.change(plain_pod("pod", **wrong))
    bad = {"registered": (), "waiting": 8}
    book.report("pod", memory_pressure=0.99, **bad)
    book.drain("pod")
    book.silent("pod", SilentWhy.REFUSED)
    book.wait(5.1)
    seen = []

    def look(subset=("spare",)):
        book.report("spare")
        request_id = f"look-{len(seen)}"
        book.arrive("legal", id=request_id, subset=subset)
        seen.append(book.verdict(request_id, "pod").reason)

    look()
    book.appear(plain_pod("pod", **wrong))
    look()
    book.report("pod", memory_pressure=0.99, **bad)
    look()
    book.report("pod", memory_pressure=0.92, **bad)
    book.wait(5.1)
    look()
    book.report("pod", memory_pressure=0.92, **bad)
    look()
    del wrong["base_model"]
    book.change(plain_pod("pod", **wrong))
    look()
    del wrong["role"]
    book.change(plain_pod("pod", **wrong))
    look()
    look(subset=None)
    book.change(plain_pod("pod"))
    look(subset=None)
    book.report("pod", memory_pressure=0.92, waiting=8, registered=("legal",))
    look(subset=None)
    book.report("pod", waiting=8)
    look(subset=None)
    assert tuple(seen) == ORDER


def test_an_adapter_of_unknown_rank_fits_everywhere():
    book = Playbook(pods=[plain_pod("pod", max_lora_rank=8)], adapters=["legal"])
    assert book.arrive("legal") == ["r1 -> pod (disk)"]


@pytest.mark.parametrize("pressure", [0.85, 0.90])
def test_pressure_keeps_loads_away_but_not_requests_for_what_is_there(pressure):
    settings = Settings(admission=AdmissionSettings(max_wait=0.0))
    book = Playbook(pods=["pod"], adapters=["legal", "code"], settings=settings)
    book.arrive("legal")
    book.report("pod", memory_pressure=pressure)
    assert book.arrive("legal") == ["r2 -> pod (loading)"]
    assert book.arrive("base") == ["r3 -> pod (base)"]
    assert book.arrive("code") == [f"r4 refused: 429 pressure_{'soft' if pressure < 0.9 else 'hard'}"]


def test_three_ways_to_ask_agree_on_every_case(book):
    for make in CASES.values():
        make(book)
        columns = book.fleet.state.columns
        for query in (
            prepare(Request(id="q", model="legal"), book.fleet.state.adapters["legal"], columns=columns, kv={}),
            prepare(Request(id="q", model="base", subset=("pod",)), None, columns=columns, kv={}),
        ):
            one_by_one = [row for row in range(columns.rows) if not veto(query, columns, row=row, now=book.now)]
            assert passing(query, columns, now=book.now) == one_by_one
            assert [*eligible(query, columns, now=book.now).nonzero()[0]] == one_by_one


def test_ignoring_age_lets_old_reports_pass(book):
    book.wait(5.1)
    query = Query("q", None)
    columns = book.fleet.state.columns
    assert veto(query, columns, row=0, now=book.now) == CODE[Reason.STALE]
    query.ignore_stale = True
    assert veto(query, columns, row=0, now=book.now) == 0
    assert passing(query, columns, now=book.now) == [0, 1]
    assert eligible(query, columns, now=book.now).all()


def test_adapters_of_another_base_go_to_pods_of_that_base(book):
    book.appear(plain_pod("other", base_model="other-base"))
    book.apply(events.AdapterDeclared, adapter=Adapter(name="foreign", base_model="other-base"))
    assert book.arrive("foreign") == ["r1 -> other (disk)"]
    assert book.arrive("other-base") == ["r2 -> other (base)"]
