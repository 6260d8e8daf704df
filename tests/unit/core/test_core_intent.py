"""What operators want: the newest word counts."""

import pytest

from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Load, Unload
from lorapick.model.placement import AdapterFacts
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook


def fleet(*pods, **fields):
    book = Playbook(pods=pods, adapters=["x", "y"], **fields)
    for pod in pods:
        book.report(pod)
    return book


def told(book):
    return [(type(each).__name__, each.pod) for each in book.effects if isinstance(each, Load | Unload)]


def in_flight(book):
    book.arrive("x", id="one")
    book.start("one")
    return book.fleet.state.flights["one"].pod


def test_a_load_that_is_asked_for_after_an_unload_stands():
    book = fleet("a")
    in_flight(book)
    book.apply(events.UnloadAsked, adapter="x")
    book.apply(events.LoadAsked, adapter="x")
    book.end("one")
    book.wait(2.0)
    assert told(book) == [] and not book.fleet.state.placement.unloads


def test_a_pin_that_is_set_after_an_unload_stands():
    book = fleet("a")
    in_flight(book)
    book.apply(events.UnloadAsked, adapter="x")
    book.apply(events.PinSet, adapter="x", pin=PinSpec(pods=("a",)))
    book.apply(events.PinCleared, adapter="x")
    book.end("one")
    assert told(book) == []


def test_a_load_elsewhere_leaves_an_unload_here_alone():
    book = fleet("a", "b")
    pod = in_flight(book)
    [other] = {"a", "b"} - {pod}
    book.apply(events.UnloadAsked, adapter="x", pods=(pod,))
    book.apply(events.LoadAsked, adapter="x", pods=(other,))
    assert told(book) == [("Load", other)]
    book.end("one")
    book.wait(2.0)
    assert ("Unload", pod) in [
        (type(each).__name__, each.pod) for answer in book.answers for each in answer if isinstance(each, Unload)
    ]


def test_an_unload_takes_back_the_orders_of_its_adapter():
    book = fleet("a")
    book.apply(events.LoadAsked, adapter="x", lasts=100.0)
    book.apply(events.UnloadAsked, adapter="x")
    assert book.fleet.state.placement.orders == []


def test_an_adapter_that_is_declared_again_is_not_forgotten():
    book = fleet("a")
    book.apply(events.AdapterDeclared, adapter=Adapter(name="x", declared=True, source="/x"))
    book.report("a", registered=("x", "y"))
    in_flight(book)
    book.apply(events.AdapterRetired, adapter="x")
    assert told(book) == [], "it is in flight"
    book.apply(events.AdapterDeclared, adapter=Adapter(name="x", declared=True, source="/x"))
    book.end("one")
    book.wait(2.0)
    assert told(book) == [] and book.tier("a", "x") == "gpu_idle"


def test_a_retired_adapter_takes_its_pin_along():
    book = fleet("a")
    book.apply(events.PinSet, adapter="x", pin=PinSpec(pods=("a",)))
    book.apply(events.AdapterRetired, adapter="x")
    assert book.fleet.state.pins == {}


def test_files_teach_what_the_operator_did_not_say():
    book = fleet("a")
    book.apply(events.AdapterChecked, adapter="x", facts=AdapterFacts(rank=32))
    assert book.fleet.state.adapters["x"].rank == 32
    told = book.apply(events.AdapterChecked, adapter="x", problem="other weights under the same name")
    assert told[0].startswith("note adapter_refused adapter=x why=other weights")
    assert book.apply(events.AdapterChecked, adapter="x", problem="other weights under the same name") == []


def test_settings_that_name_no_policy_change_nothing():
    book = fleet("a")
    before = book.fleet.state.settings
    with pytest.raises(ValueError, match="no-such"):
        book.apply(events.ConfigChanged, settings=Settings(picking=PickingSettings(policy="no-such")))
    assert book.fleet.state.settings is before
