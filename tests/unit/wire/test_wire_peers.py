"""Messages of pickers: what is written is read, and nothing else is believed."""

from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.adapters import PinSpec
from lorapick.model.peers import Marks
from lorapick.wire.peers import LARGEST, Message, Owner, read, read_owner, write, write_owner

NAMES = st.text(min_size=1, max_size=20)
MARKS = st.builds(
    Marks,
    loads=st.dictionaries(NAMES, st.lists(NAMES, max_size=3).map(tuple), max_size=3),
    in_flight=st.dictionaries(NAMES, st.integers(0, 10**6), max_size=3),
    pins=st.dictionaries(NAMES, st.builds(PinSpec, replicas=st.integers(0, 9)), max_size=3),
)


@given(marks=MARKS, number=st.integers(0, 2**40))
def test_what_is_written_is_read(marks, number):
    message = Message(peer="one", number=number, marks=marks)
    assert read(write(message)) == message


@given(data=st.binary(max_size=200))
def test_whatever_comes_is_read_or_not(data):
    assert read(data) is None


def test_other_versions_negative_counts_and_endless_ones_are_not_read():
    message = Message(peer="one", number=1, marks=Marks(in_flight={"a": -1}))
    assert read(write(message)) is None
    assert read(write(Message(v=2, peer="one", number=1, marks=Marks()))) is None
    large = Message(peer="x" * LARGEST, number=1, marks=Marks())
    assert write(large) is None and read(b" " * (LARGEST + 1)) is None


def test_owners():
    assert read_owner(write_owner(Owner("one~1", "pod/1"))) == Owner("one~1", "pod/1")
    assert read_owner("") == Owner("", "")
