"""Dispatch, hold or refuse: status table, followers of a load, last resorts."""

import pytest

from lorapick.core.picking.weighted import Weighted
from lorapick.model import events
from lorapick.model.adapters import Adapter, AliasTarget
from lorapick.model.adapters import Alias as AliasSpec
from lorapick.model.pods import SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.settings import AdmissionSettings, LoadTimes, PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def small(*, pods=2, adapters=("legal", "code"), seats=2, queue=2, **settings):
    """Pods whose batch and queue are short, so that few requests fill them."""
    made = [plain_pod(f"p{index}", max_num_seqs=seats, max_queue=queue) for index in range(pods)]
    return Playbook(pods=made, adapters=adapters, settings=Settings(**settings))


# -- ties, sessions, fallbacks


def test_ties_are_broken_by_seed_and_request_alone():
    pods = [f"p{index}" for index in range(4)]

    def winners(seed, order):
        book = Playbook(pods=pods, seed=seed)
        for request_id in order:
            book.arrive("base", id=request_id)
            book.end(request_id)
        return {request_id: book.explain(request_id).verdicts[0].pod for request_id in order}

    ids = [f"id-{index}" for index in range(200)]
    forward = winners(7, ids)
    assert forward == winners(7, [*reversed(ids)])
    assert forward != winners(8, ids)
    counts = [[*forward.values()].count(pod) for pod in pods]
    assert min(counts) > 25 and sum(counts) == 200


def test_fallbacks_are_the_next_best():
    book = Playbook(pods=["a", "b", "c", "d"], settings=Settings(picking=PickingSettings(fallbacks=3)))
    for pod, use in {"a": 0.9, "b": 0.1, "c": 0.5, "d": 0.3}.items():
        book.report(pod, gpu_utilization=use)
    assert book.arrive("base") == ["r1 -> b (base) else d, c, a"]
    assert [target.address for target in book.effects[0].fallbacks] == ["d:8000", "c:8000", "a:8000"]


def test_a_session_stays_among_equal_holders():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.use("legal", "a")
    book.use("legal", "b")
    book.arrive("legal", session="s", subset=("b",))
    book.start("r1")
    book.end("r1")
    book.report("a", gpu_utilization=0.1)
    book.report("b", gpu_utilization=0.9)
    assert book.arrive("legal", session="s") == ["r2 -> b (gpu_idle) else a"]
    assert book.verdict("r2", "a").reason is Reason.LOST_TIE
    assert book.fleet.state.journal.explain("r2").chosen_by == "session"
    book.end("r2")
    assert book.arrive("legal", session="another") == ["r3 -> a (gpu_idle) else b"]


def test_a_session_moves_when_its_pod_no_longer_holds_the_adapter():
    book = Playbook(pods=["a", plain_pod("b", max_loras=1)], adapters=["legal", "code"])
    book.use("legal", "a")
    book.arrive("legal", session="s", subset=("b",))
    book.start("r1")
    book.end("r1")
    book.use("code", "b")
    assert book.arrive("legal", session="s") == ["r2 -> a (gpu_idle) else b"]


def test_requests_of_one_adapter_cluster_by_themselves():
    """Natural clustering [R2.5]: no configuration says which pod serves what."""
    adapters = [f"adapter-{index}" for index in range(8)]
    book = Playbook(pods=["a", "b", "c", "d"], adapters=adapters)
    homes = {}
    for turn in range(160):
        adapter = adapters[(turn * 7) % 8]
        book.arrive(adapter, id=f"t{turn}")
        pod = book.effects[0].target.pod
        book.start(f"t{turn}")
        book.end(f"t{turn}")
        assert homes.setdefault(adapter, pod) == pod
    assert book.fleet.state.tally.loads == 8


# -- names


def test_an_alias_splits_by_weight_and_renames_the_model():
    to = (AliasTarget(adapter="v7", weight=90), AliasTarget(adapter="v8", weight=10))
    book = Playbook(pods=["a"], adapters=["v7", "v8"], settings=Settings(aliases=(AliasSpec(name="legal", to=to),)))
    got = []
    for index in range(500):
        book.arrive("legal", id=f"id-{index}")
        got.append(book.effects[0].model)
        book.start(f"id-{index}")
        book.end(f"id-{index}")
    assert {*got} == {"v7", "v8"}
    assert 30 <= got.count("v8") <= 75
    assert book.arrive("v7") == ["r1 -> a (gpu_idle)"]
    assert book.effects[0].model is None


def test_what_an_alias_computed_is_keyed_by_the_adapter_that_did():
    to = (AliasTarget(adapter="v7", weight=1), AliasTarget(adapter="v8", weight=1))
    book = Playbook(
        pods=["a", "b"], adapters=["v7", "v8"], settings=Settings(aliases=(AliasSpec(name="legal", to=to),))
    )
    seen = {}
    for index in range(8):
        book.arrive("legal", id=f"id-{index}", blocks=(1, 2))
        model = book.effects[0].model
        cached = {row.pod: row.terms.kv for row in book.fleet.state.journal.explain(f"id-{index}").verdicts}
        # Only pods that computed the prompt under this very adapter have it.
        assert cached == {pod: float(pod in seen.get(model, ())) for pod in ("a", "b")}
        seen.setdefault(model, set()).add(book.effects[0].target.pod)
        book.start(f"id-{index}")
        book.end(f"id-{index}")
    assert set(seen) == {"v7", "v8"}


# -- refusals


def test_status_of_an_unknown_model_and_near_names():
    book = Playbook(pods=["a"], adapters=["legal-assistant", "legal-extract"])
    book.report("a", registered=("code-reviewer",))
    assert book.arrive("legal-asistant") == ["r1 refused: 404 adapter_unknown"]
    assert book.effects[0].message.endswith("Did you mean legal-assistant, legal-extract?")
    assert book.effects[0].retry_after is None
    assert book.verdict("r1", "a").reason is Reason.ADAPTER_UNKNOWN


def test_before_anybody_knows_what_pods_serve_an_unknown_name_may_come_again():
    book = Playbook()
    assert book.arrive("legal") == ["r1 refused: 503 no_pod"]
    assert book.effects[0].message == "no pod is known"
    book.appear("a")
    assert book.arrive("legal") == ["r2 refused: 503 no_pod"]
    assert book.effects[0].retry_after == 1.0
    book.report("a", registered=("legal",))
    assert book.arrive("legal") == ["r3 -> a (disk)"]


def test_an_adapter_that_every_pod_dropped_is_unknown_again():
    book = Playbook(pods=["a", "b"])
    book.report("a", registered=("legal",))
    book.report("b", registered=("legal",))
    assert book.arrive("legal") == ["r1 -> a (disk) else b"]
    book.report("a", registered=())
    book.report("b", registered=())
    assert book.arrive("legal") == ["r2 refused: 404 adapter_unknown"]
    book.report("b", process_start=1.0)
    book.report("b", process_start=2.0)
    assert book.arrive("legal") == ["r3 refused: 503 no_pod"], "the restarted pod has not been asked yet"


AT_ONCE = Settings(admission=AdmissionSettings(max_wait=0.0))
"""Nobody waits for a place: who finds none is refused at once."""


def fill_slots(book):
    for pod in ("a", "b"):
        book.change(plain_pod(pod, max_loras=1))
        book.arrive("hot", id=f"hot-{pod}", subset=(pod,))
        book.start(f"hot-{pod}")


def load_everywhere(book):
    for pod, adapter in {"a": "hot", "b": "warm"}.items():
        book.arrive(adapter, id=adapter, subset=(pod,))


def use_up_probation(book):
    for pod in ("a", "b"):
        book.report(pod, registered=("legal", "hot", "stranger"))
    book.apply(events.AdapterRetired, adapter="legal")
    book.arrive("stranger", id="stranger")
    book.start("stranger")


REFUSALS = {
    "429 queue_full": lambda book: [book.report(pod, waiting=9) for pod in ("a", "b")],
    "429 slots_full": fill_slots,
    "429 load_budget": load_everywhere,
    "429 probation": use_up_probation,
    "429 pressure_soft": lambda book: [book.report(pod, memory_pressure=0.86) for pod in ("a", "b")],
    "429 pressure_hard": lambda book: [book.report(pod, memory_pressure=0.91) for pod in ("a", "b")],
    "503 pressure_critical": lambda book: [book.report(pod, memory_pressure=0.96) for pod in ("a", "b")],
    "503 no_pod": lambda book: [book.silent(pod, SilentWhy.REFUSED) for pod in ("a", "b")],
}


@pytest.mark.parametrize("told", REFUSALS)
def test_status_table(told):
    book = Playbook(pods=["a", "b"], adapters=["legal", "hot", "warm"], settings=AT_ONCE)
    REFUSALS[told](book)
    assert book.arrive("legal") == [f"r1 refused: {told}"]
    assert book.effects[0].retry_after == 1.0
    assert {verdict.reason for verdict in book.explain("r1").verdicts} != {None}


def test_the_reason_nearest_to_being_served_is_given():
    book = Playbook(pods=["a", "b", "c"], adapters=["legal"], settings=AT_ONCE)
    book.silent("a", SilentWhy.REFUSED)
    book.report("b", memory_pressure=0.96)
    book.report("c", waiting=9)
    assert book.arrive("legal") == ["r1 refused: 429 queue_full"]
    assert "1 circuit_open, 1 pressure_critical, 1 queue_full" in book.effects[0].message


def test_an_empty_subset_allows_nobody():
    book = Playbook(pods=["a"], adapters=["legal"])
    assert book.arrive("legal", subset=()) == ["r1 refused: 503 no_pod"]


def test_a_deadline_that_has_passed():
    book = Playbook(pods=["a"], adapters=["legal"])
    assert book.arrive("legal", deadline=0.0) == ["r1 refused: 503 deadline"]
    assert book.arrive("legal", deadline=0.1) == ["r2 -> a (disk)"]


# -- followers of a load [R3.3]


def test_followers_go_where_the_load_is_even_when_another_pod_scores_better():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.report("a", waiting=7, running=20, gpu_utilization=1.0)
    book.report("b", loaded=None)
    book.apply(events.KvStored, pod="b", adapter=None, blocks=(1,))
    assert book.arrive("legal", blocks=(1,)) == ["r2 -> a (loading) else b"]
    assert book.verdict("r2", "b").score > book.verdict("r2", "a").score
    assert book.verdict("r2", "b").reason is Reason.HELD_FOR_LOAD
    explained = book.fleet.state.journal.explain("r2")
    assert (explained.follows, explained.chosen_by) == ("a", "load")


def test_followers_of_a_full_pod_wait_and_leave_in_order():
    book = small()
    assert book.arrive("legal", subset=("p0",)) == ["r1 -> p0 (disk)"]
    assert [book.arrive("legal")[0] for _ in range(3)] == [f"r{n} -> p0 (loading) else p1" for n in (2, 3, 4)]
    assert book.queue("p0") == 2.0
    told = [book.arrive("legal")[0] for _ in range(3)]
    assert told == [f"r{n} waits for p0 until 1.4" for n in (5, 6, 7)]
    assert book.verdict("r5", "p1").reason is Reason.HELD_FOR_LOAD
    assert book.verdict("r5", "p0").reason is Reason.QUEUE_FULL
    assert book.start("r1") == ["note load_ended pod=p0 adapter=legal from=disk seconds=0"]
    assert book.end("r1") == ["r5 -> p0 (gpu_serving) else p1"]
    assert book.end("r2") == ["r6 -> p0 (gpu_serving) else p1"]
    assert book.arrive("code", subset=("p1",)) == ["r8 -> p1 (disk)"]
    assert book.end("r7", Outcome.ABANDONED) == []


def test_a_hundred_requests_for_a_cold_adapter_in_two_seconds_begin_one_load():
    """Also when scrapes report a full queue, before and (late) after the load has ended."""
    book = Playbook(pods=[f"p{index}" for index in range(8)], adapters=["cold", "warm"])
    for index in range(8):
        book.use("warm", f"p{index}")
    begun = book.fleet.state.tally.loads
    home, told, ended = None, [], 0
    for number in range(1, 101):
        book.now = number * 0.02
        told += book.arrive("cold")
        home = home if home is not None else book.effects[0].target.pod
        if number == 15:
            told += book.report(home, waiting=14, running=0, in_flight_adapters=(), since=book.now - 0.01)
            assert book.queue(home) == 14
        if number == 34:
            assert len(book.fleet.state.holds) == 19
            told += book.start("r1")
            assert len(book.fleet.state.holds) == 0
            told += book.report(home, waiting=15, running=0, in_flight_adapters=(), since=book.now - 0.01)
            assert book.queue(home) == 0
        if number > 50:
            ended += 1
            told += book.end(f"r{ended}")
    assert book.fleet.state.tally.loads == begun + 1
    served = [line for line in told if "->" in line]
    assert len(served) == 100 and all(f"-> {home} " in line for line in served)
    assert sum("waits" in line for line in told) == 19


def test_by_cost_they_begin_a_second_load_only_where_a_crowd_costs_more_than_that():
    settings = Settings(picking=PickingSettings(policy="cost"), load_times=LoadTimes(disk=3.0))
    book = Playbook(
        pods=[plain_pod(f"p{index}", max_queue=99) for index in range(8)], adapters=["cold"], settings=settings
    )
    told = []
    for number in range(1, 101):
        book.now = number * 0.02
        told += book.arrive("cold")
    assert book.fleet.state.tally.loads == 1
    assert {line.split(" -> ")[1].split()[0] for line in told} == {book.effects[0].target.pod}
    book.start("r1")
    assert " -> " in book.arrive("cold")[0]
    assert book.fleet.state.tally.loads == 2, "a hundred are there: 4 s of waiting, against 3 s of load"
    for number in range(1, 61):
        book.end(f"r{number}")
    book.end("r101")
    book.apply(events.ConfigChanged, settings=book.settings)
    loads = book.fleet.state.tally.loads
    book.arrive("cold")
    assert book.fleet.state.tally.loads == loads


def test_more_than_max_queued_are_shed():
    book = small(admission=AdmissionSettings(max_queued=1), seats=1, queue=1)
    book.arrive("legal", subset=("p0",))
    book.arrive("legal")
    assert book.arrive("legal") == ["r3 waits for p0 until 1.4"]
    assert book.arrive("legal", subset=("p0",)) == ["r4 refused: 429 shed"]
    assert "admission.max_queued" in book.effects[0].message
    assert book.arrive("legal") == ["r5 -> p1 (disk)"], "nobody is refused whom some pod would take"


def test_a_hold_that_runs_out_begins_a_second_load():
    book = small(seats=1, queue=1, load_times=LoadTimes(disk=0.7))
    book.arrive("legal", subset=("p0",))
    book.arrive("legal")
    assert book.arrive("legal") == ["r3 waits for p0 until 1.4"]
    assert book.wait(1.3) == ["note load_ended pod=p0 adapter=legal from=disk"]
    assert book.wait(0.2) == ["r3 -> p1 (disk)"]


def test_a_hold_ends_at_the_latest_after_max_wait_and_at_the_deadline():
    book = small(seats=1, queue=1, admission=AdmissionSettings(max_wait=0.5))
    book.arrive("legal", subset=("p0",))
    book.arrive("legal")
    assert book.arrive("legal") == ["r3 waits for p0 until 0.5"]
    assert book.arrive("legal", deadline=0.2) == ["r4 waits for p0 until 0.2"]
    assert book.wait(0.3) == ["r4 refused: 503 deadline"]
    assert book.wait(0.3) == ["r3 -> p1 (disk)"]


def test_requests_of_round_robin_follow_nobody():
    book = small(seats=1, queue=1, picking=PickingSettings(policy="round-robin"))
    told = [book.arrive("legal")[0] for _ in range(4)]
    assert told == [
        "r1 -> p0 (disk) else p1",
        "r2 -> p1 (disk) else p0",
        "r3 -> p0 (loading) else p1",
        "r4 -> p1 (loading)",
    ]
    assert book.arrive("legal") == ["r5 refused: 429 queue_full"]


def test_held_requests_are_decided_anew_when_the_pod_goes():
    book = small(pods=3, seats=1, queue=1)
    book.arrive("legal", subset=("p0",))
    book.arrive("legal")
    assert [book.arrive("legal")[0] for _ in range(2)] == ["r3 waits for p0 until 1.4", "r4 waits for p0 until 1.4"]
    told = book.gone("p0")
    assert len(told) == 2
    first, second = (line.split(" -> ")[1].split()[0] for line in told)
    assert first == second != "p0", "one of them loads, the other follows"


def test_held_requests_move_to_another_load_when_their_pod_drains():
    book = small(pods=2, seats=1, queue=1)
    book.arrive("legal", subset=("p0",))
    book.arrive("legal", subset=("p0",))
    book.arrive("legal", subset=("p1",), deadline=9.0)
    for _ in range(1):
        book.arrive("legal", subset=("p1",))
    assert book.arrive("legal") == ["r5 waits for p0 until 1.4"]
    assert book.arrive("legal") == ["r6 waits for p0 until 1.4"]
    assert book.drain("p0") == ["r5 waits for p1 until 1.4", "r6 waits for p1 until 1.4"]
    assert book.start("r3") == ["note load_ended pod=p1 adapter=legal from=disk seconds=0"]
    assert book.end("r3") == ["r5 -> p1 (gpu_serving)"]


def test_a_failed_load_frees_those_who_waited_for_it():
    book = small(seats=1, queue=1)
    book.arrive("legal", subset=("p0",))
    book.arrive("legal")
    book.arrive("legal")
    told = book.apply(events.LoadFailed, pod="p0", adapter="legal", by=events.By.CONTROLLER, why="no room")
    assert told == ["note load_failed pod=p0 adapter=legal why=no room", "r3 -> p1 (disk)"]


# -- last resorts


def test_old_reports_serve_when_there_are_no_others():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.wait(6.0)
    assert book.arrive("legal") == ["r1 -> a (disk) else b"]
    assert book.effects[0].pick.degraded
    assert book.explain("r1").degraded
    book.report("a")
    assert book.arrive("base") == ["r2 -> a (base)"]
    assert not book.effects[0].pick.degraded


def test_old_reports_do_not_serve_while_a_fresh_pod_is_only_full():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.wait(6.0)
    book.report("a", waiting=8)
    assert book.arrive("legal") == ["r1 waits for a place until 36"]
    assert book.report("a") == ["r1 -> a (disk)"]


def test_old_reports_serve_when_no_fresh_pod_fits():
    book = Playbook(pods=["a", "b"])
    book.report("b", registered=("legal",))
    book.wait(6.0)
    book.report("a", registered=("code",))
    assert book.arrive("legal") == ["r1 -> b (disk)"]
    assert book.effects[0].pick.degraded


class Broken(Weighted):
    """A policy with a mistake in it."""

    def score_rows(self, query, view, *, rows):
        raise KeyError("legal")


class NotANumber(Weighted):
    """A policy that divides nothing by nothing."""

    def score_rows(self, query, view, *, rows):
        return [float("nan") for _ in rows]


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (Broken, "KeyError: 'legal'"),
        (NotANumber, "ValueError: policy 'weighted' scored some pod NaN; a score is a number, higher is better"),
    ],
)
def test_a_policy_that_fails_costs_no_request_its_pod(policy, error):
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.fleet.state.policy = policy(PickingSettings())
    assert book.arrive("legal") == [f"note scoring_error policy=weighted error={error}", "r1 -> a (disk) else b"]
    pick = book.effects[1].pick
    assert (pick.policy, pick.degraded) == ("round-robin", True)
    assert book.explain("r1").verdicts[0].won
    assert book.fleet.state.tally.scoring_errors == 1


def test_a_pod_where_nothing_runs_takes_an_undeclared_adapter_only_when_it_said_so():
    book = Playbook(pods=["a", "b"], adapters=[Adapter(name="legal", declared=True)])
    book.report("a", registered=())
    assert book.arrive("legal") == ["r1 -> b (disk)"]
    assert book.verdict("r1", "a").reason is Reason.ADAPTER_UNREGISTERED


def test_a_follower_leaves_a_load_that_costs_more_than_a_second_one():
    book = Playbook(pods=["a", "b"], adapters=["legal"], settings=Settings(load_times=LoadTimes(cpu=0.1, disk=0.1)))
    book.arrive("legal", subset=("a",))
    book.report("a", waiting=7, running=60, gpu_utilization=1.0)
    book.report("b", loaded=None)
    book.apply(events.KvStored, pod="b", adapter=None, blocks=(1,))
    assert book.arrive("legal", blocks=(1,)) == ["r2 -> b (disk) else a"]


def test_of_two_loads_the_one_with_less_to_wait_for_is_followed():
    book = Playbook(pods=["a", "b", "c"], adapters=["legal"])
    book.arrive("legal", subset=("a",))
    book.arrive("legal", subset=("b",))
    book.report("a", waiting=6, running=60)
    book.report("b", loaded=None)
    assert book.arrive("legal")[0].startswith("r3 -> b (loading)")
