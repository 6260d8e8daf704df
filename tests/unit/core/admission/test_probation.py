"""Adapters that nobody declared share a few slots."""

from lorapick.core.admission import probation as module
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.reasons import Reason
from lorapick.model.settings import AdmissionSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

STRANGERS = ("s1", "s2", "s3")


def fleet(*, declared=("legal",), share=0.1, slots=10):
    """One pod of ten slots that accepts everything: one slot for strangers."""
    settings = Settings(admission=AdmissionSettings(probation_slots_share=share))
    book = Playbook(pods=[plain_pod("a", max_loras=slots)], adapters=declared, settings=settings)
    book.report("a", registered=(*declared, *STRANGERS))
    return book


def probation(book):
    return book.fleet.state.probation


def serve(book, name):
    book.arrive(name, id=name)
    book.start(name)
    return book.end(name, status=200)


def test_strangers_take_turns_in_their_share_and_the_declared_have_the_rest():
    book = fleet()
    serve(book, "s1")
    assert book.arrive("s2") == ["r1 waits for a place until 30"]
    assert book.verdict("r1", "a").reason is Reason.PROBATION
    assert book.arrive("s1") == ["r2 -> a (gpu_idle)"]
    assert book.arrive("legal") == ["r3 -> a (disk)"]
    assert probation(book).names(book.now) == ["s1", "s2"]


def test_one_that_nobody_asks_for_any_more_gives_its_slot_to_another():
    book = fleet()
    serve(book, "s1")
    book.wait(3600.0)
    book.report("a")
    assert book.arrive("s2") == ["r1 -> a (disk)"]


def test_their_share_is_of_all_slots_and_at_least_one():
    book = fleet(share=0.2)
    for name in ("s1", "s2"):
        serve(book, name)
    assert book.arrive("s3") == ["r1 waits for a place until 30"]
    assert fleet(share=0.0).arrive("s1") == ["r1 -> a (disk)"]


def test_whoever_declares_nothing_has_no_probation():
    book = fleet(declared=())
    for name in STRANGERS:
        serve(book, name)
    assert probation(book).names(book.now) == []


def test_a_declaration_ends_it():
    book = fleet()
    serve(book, "s1")
    book.arrive("s2")
    book.apply(events.AdapterDeclared, adapter=Adapter(name="s2", declared=True))
    assert book.report("a") == ["r1 -> a (disk)"]
    assert probation(book).names(book.now) == ["s1"]


def test_an_adapter_that_left_makes_room_for_another():
    book = fleet()
    serve(book, "s1")
    book.arrive("s2")
    told = book.apply(events.Evicted, pod="a", adapter="s1", tier=module.Tier.CPU)
    assert told == ["r1 -> a (disk)"]


def test_steady_use_proves_an_adapter():
    book = fleet()
    watch = probation(book)
    for number in range(module.PROVEN_REQUESTS):
        watch.arrived("s1", now=float(number))
    assert watch.holds("s1", now=module.PROVEN_AFTER - 1.0)
    assert not watch.holds("s1", now=module.PROVEN_AFTER)
    watch.arrived("s2", now=0.0)
    assert watch.holds("s2", now=10 * module.PROVEN_AFTER), "once is not steady"


def test_names_watched_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    watch = probation(fleet())
    for name in STRANGERS:
        watch.arrived(name, now=0.0)
    assert watch.names(0.0) == ["s2", "s3"]
