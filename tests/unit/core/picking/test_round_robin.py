"""Round-robin."""

from lorapick.model.pods import SilentWhy
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook


def book_of(*pods):
    return Playbook(pods=pods, adapters=["legal"], settings=Settings(picking=PickingSettings(policy="round-robin")))


def turns(book, count, model="base"):
    told = []
    for _ in range(count):
        book.arrive(model)
        told.append(book.effects[0].target.pod)
    return told


def test_each_pod_in_turn_whatever_it_holds():
    book = book_of("a", "b", "c")
    book.use("legal", "b")
    assert turns(book, 6, "legal") == ["c", "a", "b", "c", "a", "b"]


def test_a_pod_that_may_not_serve_is_passed_over():
    book = book_of("a", "b", "c")
    book.silent("b", SilentWhy.REFUSED)
    assert turns(book, 4) == ["a", "c", "a", "c"]


def test_fallbacks_are_the_pods_that_follow():
    book = book_of("a", "b", "c")
    assert book.arrive("base") == ["r1 -> a (base) else b, c"]
    assert book.arrive("base") == ["r2 -> b (base) else c, a"]


def test_it_goes_on_when_pods_come_and_go():
    book = book_of("a", "b", "c")
    assert turns(book, 1) == ["a"]
    book.gone("b")
    assert turns(book, 2) == ["c", "a"]
    book.appear("d")
    assert turns(book, 3) == ["d", "c", "a"]


def test_sessions_do_not_stick():
    book = book_of("a", "b")
    told = []
    for _ in range(3):
        book.arrive("base", session="s")
        told.append(book.effects[0].target.pod)
    assert told == ["a", "b", "a"]
