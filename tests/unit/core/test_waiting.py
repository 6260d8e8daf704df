"""Who may wait at the picker, for how long, who gives way, and what is said when nobody comes."""

import pytest

from lorapick.core.waiting import MOST_TRIES
from lorapick.model import events
from lorapick.model.bands import Band, Ordering
from lorapick.model.effects import Reject
from lorapick.model.pods import SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.settings import AdmissionSettings, Fairness, LoadTimes, PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod, tell


def one_pod(*, seats=1, queue=1, policy="weighted", adapters=("legal", "code"), slots=4, **admission):
    """A pod that two requests fill."""
    settings = Settings(picking=PickingSettings(policy=policy), admission=AdmissionSettings(**admission))
    pod = plain_pod("a", max_num_seqs=seats, max_queue=queue, max_loras=slots)
    return Playbook(pods=[pod], adapters=adapters, settings=settings)


def fill(book, count=2):
    for number in range(count):
        assert book.arrive("base", id=f"full{number}") == [f"full{number} -> a (base)"]


def queue(book, *ids, **fields):
    """Let requests for the base model wait; what is said of each."""
    return [book.arrive("base", id=name, **fields)[-1] for name in ids]


def drained(book, count):
    """End one request after the other that the pod has; who comes in for each."""
    order = []
    for _ in range(count):
        running = next(flight for flight in book.fleet.state.flights.values() if flight.row >= 0)
        order += [line.split(" -> ")[0] for line in book.end(running.request.id, status=200) if " -> " in line]
    return order


# -- for how long


def test_until_max_wait_then_refused_as_too_late_and_told_what_kept_it():
    book = one_pod(max_wait=3.0)
    fill(book)
    assert queue(book, "q") == ["q waits for a place until 3"]
    assert book.explain("q").outcome == "held"
    assert book.wait(2.9) == []
    assert book.wait(0.1) == ["q refused: 503 deadline"]
    said = next(effect.message for answer in book.answers for effect in answer if isinstance(effect, Reject))
    assert said == "it has waited for 3 s, and still no pod can serve 'base' now: 1 queue_full"


def test_until_its_deadline_if_that_is_sooner():
    book = one_pod()
    fill(book)
    assert queue(book, "q", deadline=1.5) == ["q waits for a place until 1.5"]
    assert book.wait(2.0) == ["q refused: 503 deadline"]


def test_not_at_all_when_nobody_may():
    book = one_pod(max_wait=0.0)
    fill(book)
    assert queue(book, "q") == ["q refused: 429 queue_full"]


@pytest.mark.parametrize("policy", ["round-robin", "least-loaded", "gie-lora"])
def test_policies_that_do_not_leave_admission_to_us_refuse_at_once(policy):
    book = one_pod(policy=policy)
    fill(book)
    assert queue(book, "q") == ["q refused: 429 queue_full"]


def test_a_pod_that_is_away_or_does_not_fit_is_not_waited_for():
    book = one_pod()
    fill(book)
    book.silent("a", SilentWhy.REFUSED)
    assert queue(book, "q") == ["q refused: 503 no_pod"]


def test_who_waits_is_refused_when_its_pod_goes():
    book = one_pod()
    fill(book)
    queue(book, "q1", "q2")
    assert book.drain("a") == ["q1 refused: 503 no_pod", "q2 refused: 503 no_pod"]


def test_a_pod_that_comes_takes_those_who_wait():
    book = one_pod()
    fill(book)
    queue(book, "q1", "q2")
    assert book.appear("b") == ["q1 -> b (base)", "q2 -> b (base)"]


def test_a_follower_whose_load_has_ended_waits_for_a_place_and_keeps_its_own():
    book = one_pod(max_queued=2)
    book.arrive("legal")
    book.arrive("legal")
    assert book.arrive("legal") == ["r3 waits for a until 1.4"]
    queue(book, "q")
    book.start("r1")
    book.arrive("code", id="shed")
    assert book.effects[-1].reason is Reason.SHED
    assert book.wait(1.5) == ["r3 waits for a place until 30"]
    assert drained(book, 2) == ["q", "r3"]


def test_who_waits_for_a_place_may_come_to_follow_a_load():
    book = one_pod(max_queued=1)
    fill(book)
    assert book.arrive("legal", id="q") == ["q waits for a place until 30"]
    book.apply(events.LoadStarted, pod="a", adapters=("legal",), by=events.By.CONTROLLER)
    assert book.report("a", waiting=3) == ["q waits for a until 1.4"]
    assert book.fleet.state.waiting == 1
    assert book.report("a") == ["q -> a (loading)"]


# -- who gives way


def test_below_zero_nobody_waits():
    book = one_pod()
    assert book.arrive("base", priority=-1) == ["r1 -> a (base)"], "where there is room it is served"
    book.arrive("base")
    assert queue(book, "q", priority=-1) == ["q refused: 429 shed"]


def test_a_newcomer_to_a_full_queue_is_shed_or_takes_the_place_of_a_lower_one():
    book = one_pod(max_queued=2)
    fill(book)
    queue(book, "q1", "q2")
    assert queue(book, "q3") == ["q3 refused: 429 shed"]
    assert "2 requests wait already (admission.max_queued)" in book.effects[0].message
    assert book.arrive("base", id="high", priority=1) == ["q2 refused: 429 shed", "high waits for a place until 30"]
    assert book.arrive("base", id="top", priority=2) == ["q1 refused: 429 shed", "top waits for a place until 30"]
    assert queue(book, "high2", priority=1) == ["high2 refused: 429 shed"]
    assert drained(book, 2) == ["top", "high"]


def test_a_client_that_gives_up_frees_its_place():
    book = one_pod(max_queued=1)
    fill(book)
    queue(book, "q1")
    assert queue(book, "q2") == ["q2 refused: 429 shed"]
    assert book.end("q1", Outcome.ABANDONED) == []
    assert queue(book, "q3") == ["q3 waits for a place until 30"]
    assert drained(book, 1) == ["q3"]


# -- who comes first


def test_higher_priority_comes_first_however_long_others_have_waited():
    book = one_pod()
    fill(book)
    queue(book, "old")
    book.wait(3.0)
    queue(book, "high", priority=5)
    queue(book, "mid", priority=1)
    assert drained(book, 3) == ["high", "mid", "old"]


def test_fairness_ids_take_turns():
    book = one_pod()
    fill(book)
    queue(book, "a1", "a2", "a3", "a4", fairness_id="a")
    queue(book, "b1", "b2", fairness_id="b")
    assert drained(book, 6) == ["a1", "b1", "a2", "b2", "a3", "a4"]


def test_the_fewest_tokens_come_first():
    book = one_pod(fairness=Fairness.LEAST_ATTAINED)
    fill(book)
    queue(book, "a1", "a2", "a3", fairness_id="a", prompt_tokens=60, max_tokens=40)
    queue(book, *(f"b{n}" for n in range(6)), fairness_id="b", prompt_tokens=20, max_tokens=5)
    assert drained(book, 9) == ["a1", "b0", "b1", "b2", "b3", "a2", "b4", "b5", "a3"]


def test_patience_makes_it_first_come_first_served():
    book = one_pod(patience=1.0)
    fill(book)
    queue(book, "a1", "a2", fairness_id="a")
    book.wait(0.1)
    queue(book, "b1", fairness_id="b")
    book.wait(2.0)
    book.report("a", every=9.0, waiting=1, running=1)
    assert drained(book, 3) == ["a1", "a2", "b1"]


def test_one_load_serves_all_who_wait_for_its_adapter():
    book = one_pod(seats=8, queue=8, slots=1)
    book.arrive("legal", id="hot")
    book.start("hot")
    for number in range(3):
        book.arrive("code", id=f"c{number}")
        book.arrive("tax" if number > 9 else "legal", id=f"l{number}")
    for number in range(3):
        assert book.end(f"l{number}", status=200) == []
    assert book.end("hot", status=200) == ["c0 -> a (disk)", "c1 -> a (loading)", "c2 -> a (loading)"]


# -- what is said


def test_a_name_that_no_pod_accepts_any_more_is_unknown():
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)])
    book.report("a", registered=("legal",))
    fill(book)
    assert book.arrive("legal") == ["r1 waits for a place until 30"]
    assert book.report("a", registered=(), waiting=1) == ["r1 refused: 404 adapter_unknown"]
    assert "any more" in book.effects[0].message


# -- waiting that costs less than a load


def full_holder(load, *, policy="weighted", **admission):
    """Two pods; the one that has `legal` is full, the other one is idle, and a load takes `load` seconds."""
    settings = Settings(
        picking=PickingSettings(policy=policy),
        admission=AdmissionSettings(**admission),
        load_times=LoadTimes(cpu=load, disk=load),
    )
    pods = [plain_pod(name, max_num_seqs=2, max_queue=2) for name in ("a", "b")]
    book = Playbook(pods=pods, adapters=["legal", "code"], settings=settings)
    book.arrive("legal", subset=("a",))
    book.start("r1")
    for _ in range(3):
        book.arrive("legal", subset=("a",))
    return book


@pytest.mark.parametrize("policy", ["weighted", "cost"])
def test_a_place_on_a_holder_that_comes_sooner_than_a_load_is_waited_for(policy):
    book = full_holder(20.0, policy=policy)
    assert book.arrive("legal") == ["r5 waits for a place until 30"]
    assert book.end("r1", status=200)[-1] == "r5 -> a (gpu_serving) else b"
    assert book.fleet.state.tally.loads == 1


def test_who_waits_behind_many_loads_elsewhere():
    book = full_holder(0.5)
    told = [book.arrive("legal")[-1] for _ in range(6)]
    waited = [line for line in told if "waits for a place" in line]
    assert 0 < len(waited) < 6, told
    assert any("-> b (disk)" in line for line in told), told


def test_who_has_waited_for_as_long_as_a_load_costs_waits_no_longer():
    book = full_holder(3.0)
    assert book.arrive("legal") == ["r5 waits for a place until 30"]
    book.wait(5.0)
    book.report("b")
    assert "r5 -> b (disk)" in [line.removesuffix(" else a") for line in told_of(book, "r5")]


def test_who_would_have_to_give_up_meanwhile_loads():
    book = full_holder(20.0, max_wait=0.0)
    assert book.arrive("legal") == ["r5 -> b (disk)"]


@pytest.mark.parametrize(("fields", "admission"), [({"priority": -1}, {}), ({}, {"max_queued": 0})])
def test_who_may_not_wait_goes_where_it_can(fields, admission):
    book = full_holder(20.0, **admission)
    assert book.arrive("legal", **fields) == ["r5 -> b (disk)"]


def test_a_holder_from_which_no_place_comes_is_not_waited_for_for_long():
    book = full_holder(20.0)
    assert book.arrive("legal") == ["r5 waits for a place until 30"]
    told = []
    for _ in range(12):
        book.wait(0.5)
        book.report("a", waiting=2, running=2)
        book.report("b")
        told += told_of(book, "r5")
    assert told[-1].startswith("r5 -> b (disk)")


def following(**admission):
    """One pod that loads `legal` for 5 s; the third request and what comes then must wait for it."""
    settings = Settings(admission=AdmissionSettings(**admission), load_times=LoadTimes(cpu=5.0, disk=5.0))
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)], adapters=["legal", "code"], settings=settings)
    told = [book.arrive("legal") for _ in range(3)]
    assert told[2] == ["r3 waits for a until 10"]
    return book


def test_followers_of_a_load_make_room_for_higher_priority():
    book = following(max_queued=1)
    assert book.arrive("code", priority=9) == ["r3 refused: 429 shed", "r4 waits for a place until 30"]
    assert book.arrive("code", priority=9) == ["r5 refused: 429 shed"]


def test_priorities_below_0_follow_no_load_that_they_would_have_to_wait_for():
    book = following()
    assert book.arrive("legal", priority=-1) == ["r4 refused: 429 shed"]
    assert "below 0" in book.effects[0].message


def test_nobody_waits_for_slots_that_do_not_exist():
    book = one_pod()
    book.report("a", max_loras=0)
    assert book.arrive("legal") == ["r1 refused: 429 slots_full"]
    book.report("a", max_loras=-3)
    assert book.fleet.state.loads[0].limits.max_loras == 0, "a figure below 0 says nothing"


def told_of(book, request_id):
    """All that was said of a request."""
    return [line for answer in book.answers for line in map(tell, answer) if line.startswith(request_id)]


# -- requests for the base model need no slot


def test_flows_that_wait_for_slots_do_not_use_up_the_tries_of_the_base_model():
    names = [f"cold-{number}" for number in range(MOST_TRIES + 4)]
    book = one_pod(seats=8, queue=1, slots=1, adapters=("hot", *names), patience=1000.0)
    for _ in range(9):
        book.arrive("hot")
    for name in names:
        assert book.arrive(name)[-1].endswith("waits for a place until 30")
    assert book.arrive("base", id="b")[-1] == "b waits for a place until 30"
    assert "b -> a (base)" in book.end("r1", status=200)


@pytest.mark.parametrize(
    ("ordering", "order"),
    [
        (Ordering.FCFS, ["q1", "q2", "q3", "q4"]),
        (Ordering.DEADLINE, ["q4", "q2", "q1", "q3"]),
        (Ordering.SLO, ["q3", "q2", "q1", "q4"]),
    ],
)
def test_who_comes_first_of_a_flow(ordering, order):
    book = one_pod(ordering=ordering)
    fill(book)
    for name, deadline, wanted in (("q1", None, None), ("q2", 20.0, 9.0), ("q3", None, 8.0), ("q4", 10.0, None)):
        queue(book, name, deadline=deadline, first_token_by=wanted)
    assert drained(book, 4) == order


def test_each_priority_has_its_own_bound():
    book = one_pod(bands=(Band(priority=1, max_queued=1), Band(max_queued=2)))
    fill(book)
    assert queue(book, "h1", "h2", priority=1) == ["h1 waits for a place until 30", "h2 refused: 429 shed"]
    said = next(effect.message for answer in book.answers for effect in answer if isinstance(effect, Reject))
    assert said == "1 requests of priority 1 wait already (admission.bands)"
    assert [line.split()[1] for line in queue(book, "q1", "q2", "q3")] == ["waits", "waits", "refused:"]
    assert drained(book, 1) == ["h1"]
    assert queue(book, "h3", priority=1) == ["h3 waits for a place until 30"], "who waits no longer does not count"


def test_followers_of_a_load_count_in_their_band():
    book = following(bands=(Band(max_queued=1),))
    assert book.arrive("legal", id="late") == ["late refused: 429 shed"]
    assert book.arrive("legal", id="higher", priority=3) == ["higher waits for a until 10"]
