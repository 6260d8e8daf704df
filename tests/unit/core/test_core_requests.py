"""What happens to a request after its decision: counting, fallbacks, ends."""

import pytest

from lorapick.model import events
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.testing.playbook import Playbook, plain_pod


def test_requests_in_flight_count_without_any_scrape():
    book = Playbook(pods=[plain_pod("a", max_num_seqs=2, max_queue=2)])
    for number in range(1, 5):
        assert book.arrive("base") == [f"r{number} -> a (base)"]
    assert (book.in_flight("a"), book.queue("a")) == (4, 2.0)
    assert book.arrive("base") == ["r5 waits for a place until 30"]
    assert book.end("r1") == ["r5 -> a (base)"]
    assert book.end("r2") == []
    assert (book.in_flight("a"), book.queue("a")) == (3, 1.0)
    assert book.arrive("base") == ["r6 -> a (base)"]


def test_a_request_id_in_flight_is_refused_and_changes_nothing():
    book = Playbook(pods=["a"])
    book.arrive("base", id="twice")
    with pytest.raises(ValueError, match="'twice' is in flight already"):
        book.arrive("base", id="twice")
    assert (book.in_flight("a"), book.fleet.state.tally.arrivals) == (1, 1)
    book.end("twice")
    assert book.arrive("base", id="twice") == ["twice -> a (base)"]


def test_outcomes_add_up_to_arrivals():
    book = Playbook(pods=["a"])
    for outcome in (Outcome.SERVED, Outcome.FAILED, Outcome.ABANDONED):
        book.arrive("base", id=outcome.value)
        book.end(outcome.value, outcome)
    book.arrive("nobody")
    book.apply(events.RequestRefused, reason=Reason.BODY_INVALID, status=400)
    book.arrive("base")
    tally = book.fleet.state.tally
    assert tally.arrivals == 6
    assert tally.outcomes == {Outcome.SERVED: 1, Outcome.FAILED: 1, Outcome.ABANDONED: 1, Outcome.REJECTED: 2}


def test_ends_and_headers_of_strangers_are_ignored():
    book = Playbook(pods=["a"])
    assert book.end("nobody") == book.start("nobody") == book.fallback("nobody", "a") == []


def test_the_pod_that_was_picked_confirms():
    book = Playbook(pods=["a"])
    book.arrive("base")
    assert book.fallback("r1", "a") == []
    assert book.fallback("r1", "unknown-pod") == []
    assert book.fleet.state.tally.fallbacks == 0


def test_a_fallback_takes_the_request_over_and_closes_the_pod_that_refused():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", subset=("a",), session="s", blocks=(1, 2))
    assert book.fallback("r1", "b") == ["note fallback_served picked=a served=b"]
    assert (book.in_flight("a"), book.in_flight("b")) == (0, 1)
    assert (book.tier("a", "legal"), book.tier("b", "legal")) == ("disk", "loading")
    tally = book.fleet.state.tally
    assert (tally.dispatched, tally.fallbacks, tally.loads) == (1, 1, 1)
    assert +tally.picks_by_tier == {"disk": 1}
    assert book.fleet.state.sessions == {("legal", "s"): "b"}
    assert book.arrive("legal", id="next") == ["next -> b (loading)"]
    assert book.verdict("next", "a").reason is Reason.CIRCUIT_OPEN
    book.report("a")
    assert book.arrive("base", subset=("a",)) == ["r2 -> a (base)"]


def test_a_fallback_of_a_follower_takes_back_its_coalescing():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.arrive("legal", subset=("a",))
    book.fallback("r2", "b")
    tally = book.fleet.state.tally
    assert (tally.loads, tally.coalesced) == (2, 0)
    assert book.tier("a", "legal") == "loading", "the first request still waits there"


def test_followers_of_a_pod_that_refuses_go_with_the_load():
    pods = [plain_pod(name, max_num_seqs=1, max_queue=1) for name in ("a", "b")]
    book = Playbook(pods=pods, adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.arrive("legal", subset=("a",))
    assert book.arrive("legal") == ["r3 waits for a until 1.4"]
    assert book.fallback("r1", "b") == ["note fallback_served picked=a served=b", "r3 -> b (loading)"]


def test_a_base_request_can_fall_back_too():
    book = Playbook(pods=["a", "b"])
    book.arrive("base", subset=("a",))
    book.fallback("r1", "b")
    assert +book.fleet.state.tally.picks_by_tier == {"base": 1}


def test_headers_end_a_load_and_say_how_long_it_took():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.now = 0.25
    assert book.start("r1") == ["note load_ended pod=a adapter=legal from=disk seconds=0.25"]
    assert book.tier("a", "legal") == "gpu_serving"
    book.arrive("legal")
    assert book.start("r2") == []


def test_headers_of_a_stream_prove_no_load_its_end_does():
    """vLLM sends them at admission (ADR 0008)."""
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal", stream=True)
    book.now = 0.25
    assert book.start("r1") == []
    assert book.tier("a", "legal") == "loading"
    book.now = 0.5
    assert book.end("r1", status=200) == ["note load_ended pod=a adapter=legal from=disk seconds=0.5"]
    assert book.tier("a", "legal") == "gpu_idle"


def test_the_end_of_a_request_that_was_not_served_proves_nothing():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal", stream=True)
    book.start("r1")
    assert book.end("r1", Outcome.ABANDONED) == []
    assert book.tier("a", "legal") == "loading"


def test_headers_of_an_error_prove_no_load():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    assert book.start("r1", status=500) == []
    assert book.tier("a", "legal") == "loading"
    book.end("r1", Outcome.FAILED, status=500)
    assert book.tier("a", "legal") == "disk"


def test_one_failure_among_several_does_not_end_the_load():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.arrive("legal")
    book.end("r1", Outcome.FAILED, status=400)
    assert book.tier("a", "legal") == "loading"
    book.end("r2", Outcome.FAILED, status=500)
    assert (book.tier("a", "legal"), book.free("a")) == ("disk", 3.0)  # it may have it all the same


def test_a_failure_after_the_headers_is_no_failed_load():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.start("r1")
    book.end("r1", Outcome.FAILED)
    assert book.tier("a", "legal") == "gpu_idle"


def test_a_load_nobody_reports_ends_after_its_expected_time():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    assert book.wait(0.69) == []
    assert book.wait(0.02) == ["note load_ended pod=a adapter=legal from=disk"]
    assert book.tier("a", "legal") == "gpu_serving"


def test_a_pod_that_goes_takes_no_request_from_the_count_of_the_next_one():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.gone("a")
    book.appear("b")
    assert book.in_flight("b") == 0
    assert book.end("r1", Outcome.FAILED) == []
    assert book.start("r1") == []
    assert (book.in_flight("b"), book.tier("b", "legal")) == (0, "disk")


def test_a_fallback_of_a_request_whose_pod_has_gone():
    book = Playbook(pods=["a", "b"])
    book.arrive("base", subset=("a",))
    book.gone("a")
    assert book.fallback("r1", "b") == ["note fallback_served picked=a served=b"]
    assert book.in_flight("b") == 1
