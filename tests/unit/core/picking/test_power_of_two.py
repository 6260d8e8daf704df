"""Power of two choices: which two, and which of them."""

from collections import Counter

import pytest

from lorapick.core.picking.power_of_two import pair
from lorapick.core.picking.query import Query
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def book_of(*pods, seed=0):
    return Playbook(pods=pods, settings=Settings(picking=PickingSettings(policy="power-of-two")), seed=seed)


def ask(book):
    """Send one request, let it end, and return where it went."""
    book.arrive("base")
    effect = book.effects[0]
    book.end(effect.request_id)
    return effect.target.pod


@pytest.mark.parametrize("count", [2, 3, 7])
def test_all_pairs_are_as_likely(count):
    drawn = Counter(tuple(pair(Query(f"r{number}", None), count)) for number in range(4200))
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    assert sorted(drawn) == pairs
    expected = 4200 / len(pairs)
    assert all(abs(times - expected) < 5 * expected**0.5 for times in drawn.values())


def test_the_pair_depends_on_request_and_seed():
    def drawn(seed):
        query = Query("r", None)
        query.seed = seed
        return tuple(pair(query, 50))

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(20)}) == 20


def test_the_less_loaded_of_two_wins():
    """Of the six pairs of four pods, each as likely, three have the idle pod, two more the next, one the third."""
    book = book_of("a", "b", "c", "d")
    for pod, running in (("a", 3), ("b", 2), ("c", 1), ("d", 0)):
        book.report(pod, running=running)
    counts = Counter(ask(book) for _ in range(600))
    assert counts["a"] == 0, "the busiest of all loses to any other"
    assert [abs(counts[pod] - share) < 45 for pod, share in (("b", 100), ("c", 200), ("d", 300))] == [True] * 3


def test_equals_are_drawn_evenly():
    book = book_of("a", "b", "c")
    counts = Counter(ask(book) for _ in range(600))
    assert all(150 < count < 250 for count in counts.values())


def test_it_spreads_nearly_evenly_though_it_looks_at_two_pods_only():
    pods = [plain_pod(f"p{index:02d}", max_num_seqs=1000) for index in range(20)]
    book = book_of(*pods)
    for _ in range(200):
        book.arrive("base")
    loads = [book.in_flight(pod.name) for pod in pods]
    assert max(loads) <= 10 + 3, loads


def test_pods_that_were_not_drawn_are_fallbacks_least_loaded_first():
    book = book_of("a", "b", "c", "d")
    for pod, running in (("a", 4), ("b", 3), ("c", 2), ("d", 1)):
        book.report(pod, running=running)
    book.arrive("base")
    drawn = sorted(verdict.pod for verdict in book.explain("r1").verdicts if verdict.score > -1e6)
    rest = sorted({"a", "b", "c", "d"} - {*drawn}, reverse=True)
    assert len(drawn) == 2
    assert book.effects[0].target.pod == drawn[1]
    assert [target.pod for target in book.effects[0].fallbacks] == [drawn[0], rest[0]]


def test_one_pod_is_enough():
    assert ask(book_of("a")) == "a"
