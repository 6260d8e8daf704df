"""Whose slot waits for a request that is prefilled elsewhere: nobody's command takes it, nor its name."""

from msgspec.structs import replace
from placement_kit import ask, fleet, row, told, unask

from lorapick.core.placement import guard
from lorapick.core.placement.targets import Target
from lorapick.core.residency.engines import CACHES
from lorapick.model import events
from lorapick.model.effects import Unload
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, Role
from lorapick.model.settings import BudgetSettings, PlacementSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

TIGHT, EASY = {"memory_pressure": 0.92}, {"memory_pressure": 0.5}


def pods(engine=Engine.VLLM, decode=("d1",), **fields):
    """One that prefills, and some that decode."""
    names = {"p1": Role.PREFILL, **dict.fromkeys(decode, Role.DECODE)}
    return [replace(plain_pod(name, role=role, **fields), engine=engine) for name, role in names.items()]


def reserving(book, name="x", *, pod="d1"):
    """A request whose prefill has begun, and whose decode waits for it on a pod."""
    book.arrive(name, id="long", prompt_tokens=4000, stream=True, subset=(f"{pod}:8000", "p1:8000"))
    assert book.effects[0].prefill.pod == "p1" and book.effects[0].target.pod == pod
    return book


def full(slots=2):
    """The pod that decodes has no free slot; `x` has been used longest ago, and waits for a request."""
    book = fleet(*pods(max_loras=slots), settings=Settings(budgets=BudgetSettings(pods_loading_share=1.0)))
    for name in "xy":
        book.use(name, "d1")
    return reserving(book)


def why_not(book, name, why):
    return guard.refuse(book.fleet.state, Target(row(book, "d1"), name, why), now=book.now)


def test_no_load_takes_a_reserved_slot_whoever_wants_it():
    book = full()
    assert {why_not(book, "z", why) for why in (Why.PIN, Why.OPERATOR, Why.SCHEDULE, Why.REGISTER)} == {"evicts_kept"}
    book.apply(events.Touched, pod="d1", adapter="x")
    assert why_not(book, "z", Why.OPERATOR) is None, "now another one would go"
    for _ in range(2):
        book.use("y", "d1")
    assert why_not(book, "z", Why.OPERATOR) == "evicts_kept"
    book.prefilled("long")
    book.start("long")
    assert why_not(book, "z", Why.OPERATOR) == "evicts_kept", "its engine may not have given it a seat"
    book.body("long")
    assert why_not(book, "z", Why.OPERATOR) is None


def test_an_answer_to_a_touch_says_nothing_of_uses_after_it():
    book = full()
    book.use("y", "d1")  # sent after the touch, and maybe run after it
    book.apply(events.Touched, pod="d1", adapter="x")
    assert why_not(book, "z", Why.OPERATOR) == "evicts_kept"


def test_an_order_waits_until_another_one_may_go():
    book = full()
    assert ask(book, "z", "d1") == []
    book.apply(events.Touched, pod="d1", adapter="x")
    book.now += 1.0
    book.report("d1")
    assert told(book) == [("Load", "d1", "z")]


def test_a_name_is_not_taken_from_a_pod_that_is_about_to_decode_for_it():
    book = full()
    assert ("Unload", "d1", "x") not in unask(book, "x", "d1")
    book.prefilled("long")
    book.start("long")
    book.end("long")
    book.wait(2.0)
    given = [each for answer in book.answers for each in answer if isinstance(each, Unload)]
    assert [(each.pod, each.adapter) for each in given] == [("d1", "x")]


QUIET = Settings(placement=PlacementSettings(enabled=False))


def sglang():
    """Two pods that decode, with `x` used before `y` on the first; nobody places anything."""
    book = Playbook(pods=pods(Engine.SGLANG, ("d1", "d2"), max_loras=2), adapters=["x", "y", "z"], settings=QUIET)
    for pod in ("p1", "d1", "d2"):
        book.report(pod)
    for name in "xy":
        book.wait(0.1)
        book.use(name, "d1")
    return book


def given_up(book):
    return [(each.pod, each.adapter) for each in book.effects if isinstance(each, Unload)]


def test_a_pod_that_is_short_of_memory_gives_up_another():
    book = sglang()
    book.report("d1", **TIGHT)
    assert given_up(book) == [("d1", "x")], "without a reservation it is the one"
    book = reserving(sglang())
    book.report("d1", **TIGHT)
    assert given_up(book) == [("d1", "y")]


def test_where_names_are_given_back_a_load_takes_no_slot():
    """So `core.restoring` may give a name back whose slot it is not."""
    assert all(each.loads_to_host for each in CACHES.values() if each.relieves)
