"""A slot is cleared for whoever has waited for too long."""

import pytest

from lorapick.core.admission.turns import Turns
from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.requests import Outcome
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

HOT = ("hot0", "hot1")
COLD = ("cold0", "cold1")


@pytest.fixture(params=["weighted", "cost"])
def book(request):
    """One pod of two slots with requests of two hot adapters in flight; hot1 is asked for less."""
    settings = Settings(picking=PickingSettings(policy=request.param))
    pods = [plain_pod("a", max_loras=2, max_queue=64)]
    book = Playbook(pods=pods, adapters=(*HOT, *COLD), settings=settings)
    for name, times in {"hot0": 3, "hot1": 2}.items():
        for number in range(times):
            book.arrive(name, id=f"{name}.{number}")
        book.start(f"{name}.0") if name == "hot0" else book.wait(0.7)
    book.start("hot1.0")
    assert len(book.fleet.state.turns) == 0
    return book


def wait(book, seconds):
    """Time passes, and the pod reports twice a second, as it does of itself."""
    told = []
    for _ in range(int(2 * seconds)):
        told += book.wait(0.5)
        told += book.report("a", waiting=0, running=5)
    return told


def in_use(book):
    return sorted(book.fleet.state.residency.home(0).in_use)


def test_the_least_wanted_makes_room_and_all_who_wait_for_the_turn_are_served(book):
    since = book.now
    assert book.arrive("cold0", id="c1") == [f"c1 waits for a place until {since + 30:g}"]
    assert book.arrive("cold0", id="c2") == [f"c2 waits for a place until {since + 30:g}"]
    assert wait(book, 1.5) == []
    assert book.fleet.state.turns.turns() == []
    assert wait(book, 1.0) == []
    assert book.fleet.state.turns.turns() == [(0, "cold0")]
    assert book.arrive("hot1", id="late")[0].startswith("late waits for a place"), "its slot is promised"
    assert book.arrive("hot0", id="more") == ["more -> a (gpu_serving)"]
    assert book.end("hot1.0", status=200) == []
    assert book.end("hot1.1", status=200) == ["c1 -> a (disk)", "c2 -> a (loading)"]
    assert (in_use(book), len(book.fleet.state.turns)) == (["cold0", "hot0"], 0)


def test_whoever_gives_up_gives_the_slot_back(book):
    book.arrive("cold0", id="c1")
    wait(book, 2.5)
    assert book.fleet.state.turns.row_of("cold0") == 0
    book.arrive("hot1", id="late")
    assert book.end("c1", Outcome.ABANDONED) == ["late -> a (gpu_serving)"]
    assert len(book.fleet.state.turns) == 0


def test_pins_make_no_room(book):
    book.apply(events.PinSet, adapter="hot1", pin=PinSpec(pods=("a",)))
    book.arrive("cold0", id="c1")
    wait(book, 2.5)
    assert book.fleet.state.turns.closed("hot0") == [0]
    assert book.fleet.state.turns.closed("hot1") == []


def test_one_turn_at_a_time_on_one_pod_the_longest_waiting_first(book):
    book.arrive("cold0", id="c0")
    wait(book, 0.5)
    book.arrive("cold1", id="c1")
    wait(book, 3.0)
    assert book.fleet.state.turns.turns() == [(0, "cold0")]
    for number in range(2):
        told = book.end(f"hot1.{number}", status=200)
    assert told == ["c0 -> a (disk)"]
    book.start("c0")
    assert book.fleet.state.turns.turns() == [(0, "cold1")]


def test_who_waits_for_no_slot_keeps_nobody_from_a_turn(book):
    book.arrive("base", id="b", subset=("nowhere",))
    book.report("a", waiting=64)
    book.arrive("base", id="base")
    book.arrive("cold0", id="c0")
    wait(book, 3.0)
    assert book.fleet.state.turns.row_of("cold0") == 0


@pytest.mark.parametrize("end", ["drain", "gone"])
def test_a_pod_that_may_not_serve_clears_no_slot(book, end):
    book.arrive("cold0", id="c0")
    wait(book, 2.5)
    assert len(book.fleet.state.turns) == 1
    assert getattr(book, end)("a") == ["c0 refused: 503 no_pod"]
    assert len(book.fleet.state.turns) == 0


def test_nobody_makes_room_twice():
    book = Playbook(pods=[plain_pod("a", max_loras=1), plain_pod("b", max_loras=1)], adapters=("x", "y"))
    for pod in ("a", "b"):
        book.arrive("x", subset=(pod,))
    turns, state = Turns(), book.fleet.state
    homes = [state.residency.home(row) for row in (0, 1)]
    demand = state.prices.demand
    assert turns.begin("x", homes, demand=demand, now=0.0) is None, "it is there"
    assert turns.begin("y", homes, demand=demand, now=0.0) is homes[0]
    assert (turns.row_of("y"), turns.closed("x"), turns.taken(0), turns.taken(1)) == (0, [0], True, False)
    assert turns.begin("z", homes[:1], demand=demand, now=0.0) is None
    turns.gone(0)
    assert (turns.end("y"), len(turns)) == (-1, 0)
