"""Least loaded: running and waiting as reported, corrected by what we did since."""

from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def book_of(*pods, seed=0):
    settings = Settings(picking=PickingSettings(policy="least-loaded"))
    return Playbook(pods=pods, adapters=["legal"], settings=settings, seed=seed)


def test_fewest_running_and_waiting_win_whoever_holds_the_adapter():
    book = book_of("a", "b", "c")
    book.use("legal", "a")
    book.report("a", running=4, waiting=0)
    book.report("b", running=1, waiting=2)
    book.report("c", running=0, waiting=5)
    assert book.arrive("legal") == ["r1 -> b (disk) else a, c"]
    assert [book.verdict("r1", pod).score for pod in "abc"] == [-4.0, -3.0, -5.0]


def test_own_dispatches_count_before_the_next_scrape():
    book = book_of("a", "b")
    book.report("a", running=2)
    book.report("b", running=4)
    told = [book.arrive("base")[0] for _ in range(3)]
    assert told[:2] == ["r1 -> a (base) else b", "r2 -> a (base) else b"]
    assert book.in_flight("a") + book.in_flight("b") == 3
    book.end("r1")
    book.end("r2")
    book.report("b", running=9)
    assert book.arrive("base") == ["r4 -> a (base) else b"]


def test_own_requests_are_known_without_a_scrape():
    book = book_of("a", "b", "c", "d")
    told = [book.arrive("base")[0].split()[2] for _ in range(4)]
    assert sorted(told) == ["a", "b", "c", "d"]


def test_a_scrape_that_was_too_early_to_see_a_request_does_not_hide_it():
    book = book_of("a", "b")
    book.arrive("base", subset=("a",))
    book.wait(0.5)
    book.report("a", running=0, waiting=0, since=0.1)
    assert book.arrive("base") == ["r2 -> b (base) else a"]


def test_a_restarted_pod_keeps_only_our_own():
    book = book_of("a", "b")
    book.report("a", running=6, process_start=100.0)
    book.report("b", running=2)
    book.arrive("base", subset=("a",))
    book.report("a", running=None, waiting=None, process_start=200.0)
    assert book.arrive("base") == ["r2 -> a (base) else b"]


def test_equals_are_drawn():
    went = set()
    for seed in range(20):
        book = book_of("a", "b", seed=seed)
        book.arrive("base")
        went.add(book.effects[0].target.pod)
    assert went == {"a", "b"}


def test_a_row_that_is_used_again_begins_empty():
    book = book_of("a", "b")
    book.report("a", running=5)
    book.report("b", running=1)
    book.gone("a")
    book.appear(plain_pod("new"))
    assert book.arrive("base") == ["r1 -> new (base) else b"]
