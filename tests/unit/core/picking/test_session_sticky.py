"""Session-sticky: a session stays where it was while that pod may serve."""

from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def book_of(*pods):
    settings = Settings(picking=PickingSettings(policy="session-sticky", fallbacks=1))
    return Playbook(pods=pods, adapters=["legal", "other"], settings=settings)


def test_a_session_stays_however_busy_its_pod_is_and_wherever_the_adapter_is():
    book = book_of("a", "b")
    book.report("b", running=1)
    assert book.arrive("legal", session="s") == ["r1 -> a (disk) else b"]
    book.use("legal", "b")
    book.report("a", running=50, waiting=7)
    assert book.arrive("legal", session="s") == ["r2 -> a (loading) else b"]
    assert book.verdict("r2", "a").score == -57.0


def test_without_a_session_the_least_loaded_pod_serves():
    book = book_of("a", "b")
    book.report("a", running=3)
    book.report("b", running=2)
    assert book.arrive("legal") == ["r1 -> b (disk) else a"]


def test_a_session_whose_pod_may_not_serve_moves_for_good():
    book = book_of("a", "b", "c")
    book.report("b", running=2)
    book.report("c", running=1)
    assert book.arrive("legal", session="s") == ["r1 -> a (disk) else c"]
    book.drain("a")
    assert book.arrive("legal", session="s") == ["r2 -> c (disk) else b"]
    book.appear("a")
    assert book.arrive("legal", session="s") == ["r3 -> c (loading) else a"]


def test_a_full_queue_moves_it_too():
    book = book_of(plain_pod("a", max_queue=2), "b")
    book.report("b", running=1)
    assert book.arrive("legal", session="s") == ["r1 -> a (disk) else b"]
    book.report("a", waiting=2)
    assert book.arrive("legal", session="s") == ["r2 -> b (disk)"]


def test_sessions_are_kept_apart_by_name_and_by_model():
    book = book_of("a", "b")
    book.report("b", running=1)
    book.arrive("legal", session="s")
    book.report("a", running=5)
    assert book.arrive("other", session="s") == ["r2 -> b (disk) else a"]
    assert book.arrive("legal", session="t") == ["r3 -> b (disk) else a"]
    assert book.arrive("legal", session="s") == ["r4 -> a (loading) else b"]
