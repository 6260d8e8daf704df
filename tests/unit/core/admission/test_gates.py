"""Where loads may begin, and how many adapters more may come into use: the two columns, through events."""

from math import inf

import pytest

from lorapick.core.columns import CODE, REASONS
from lorapick.model import events
from lorapick.model.reasons import Reason
from lorapick.model.settings import AdmissionSettings, BudgetSettings, PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

NAMES = tuple(f"n{index}" for index in range(9))


def fleet(pods=8, *, slots=2, policy="weighted", **settings):
    made = [plain_pod(f"p{index}", max_loras=slots) for index in range(pods)]
    settings = Settings(picking=PickingSettings(policy=policy), **settings)
    return Playbook(pods=made, adapters=NAMES, settings=settings)


def busy(book, *, pods=range(8)):
    """One request for the base model on each pod: a load there would harm somebody."""
    for index in pods:
        book.arrive("base", id=f"busy{index}", subset=(f"p{index}",))


def load(book, index, name):
    return book.arrive(name, id=name, subset=(f"p{index}",))


def column(book, name):
    return [getattr(book.fleet.state.columns, name)[row] for row, _ in book.fleet.state.columns.live()]


def reasons(book):
    return [REASONS[code] for code in column(book, "pressure")]


def test_slots_left_are_those_that_are_not_in_use():
    book = fleet(pods=2)
    assert column(book, "slots_left") == [2.0, 2.0]
    load(book, 0, "n0")
    assert column(book, "slots_left") == [1.0, 2.0]
    book.start("n0")
    book.end("n0", status=200)
    assert column(book, "slots_left") == [2.0, 2.0], "idle adapters make room"
    book.report("p1", in_flight_adapters=("n1", "n2", "n3"))
    assert column(book, "slots_left") == [2.0, -1.0], "traffic that bypasses us counts"


@pytest.mark.parametrize("policy", ["weighted", "cost"])
def test_never_more_adapters_in_use_than_slots(policy):
    book = fleet(pods=1, slots=2, policy=policy, budgets=BudgetSettings(loads_at_once=9))
    assert [load(book, 0, name)[0] for name in NAMES[:4]] == [
        "n0 -> p0 (disk)",
        "n1 -> p0 (disk)",
        "n2 waits for a place until 30",
        "n3 waits for a place until 30",
    ]
    assert book.arrive("base") == ["r1 -> p0 (base)"], "who needs no slot does not wait"
    assert book.arrive("n0") == ["r2 -> p0 (loading)"]
    assert book.start("n1") == ["note load_ended pod=p0 adapter=n1 from=disk seconds=0"]
    assert book.end("n1", status=200) == ["n2 -> p0 (disk)"]
    assert book.verdict("n2", "p0").won


def test_without_a_slot_budget_only_loads_count():
    book = fleet(pods=1, slots=1, admission=AdmissionSettings(slot_budget=False))
    assert column(book, "slots_left") == [inf]
    load(book, 0, "n0")
    assert load(book, 0, "n1") == ["n1 waits for a place until 30"]
    assert book.start("n0") == ["note load_ended pod=p0 adapter=n0 from=disk seconds=0", "n1 -> p0 (disk)"]


def test_one_load_at_a_time_on_one_pod():
    book = fleet(pods=1, slots=4)
    load(book, 0, "n0")
    assert reasons(book) == [Reason.LOAD_BUDGET]
    assert load(book, 0, "n1") == ["n1 waits for a place until 30"]
    assert book.wait(0.7) == ["note load_ended pod=p0 adapter=n0 from=disk", "n1 -> p0 (disk)"]


def test_a_share_of_the_pods_load_at_once():
    book = fleet()
    busy(book)
    for index in (0, 1):
        load(book, index, f"n{index}")
    assert reasons(book) == [Reason.LOAD_BUDGET] * 8
    assert book.arrive("n5") == ["r1 waits for a place until 30"]
    told = book.start("n0")
    assert told[0].startswith("note load_ended pod=p0") and told[1].startswith("r1 -> ")
    assert book.effects[1].target.pod not in ("p0", "p1")
    assert reasons(book) == [Reason.LOAD_BUDGET] * 8


def test_pods_where_nobody_is_may_load_all_the_same():
    book = fleet()
    busy(book, pods=range(6))
    for index in (0, 1):
        load(book, index, f"n{index}")
    assert reasons(book) == [*[Reason.LOAD_BUDGET] * 6, None, None]
    load(book, 6, "n6")
    assert book.fleet.state.residency.rows_loading == 3
    assert load(book, 2, "n2") == ["n2 waits for a place until 30"]


def test_the_budget_follows_the_size_of_the_fleet():
    book = fleet()
    busy(book)
    gates = book.fleet.state.gates
    assert gates.most_loading == 2
    load(book, 0, "n0")
    for index in range(4, 8):
        book.gone(f"p{index}")
    assert gates.most_loading == 1
    assert reasons(book) == [Reason.LOAD_BUDGET] * 4
    book.gone("p0")
    assert reasons(book) == [None] * 3, "the one that loaded has left"
    book.apply(events.ConfigChanged, settings=Settings(budgets=BudgetSettings(pods_loading_share=1.0)))
    assert gates.most_loading == 3


def test_pressure_is_said_first():
    book = fleet(pods=1)
    load(book, 0, "n0")
    book.report("p0", memory_pressure=0.91)
    assert reasons(book) == [Reason.PRESSURE_HARD]
    book.report("p0", memory_pressure=0.99)
    assert column(book, "pressure") == [CODE[Reason.PRESSURE_CRITICAL]]


def test_other_policies_see_pressure_and_nothing_else():
    book = fleet(pods=1, slots=1, policy="round-robin")
    assert [load(book, 0, name)[0] for name in NAMES[:3]] == [f"{name} -> p0 (disk)" for name in NAMES[:3]]
    assert (column(book, "slots_left"), reasons(book)) == ([inf], [None])
    book.report("p0", memory_pressure=0.86)
    assert reasons(book) == [Reason.PRESSURE_SOFT]


def test_new_settings_open_and_close_at_once():
    book = fleet(pods=1, slots=1)
    load(book, 0, "n0")
    load(book, 0, "n1")
    adapters = book.settings.adapters
    wide = AdmissionSettings(slot_budget=False)
    settings = Settings(adapters=adapters, budgets=BudgetSettings(loads_at_once=4), admission=wide)
    assert book.apply(events.ConfigChanged, settings=settings) == ["n1 -> p0 (disk)"]
    book.apply(events.ConfigChanged, settings=Settings(adapters=adapters))
    assert (column(book, "slots_left"), reasons(book)) == ([-1.0], [Reason.LOAD_BUDGET])
    book.apply(events.ConfigChanged, settings=Settings(picking=PickingSettings(policy="round-robin")))
    assert column(book, "slots_left") == [inf]


def test_where_a_pin_waits_for_a_load_to_end_no_other_load_begins():
    book = fleet(pods=2)
    state = book.fleet.state
    state.gates.claims[1] = None
    state.gates.recount()
    assert reasons(book) == [None, Reason.LOAD_BUDGET]
    del state.gates.claims[1]
    state.gates.recount()
    assert reasons(book) == [None, None]
