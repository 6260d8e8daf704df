"""What a picker tells of itself."""

from peers_kit import answer, picker

from lorapick.core.peers.saying import own_marks
from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.peers import Marks


def test_everything_of_our_own_is_told_and_nothing_of_others():
    book = picker()
    assert own_marks(book.fleet.state) == Marks()
    book.apply(events.PeerReported, peer="two", loads={"b": ("code",)}, in_flight={"b": 2}, pins={"code": PinSpec()})
    book.apply(events.PinSet, adapter="legal", pin=PinSpec(replicas=1))
    book.arrive("legal")
    answer(book, 1)
    marks = own_marks(book.fleet.state)
    assert marks == Marks(loads={"a": ("legal",)}, in_flight={"a": 1}, pins={"legal": PinSpec(replicas=1)})
