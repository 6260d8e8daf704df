"""The mode, set here or at another picker of the fleet: one command reaches all, and all come to the same."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lorapick.core.modes import REFUSED
from lorapick.core.peers.saying import own_marks
from lorapick.model import events
from lorapick.model.arms import Mode, ModeKind
from lorapick.model.peers import ModeWord
from lorapick.model.settings import PeersSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

OBSERVE, HALF = Mode(kind=ModeKind.OBSERVE), Mode(kind=ModeKind.PERCENT, percent=50.0)


def picker(*, peers=True):
    settings = Settings(peers=PeersSettings(redis="unix:///nowhere") if peers else None)
    return Playbook(pods=[plain_pod("a"), plain_pod("b")], adapters=("legal",), settings=settings)


def sets(book, mode):
    settings = replace(book.fleet.state.settings, mode=mode)
    return book.apply(events.ConfigChanged, settings=settings)


def tells(one, other, name):
    word = own_marks(one.fleet.state).mode
    return other.apply(events.PeerReported, peer=name, mode=word)


def mode(book):
    return book.fleet.state.settings.mode


def test_what_is_set_at_one_picker_holds_at_all_and_back_again():
    one, other = picker(), picker()
    sets(one, OBSERVE)
    told = tells(one, other, "one")
    assert [line for line in told if line.startswith("note mode")] and mode(other) == OBSERVE
    assert other.fleet.state.arms.mode == OBSERVE and not other.fleet.state.placement.acts
    sets(other, Mode())
    tells(other, one, "other")
    assert mode(one) == Mode() and one.fleet.state.placement.acts
    assert tells(one, other, "one") == [], "nothing is new"


def test_who_comes_later_hears_it_from_any_who_knows():
    one, other, late = picker(), picker(), picker()
    sets(one, HALF)
    tells(one, other, "one")
    tells(other, late, "other")
    assert mode(late) == HALF
    tells(late, one, "late")
    assert mode(one) == HALF


def test_a_mode_of_the_file_is_nobodys_word():
    one, other = picker(), picker()
    assert own_marks(one.fleet.state).mode is None
    sets(other, OBSERVE)
    tells(one, other, "one")
    assert mode(other) == OBSERVE


def test_without_peers_nothing_is_told():
    book = picker(peers=False)
    sets(book, OBSERVE)
    assert own_marks(book.fleet.state).mode is None


def test_a_route_that_is_not_known_here_is_refused_and_said():
    book = picker()
    word = ModeWord(number=3, mode=replace(OBSERVE, route="of-a-later-version"))
    told = book.apply(events.PeerReported, peer="later", mode=word)
    assert [line for line in told if line.startswith(f"note {REFUSED}") and "of-a-later-version" in line], told
    assert mode(book) == Mode() and book.fleet.state.peers.mode is None
    book.fleet.check()


WORDS = st.builds(
    ModeWord,
    number=st.integers(1, 3),
    mode=st.sampled_from([OBSERVE, HALF, Mode(), replace(OBSERVE, route="round-robin")]),
)


@given(st.lists(WORDS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_in_whatever_order_words_come_all_end_with_the_same(words, chance):
    shuffled = [*words, *words]
    chance.shuffle(shuffled)
    ends = []
    for order in (words, shuffled):
        book = picker()
        for number, word in enumerate(order):
            book.apply(events.PeerReported, peer=f"p{number % 3}", mode=word)
        ends.append((mode(book), book.fleet.state.peers.mode))
    assert ends[0] == ends[1]
