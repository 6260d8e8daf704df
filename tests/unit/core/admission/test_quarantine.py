"""Pods that failed to load an adapter are left alone for a while."""

from lorapick.core.admission.quarantine import LONGEST, Quarantine
from lorapick.model import events
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.testing.playbook import Playbook


def test_each_failure_doubles_the_pause_up_to_a_minute():
    quarantine = Quarantine()
    assert [quarantine.failed(0, "legal", now=0.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, LONGEST, LONGEST]
    for _ in range(50):
        assert quarantine.failed(0, "legal", now=0.0) == LONGEST


def test_it_ends_by_time_by_success_and_with_the_pod():
    quarantine = Quarantine()
    quarantine.failed(0, "legal", now=5.0)
    quarantine.failed(1, "legal", now=5.0)
    quarantine.failed(1, "code", now=5.0)
    assert (quarantine.rows("legal", now=5.9), quarantine.rows("legal", now=6.0)) == ([0, 1], [])
    quarantine.worked(0, "legal")
    assert quarantine.failed(0, "legal", now=6.0) == 1.0, "what worked has no past"
    quarantine.gone(1)
    assert (quarantine.rows("code", now=5.5), quarantine.rows("legal", now=5.5)) == ([], [0])
    quarantine.worked(3, "never-failed")


def test_a_failed_load_keeps_its_adapter_away_from_the_pod_and_no_other():
    book = Playbook(pods=["a", "b"], adapters=["legal", "code"])
    book.apply(events.LoadFailed, pod="a", adapter="legal", by=events.By.ENGINE, why="no such file")
    assert book.arrive("legal") == ["r1 -> b (disk)"]
    assert book.verdict("r1", "a").reason is Reason.CIRCUIT_OPEN
    assert book.arrive("code", subset=("a",)) == ["r2 -> a (disk)"]
    book.end("r2", status=200)
    book.wait(1.0)
    assert book.arrive("legal", subset=("a",)) == ["r3 -> a (disk)"]


def test_waiters_of_a_load_that_failed_go_elsewhere():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.end("r1", Outcome.FAILED)
    assert book.arrive("legal") == ["r2 -> b (disk)"]


def test_where_nobody_may_serve_the_request_is_refused():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.apply(events.LoadFailed, pod="a", adapter="legal", by=events.By.ENGINE, why="no such file")
    assert book.arrive("legal") == ["r1 refused: 503 no_pod"]
    assert "1 circuit_open" in book.effects[0].message
    book.wait(1.0)
    assert book.arrive("legal") == ["r2 -> a (disk)"]
