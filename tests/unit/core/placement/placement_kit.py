"""Words for tests of the controller: a fleet whose pods have reported, and what the core told pods."""

from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Load, Note, Register, Touch, Unload
from lorapick.model.pods import Pod
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import Playbook

BY = events.By.CONTROLLER


def fleet(*pods: str | Pod, adapters=("x", "y", "z"), settings: Settings | None = None, **placement) -> Playbook:
    """A fleet whose pods have reported; `placement`: fields of `PlacementSettings`."""
    if placement:
        settings = Settings(placement=PlacementSettings(**placement))
    book = Playbook(pods=pods, adapters=adapters, settings=settings)
    for name in [*book.fleet.state.columns.row_of]:
        book.report(name)
    return book


def told(book):
    """What the answer to the last event tells pods."""
    return [
        (type(each).__name__, each.pod, each.adapters[0] if isinstance(each, Load) else each.adapter)
        for each in book.effects
        if isinstance(each, Load | Unload | Register | Touch)
    ]


def refused(book):
    """Why the guard refused loads in the answer to the last event."""
    return [each.facts["reason"] for each in book.effects if isinstance(each, Note) and each.kind == "load_refused"]


def notes(book):
    """Kinds of the notes in the answer to the last event."""
    return [each.kind for each in book.effects if isinstance(each, Note)]


def placement(book):
    return book.fleet.state.placement


def row(book, pod):
    return book.fleet.state.columns.row_of[pod]


def pin(book, adapter, **spec):
    book.apply(events.PinSet, adapter=adapter, pin=PinSpec(**spec))
    return told(book)


def ask(book, adapter, *pods, **fields):
    book.apply(events.LoadAsked, adapter=adapter, pods=pods, **fields)
    return told(book)


def unask(book, adapter, *pods):
    book.apply(events.UnloadAsked, adapter=adapter, pods=pods)
    return told(book)


def loaded(book, pod, adapter):
    book.apply(events.LoadSucceeded, pod=pod, adapter=adapter, by=BY)
    return told(book)


def failed(book, pod, adapter, **fields):
    book.apply(events.LoadFailed, pod=pod, adapter=adapter, by=BY, why="HTTP 500", **fields)
    return told(book)


def tick(book, seconds=1.0):
    """Time passes, pods report, and the controller looks."""
    book.now += seconds
    found = []
    for pod in [*book.fleet.state.columns.row_of]:
        book.report(pod)
        found += told(book)
    book.apply(events.Ticked)
    return [*found, *told(book)]


def declare(book, name, **fields):
    book.apply(events.AdapterDeclared, adapter=Adapter(name=name, declared=True, **fields))
    return told(book)
