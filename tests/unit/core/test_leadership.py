"""Who does not lead picks, and commands nothing."""

from msgspec.structs import replace

from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Dispatch, Load, Register, Touch, Unload
from lorapick.model.pods import Engine
from lorapick.model.settings import Settings
from lorapick.testing.playbook import Playbook, plain_pod

COMMANDS = Load | Register | Touch | Unload


def book_that_follows():
    adapters = (Adapter(name="sql", source="/sql", declared=True),)
    book = Playbook(pods=["x", "y"], settings=Settings(adapters=adapters))
    book.apply(events.LeadershipChanged, leads=False)
    for name in "xy":
        book.report(name, registered=())
    return book


def commands(book):
    """All until now."""
    return [effect for answer in book.answers for effect in answer if isinstance(effect, COMMANDS)]


def test_pins_are_loaded_by_who_leads_alone():
    book = book_that_follows()
    book.apply(events.PinSet, adapter="sql", pin=PinSpec(replicas=1))
    for _ in range(5):
        book.wait(0.5)
    assert commands(book) == []
    assert book.fleet.state.placement.pinned.rows["sql"]
    book.apply(events.LeadershipChanged, leads=True)
    book.wait(1.0)
    assert commands(book)


def test_requests_are_served_without_the_lead():
    book = book_that_follows()
    book.arrive("base")
    assert any(isinstance(effect, Dispatch) for effect in book.effects)


def test_a_change_of_settings_gives_nobody_the_lead():
    book = book_that_follows()
    book.apply(events.ConfigChanged, settings=book.settings)
    assert not book.fleet.state.placement.commands_pods


def test_pressure_is_relieved_by_who_leads_alone():
    names = ["a", "b", "c", "d"]
    pods = [replace(plain_pod(name), engine=Engine.SGLANG) for name in "xy"]
    book = Playbook(pods=pods, adapters=names, settings=Settings())
    for name in names:
        book.wait(0.1)
        book.use(name, "x")
    book.apply(events.LeadershipChanged, leads=False)
    book.wait(1.0)
    book.report("x", memory_pressure=0.92)
    assert commands(book) == []
    book.apply(events.LeadershipChanged, leads=True)
    book.wait(3.0)
    book.report("x", memory_pressure=0.92)
    assert [type(each) for each in commands(book)] == [Unload]
