"""Pods that failed to load an adapter are left alone for a while."""

import pytest

from lorapick.core.admission.quarantine import LONGEST, TRIES, Quarantine
from lorapick.model import events
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.testing.playbook import Playbook, plain_pod


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


def failed(book, request_id, status=500):
    return book.end(request_id, Outcome.FAILED, status=status)


def test_waiters_of_a_load_that_failed_go_elsewhere():
    pods = [plain_pod("a", max_num_seqs=1, max_queue=1), plain_pod("b")]
    book = Playbook(pods=pods, adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.arrive("legal", subset=("a",))
    assert book.arrive("legal") == ["r3 waits for a until 1.4"]
    assert failed(book, "r1")[-1] == "r3 -> b (disk)"
    assert book.effects[0].facts == {
        "pod": "a",
        "adapter": "legal",
        "why": "request r1 ended with status 500",
        "pause_seconds": 1.0,
    }
    assert book.arrive("legal")[0].startswith("r4 -> b (loading)")


def test_the_first_of_several_that_fail_says_that_the_load_did():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    for _ in range(3):
        book.arrive("legal", subset=("a",))
    failed(book, "r1")
    assert (book.tier("a", "legal"), book.fleet.state.tally.quarantines) == ("disk", 1)
    failed(book, "r2")
    assert book.fleet.state.tally.quarantines == 1, "one load, one failure"
    assert book.arrive("legal") == ["r4 -> b (disk)"]


def test_a_follower_that_is_served_shows_that_the_adapter_is_there():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.arrive("legal")
    failed(book, "r1")
    book.end("r2", status=200)
    assert book.tier("a", "legal") == "gpu_idle"
    assert book.arrive("legal") == ["r3 -> a (gpu_idle)"]


def test_a_failure_after_the_expected_end_of_the_load_is_one_of_the_load():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.wait(5.0)
    assert book.tier("a", "legal") == "gpu_serving", "believed, and nobody has said so"
    failed(book, "r1")
    assert book.tier("a", "legal") == "disk"
    assert book.arrive("legal") == ["r2 -> b (disk)"]


def test_a_failure_of_what_has_run_there_is_none_of_a_load():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.end("r1", status=200)
    book.arrive("legal")
    failed(book, "r2")
    assert (book.tier("a", "legal"), book.fleet.state.tally.quarantines) == ("gpu_idle", 0)


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429])
def test_a_mistake_of_the_client_is_no_failure_of_the_load(status):
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    failed(book, "r1", status)
    assert book.fleet.state.tally.quarantines == 0
    assert " -> a" in book.arrive("legal")[0]


def test_a_pod_that_cannot_be_reached_is_to_blame_and_not_the_adapter():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.fallback("r1", "b")
    assert (book.tier("a", "legal"), book.fleet.state.tally.quarantines) == ("disk", 0)


def test_an_adapter_that_fails_on_pod_after_pod_is_left_alone_on_all():
    book = Playbook(pods=["a", "b", "c", "d"], adapters=["legal", "code"])
    book.arrive("legal", subset=("d",))
    book.end("r1", status=200)
    for pod in "abc":
        [request] = [line.split()[0] for line in book.arrive("legal", subset=(pod,))]
        failed(book, request)
    assert book.arrive("legal") == ["r5 -> d (gpu_idle)"], "where it is, it works"
    book.arrive("legal", subset=("a",))
    assert "1 circuit_open" in book.effects[0].message
    book.end("r5", status=200)
    book.wait(1.0)
    assert " -> a" in book.arrive("legal", subset=("a",))[0], "d's answer says that its files are good"


def test_tries_of_a_broken_adapter_are_bounded_however_many_pods_there_are():
    book = Playbook(pods=[f"p{number:02}" for number in range(12)], adapters=["broken"])
    tries = 0
    for _ in range(100):
        told = book.arrive("broken")
        if " -> " in told[0]:
            tries += 1
            failed(book, told[0].split()[0])
        book.wait(0.1)
    assert tries == TRIES + 3, "the third failure pauses for 1 s, the next for 2 and 4"


def test_where_nobody_may_serve_the_request_is_refused():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.apply(events.LoadFailed, pod="a", adapter="legal", by=events.By.ENGINE, why="no such file")
    assert book.arrive("legal") == ["r1 refused: 503 no_pod"]
    assert "1 circuit_open" in book.effects[0].message
    book.wait(1.0)
    assert book.arrive("legal") == ["r2 -> a (disk)"]


def test_names_that_nobody_gives_any_more_are_forgotten():
    quarantine = Quarantine()
    for _ in range(TRIES):
        quarantine.failed(0, "legal", now=0.0)
    assert quarantine.closed("legal", now=0.5)
    quarantine.forget("legal")
    assert not quarantine.closed("legal", now=0.5)
    assert quarantine.rows("legal", now=0.5) == []
