"""Names that pods should know, and names that they should forget."""

from placement_kit import declare, failed, fleet, loaded, pin, placement, tick, told, unask

from lorapick.model import events
from lorapick.model.pods import Engine
from lorapick.model.settings import BudgetSettings, Settings
from lorapick.testing.playbook import plain_pod


def knows(book, pod, *names):
    book.report(pod, registered=names)
    return told(book)


def test_a_pod_is_told_one_name_at_a_time_and_serves_nobody_by_it_before():
    book = fleet("a")
    knows(book, "a")
    assert declare(book, "new", source="/new") == [("Register", "a", "new")]
    assert declare(book, "newer", source="/newer") == []
    assert book.tier("a", "new") == "unregistered"
    book.apply(events.Registered, pod="a", adapter="new")
    assert book.tier("a", "new") == "gpu_idle"
    assert tick(book) == [("Register", "a", "newer")]


def test_triton_is_told_no_names():
    book = fleet(plain_pod("a", engine=Engine.TRITON))
    knows(book, "a")
    assert declare(book, "new", source="/new") == [] and tick(book) == []


def test_a_name_that_a_pod_knew_before_has_loaded_nothing():
    book = fleet("a")
    knows(book, "a")
    declare(book, "new", source="/new")
    book.apply(events.Registered, pod="a", adapter="new", known_before=True)
    assert (book.tier("a", "new"), book.free("a")) == ("disk", 4)


def test_a_name_that_was_not_taken_is_told_again_and_its_slot_counts_as_taken_unless_it_never_will_be():
    book = fleet("a")
    knows(book, "a")
    declare(book, "new", source="/new")
    book.now += 5.0
    book.apply(events.RegisterFailed, pod="a", adapter="new", why="HTTP 500")
    assert (book.tier("a", "new"), book.free("a")) == ("unregistered", 3)
    assert tick(book) == [("Register", "a", "new")]
    book.apply(events.RegisterFailed, pod="a", adapter="new", why="HTTP 400", lasting=True)
    assert book.free("a") == 4


def test_while_a_name_comes_nobody_else_loads_so_that_no_pin_goes_for_it():
    book = fleet(plain_pod("a", max_loras=2))
    pin(book, "x", pods=("a",))
    loaded(book, "a", "x")
    book.use("y", "a")
    book.apply(events.Touched, pod="a", adapter="x")
    book.now += 900.0  # nobody asks for y any more
    knows(book, "a", "x", "y", "z")
    assert declare(book, "new", source="/new") == [("Register", "a", "new")]
    assert book.arrive("z", id="one")[0].startswith("one waits")
    book.now += 1.0
    book.apply(events.Registered, pod="a", adapter="new")
    assert book.tier("a", "x") == "gpu_idle"


def test_registrations_are_loads_of_the_pods_budget():
    book = fleet("a", settings=Settings(budgets=BudgetSettings(loads_per_pod_per_minute=1)))
    knows(book, "a")
    declare(book, "new", source="/new")
    book.apply(events.Registered, pod="a", adapter="new")
    declare(book, "newer", source="/newer")
    assert tick(book) == []
    assert tick(book, 60.0) == [("Register", "a", "newer")]


def test_nothing_is_unloaded_while_it_is_in_flight_there():
    book = fleet("a")
    book.arrive("x", id="one")
    assert unask(book, "x") == []
    book.start("one")
    book.end("one")
    assert tick(book) == [("Unload", "a", "x")]


def test_a_pin_is_not_unloaded():
    book = fleet("a")
    pin(book, "x", pods=("a",))
    loaded(book, "a", "x")
    assert unask(book, "x") == [] == tick(book)


def test_no_request_goes_where_its_adapter_is_being_unloaded():
    book = fleet("a", "b")
    book.use("x", "a")
    assert unask(book, "x", "a") == [("Unload", "a", "x")]
    assert book.arrive("x", id="one")[0].startswith("one -> b")
    book.apply(events.UnloadFailed, pod="a", adapter="x", why="HTTP 500")
    assert book.tier("a", "x") == "gpu_idle"


def test_what_was_unloaded_is_loaded_again_when_it_is_wanted_though_its_weights_have_not_gone():
    book = fleet("a")
    declare(book, "x", source="/x")
    book.use("x", "a")
    unask(book, "x")
    book.apply(events.Unloaded, pod="a", adapter="x")
    assert book.tier("a", "x") == "unregistered"
    assert tick(book) == [], "the operator does not want it there"
    assert pin(book, "x", pods=("a",)) == [("Load", "a", "x")]
    loaded(book, "a", "x")
    assert book.tier("a", "x") == "gpu_idle"


def test_a_retired_adapter_is_forgotten_by_pods_and_then_by_us():
    book = fleet("a", "b")
    declare(book, "old", source="/old")
    for pod in ("a", "b"):
        knows(book, pod, "x", "old")
    book.apply(events.AdapterRetired, adapter="old")
    assert told(book) == [("Unload", "a", "old"), ("Unload", "b", "old")]
    for pod in ("a", "b"):
        book.apply(events.Unloaded, pod=pod, adapter="old")
    tick(book)
    assert not placement(book).retiring


def test_a_pod_under_relief_is_not_told_anything_else_and_the_other_way_round():
    book = fleet(plain_pod("a", engine=Engine.SGLANG), plain_pod("b", engine=Engine.SGLANG))
    book.use("x", "a")
    book.apply(events.LoadAsked, adapter="y", pods=("a",))
    book.report("a", memory_pressure=0.93)
    assert told(book) == []
    failed(book, "a", "y")
    book.report("a", memory_pressure=0.93)
    assert told(book) == [("Unload", "a", "x")]
    assert unask(book, "y") == [("Unload", "b", "y")]
