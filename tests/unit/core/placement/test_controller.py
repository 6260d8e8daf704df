"""What is wanted, against what is believed: loads, touches, registrations, in the words of `Playbook`."""

from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.effects import Load, Note, Register, Touch, Unload
from lorapick.testing.playbook import Playbook, plain_pod

BY = events.By.CONTROLLER


def commands(book):
    return [
        (type(each).__name__, each.pod, each.adapters[0] if isinstance(each, Load) else each.adapter)
        for each in book.effects
        if isinstance(each, Load | Unload | Register | Touch)
    ]


def refusals(book):
    return [each.facts["reason"] for each in book.effects if isinstance(each, Note) and each.kind == "load_refused"]


def done(book, pod, adapter):
    book.apply(events.LoadSucceeded, pod=pod, adapter=adapter, by=BY)


def tick(book, seconds=1.0):
    book.now += seconds
    book.apply(events.Ticked)


def pin(book, adapter, **spec):
    book.apply(events.PinSet, adapter=adapter, pin=PinSpec(**spec))


def test_a_pin_is_loaded_at_once_and_again_after_a_restart():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    pin(book, "legal", pods=("a",))
    assert (commands(book), refusals(book)) == ([], ["away"]), "it has never said a word"
    book.report("a", process_start=1.0)
    assert commands(book) == [("Load", "a", "legal")]
    assert book.tier("a", "legal") == "loading"
    done(book, "a", "legal")
    assert book.tier("a", "legal") == "gpu_idle"
    tick(book)
    assert commands(book) == []
    book.report("a", process_start=9.0)
    tick(book, 0.1)
    assert commands(book) == [("Load", "a", "legal")]


def test_a_pin_that_fails_to_load_is_tried_again_at_the_next_tick():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.report("a")
    pin(book, "legal", replicas=1)
    for _ in range(3):
        book.apply(events.LoadFailed, pod="a", adapter="legal", by=BY, why="HTTP 500")
        assert commands(book) == [], "not at once: a pod that answers at once would be asked without end"
        tick(book)
        assert commands(book) == [("Load", "a", "legal")]
    done(book, "a", "legal")
    tick(book)
    assert commands(book) == []


def test_pins_that_do_not_fit_are_refused_with_the_arithmetic():
    book = Playbook(pods=[plain_pod("a", max_loras=2)], adapters=["x", "y", "z"])
    pin(book, "x", pods=("a",))
    pin(book, "y", pods=("a",))
    told = book.apply(events.PinSet, adapter="z", pin=PinSpec(pods=("a",)))
    assert told == ["note pin_refused adapter=z why=pod a: it has 2 slots for 3 pins: x, y, z"]
    assert [*book.fleet.state.pins] == ["x", "y"]


def test_others_never_take_the_slots_of_pins():
    book = Playbook(pods=[plain_pod("a", max_loras=2)], adapters=["legal", "x", "y"])
    pin(book, "legal", pods=("a",))
    done(book, "a", "legal")
    assert book.arrive("x")[0] == "r1 -> a (disk)"
    book.apply(events.Touched, pod="a", adapter="legal")
    assert book.arrive("y") == ["r2 waits for a place until 30"], "the only other slot is in use"
    assert book.arrive("legal") == ["r3 -> a (gpu_idle)"]


def test_a_pin_that_would_go_next_is_touched_and_nothing_loads_before():
    book = Playbook(pods=[plain_pod("a", max_loras=2)], adapters=["legal", "x", "y"])
    pin(book, "legal", pods=("a",))
    done(book, "a", "legal")
    tick(book)
    book.arrive("x", id="one")
    assert commands(book) == [], "x is newer than the pin now, but in use: nobody else could go"
    book.start("one")
    book.end("one")
    assert book.arrive("y", id="two")[0].startswith("two waits for a place")
    assert commands(book) == [("Touch", "a", "legal")]
    assert book.apply(events.Touched, pod="a", adapter="legal")[0] == "two -> a (disk)"
    assert book.tier("a", "legal") == "gpu_idle"


def test_a_reserved_pod_serves_its_pins_only():
    book = Playbook(pods=["a", "b"], adapters=["legal", "x"])
    pin(book, "legal", pods=("a",), reserve=True)
    done(book, "a", "legal")
    book.arrive("x", id="other")
    assert book.verdict("other", "a").reason.value == "reserved"
    assert book.arrive("legal", id="own")[0].startswith("own -> a")
    book.arrive("base", id="base")
    assert book.verdict("base", "a").reason.value == "reserved"
