"""Random: all pods that may serve are equally likely, and nothing else counts."""

from collections import Counter

from lorapick.model.pods import SilentWhy
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook


def book_of(*pods, seed=0):
    settings = Settings(picking=PickingSettings(policy="random", fallbacks=1))
    return Playbook(pods=pods, adapters=["legal"], settings=settings, seed=seed)


def ask(book, model="base", **fields):
    """Send one request, let it end, and return where it went and its fallback."""
    book.arrive(model, **fields)
    effect = book.effects[0]
    book.end(effect.request_id)
    return effect.target.pod, *(target.pod for target in effect.fallbacks)


def test_each_pod_is_as_likely_as_the_others_busy_or_not():
    book = book_of("a", "b", "c")
    book.use("legal", "b")
    book.report("a", running=5, waiting=5)
    counts = Counter(ask(book, "legal")[0] for _ in range(900))
    assert {pod: 250 < count < 350 for pod, count in counts.items()} == {"a": True, "b": True, "c": True}


def test_fallbacks_are_spread_too():
    book = book_of("a", "b", "c")
    assert {ask(book) for _ in range(50)} == {("a", "b"), ("b", "c"), ("c", "a")}


def test_pods_that_may_not_serve_are_no_candidates():
    book = book_of("a", "b", "c")
    book.silent("b", SilentWhy.REFUSED)
    assert Counter(ask(book)[0] for _ in range(200)).keys() == {"a", "c"}


def test_seed_and_request_decide_and_nothing_before_them():
    def picks(seed, ids):
        book = book_of("a", "b", "c", seed=seed)
        return {name: ask(book, id=name) for name in ids}

    ids = [f"id-{number}" for number in range(30)]
    assert picks(1, ids) == picks(1, reversed(ids)) != picks(2, ids)


def test_sessions_do_not_stick():
    book = book_of("a", "b", "c")
    assert len({ask(book, session="s")[0] for _ in range(30)}) == 3
