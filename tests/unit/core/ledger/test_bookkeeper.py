"""What the books say of operators and alerts, and that nothing stays open."""

from ledger_kit import Books

from lorapick.core.ledger.bookkeeper import Bookkeeper
from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.effects import Clear, Raise
from lorapick.model.ledger import MarkRow


def test_orders_of_operators_are_marked() -> None:
    book = Books(pods=("a", "b"))
    book.apply(events.PinSet, adapter="x", pin=PinSpec(replicas=1))
    book.apply(events.PinCleared, adapter="x")
    book.apply(events.LoadAsked, adapter="x", pods=("a", "b"))
    book.apply(events.UnloadAsked, adapter="x", pods=("a",))
    book.apply(events.MoveAsked, adapter="x", source="a", target="b")
    book.apply(events.AdapterRetired, adapter="x")
    marks = book.all(MarkRow)
    assert [mark.kind for mark in marks] == ["pin", "unpin", "load", "unload", "move", "retire"]
    assert {mark.subject for mark in marks} == {"x"}
    assert marks[2].facts == {"pods": "a, b", "replicas": 1}
    assert marks[4].facts == {"from": "a", "to": "b"}


def test_alerts_are_marked() -> None:
    books = Bookkeeper()
    tick = events.Ticked(t=5.0, id=1)
    effects = [Raise(cause=1, alert="thrash", facts={"pods": 2.0}), Clear(cause=1, alert="latency", facts={})]
    marks = [row for row in books.observe(tick, effects, changes=()) if isinstance(row, MarkRow)]
    assert [(mark.kind, mark.subject, mark.t) for mark in marks] == [
        ("alert", "thrash", 5.0),
        ("alert_over", "latency", 5.0),
    ]


def test_what_has_left_is_forgotten() -> None:
    book = Books()
    book.arrive("x")
    assert book.books.open_requests == 1
    book.end("r1", status=200)
    assert book.books.open_requests == 0
