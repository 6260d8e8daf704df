"""Profiles as a policy: sums, clamping, both ways of picking, prefill, replays."""

import msgspec
import numpy as np
import pytest

from lorapick.core.picking.epp.policy import NAME, ProfilePolicy, nearest_policy
from lorapick.core.picking.filters import eligible, passing, veto
from lorapick.core.picking.pick import pick_by_columns, pick_by_loop
from lorapick.core.picking.policies import make_policy
from lorapick.core.picking.query import Query
from lorapick.core.picking.verdicts import oracle
from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings
from lorapick.model.pods import Role
from lorapick.model.profiles import Profiles
from lorapick.model.settings import PickingSettings
from lorapick.testing.playbook import plain_pod
from lorapick.testing.profiles import book_with, profile, scores, spec
from lorapick.wire.api import verdict_document


def policy_of(decode, prefill=None):
    return make_policy(PickingSettings(profiles=Profiles(decode=decode, prefill=prefill)))


def test_the_settings_make_it():
    policy = policy_of(profile("queue-scorer", spec("kv-cache-utilization-scorer", weight=2.0)))
    assert isinstance(policy, ProfilePolicy) and policy.name == NAME
    assert policy.weights() == {"queue-scorer": 1.0, "kv-cache-utilization-scorer": 2.0}
    assert policy.terms(Query("r", None), book_with(profile(), pods="a").fleet.state.columns, row=0) is None
    assert policy.reads == ("scraped",) and policy.needs == ()


def test_scorers_are_weighed_and_added_up():
    fleet = book_with(profile("queue-scorer", spec("kv-cache-utilization-scorer", weight=3.0)), pods="ab")
    fleet.report("a", waiting=1, kv_usage=0.5)
    assert scores(fleet) == {"a": 1.5, "b": 4.0}


def test_weights_may_be_negative():
    fleet = book_with(profile(spec("kv-cache-utilization-scorer", weight=-1.0)), pods="ab")
    fleet.report("a", kv_usage=0.5)
    assert scores(fleet) == {"a": -0.5, "b": -1.0}


def test_values_are_clamped():
    """A pinned adapter is worth more than 1 to lorapick."""
    policy = PickingSettings(profiles=Profiles(decode=profile("lorapick-residency-scorer")))
    fleet = book_with(profile("lorapick-residency-scorer"), pods="a", picking=policy)
    fleet.use("legal", "a")
    columns = fleet.fleet.state.columns
    columns.adapters["legal"][0] |= 8 | 6
    assert all(value <= 1.0 for value in make_policy(policy).score_rows(_query(columns), columns, rows=[0]))


def _query(columns):
    query = Query("r", "legal")
    query.codes = columns.adapters["legal"]
    return query


@pytest.mark.parametrize("picker", ["max-score-picker", "random-picker", "weighted-random-picker"])
@pytest.mark.parametrize("size", [1, 5, 60])
def test_both_ways_and_the_oracle_pick_the_same(picker, size):
    filters = [spec("utilization-detector", queue=3, kv=0.9, headroom=0.0), "decode-filter"]
    decode = profile(
        "queue-scorer", "kv-cache-utilization-scorer", "lora-affinity-scorer", filters=filters, picker=picker
    )
    names = [f"p{number:02d}" for number in range(size)]
    fleet = book_with(decode, pods=names)
    for number, name in enumerate(names):
        fleet.report(name, waiting=number * 7 % 5, kv_usage=number * 3 % 10 / 10, in_flight_adapters=("legal",))
    columns, policy = fleet.fleet.state.columns, fleet.fleet.state.policy
    for number in range(20):
        query = _query(columns)
        query.request_id = f"r{number}"
        draw = number / 20
        ways = [
            way(query, columns, now=0.0, draw=draw, policy=policy, fallbacks=2)
            for way in (pick_by_loop, pick_by_columns)
        ]
        assert ways[0] == ways[1]
        assert ways[0].row == oracle(query, columns, now=0.0, draw=draw, policy=policy)


def test_scores_of_rows_that_are_no_candidates_do_not_count():
    fleet = book_with(profile("queue-scorer"), pods="abc")
    policy, columns = fleet.fleet.state.policy, fleet.fleet.state.columns
    found = policy.scores(Query("r", None), columns, may=np.array([True, False, True]))
    assert found.tolist() == [1.0, -np.inf, 1.0]
    assert policy.score(Query("r", None), columns, row=1, rows=[0, 2]) == 1.0


def test_prefill_is_picked_by_its_own_profile_near_the_pod_that_decodes():
    def pod(name, role, host):
        labels = {"llm-d.ai/role": role.value, "kubernetes.io/hostname": host}
        return plain_pod(name, role=role, labels=labels, max_queue=100)

    pods = [pod("d1", Role.DECODE, "h1"), pod("d2", Role.DECODE, "h2")]
    pods += [pod("p1", Role.PREFILL, "h1"), pod("p2", Role.PREFILL, "h2"), pod("p3", Role.PREFILL, "h3")]
    near = spec("topology-affinity-scorer", places={})
    fleet = book_with(
        profile("queue-scorer", filters=["decode-filter"]),
        prefill=profile(near, filters=["prefill-filter"]),
        pods=pods,
        disaggregation=DisaggregationSettings(decide=Decide.TOKENS, choice=Choice.INDEPENDENT, uncached_tokens=100),
    )
    assert fleet.arrive("legal", prompt_tokens=1000, subset=("d2", "p1", "p2", "p3"))[0].startswith(
        "r1 -> d2 (disk) after p2"
    )
    assert fleet.arrive("legal", prompt_tokens=1000, subset=("d1", "p1", "p2", "p3"))[0].startswith(
        "r2 -> d1 (disk) after p1"
    )
    assert "after" not in fleet.arrive("legal", prompt_tokens=99)[0]
    only = spec("topology-affinity-filter", least="host", places={})
    filtered = book_with(
        profile("queue-scorer"),
        prefill=profile(filters=["prefill-filter", only]),
        pods=pods,
        disaggregation=DisaggregationSettings(decide=Decide.ALWAYS, choice=Choice.INDEPENDENT),
    )
    assert filtered.arrive("legal", subset=("d1", "p1", "p2"))[0].startswith("r1 -> d1 (disk) after p1")
    assert filtered.arrive("legal", subset=("d1", "p2"))[0].startswith("r2 -> d1 (disk) after p2"), (
        "better far than none"
    )


def test_what_is_held_back_by_a_full_queue_waits_and_what_is_filtered_does_not():
    labelled = plain_pod("a", max_queue=1, labels={"k": "x"})
    keeps = spec("by-label", label="k", values=("x",), without=False)
    settings = PickingSettings(profiles=Profiles(decode=profile("queue-scorer", filters=[keeps]), waits=True))
    fleet = book_with(profile(), pods=[labelled, "b"], picking=settings)
    fleet.report("a", waiting=1)
    assert fleet.arrive("legal")[0].startswith("r1 waits for a place")
    assert fleet.report("a", waiting=0) == ["r1 -> a (disk)"]


def test_no_queue_is_too_long_unless_requests_may_wait():
    fleet = book_with(profile("queue-scorer"), pods=[plain_pod(name, max_queue=1) for name in "ab"])
    for pod in "ab":
        fleet.report(pod, waiting=5)
    assert [fleet.arrive("legal")[0].split(" (")[0].split(" -> ")[0] for _ in range(3)] == ["r1", "r2", "r3"]
    columns, query = fleet.fleet.state.columns, _query(fleet.fleet.state.columns)
    assert passing(query, columns, now=0.0) == []
    query.ignore_full = True
    assert passing(query, columns, now=0.0) == eligible(query, columns, now=0.0).nonzero()[0].tolist() == [0, 1]
    assert [veto(query, columns, row=row, now=0.0) for row in (0, 1)] == [0, 0]
    query.codes = None
    assert passing(query, columns, now=0.0) == [0, 1]


def test_an_explanation_has_what_each_scorer_gave():
    fleet = book_with(profile("queue-scorer", spec("kv-cache-utilization-scorer", weight=3.0)), pods="ab")
    fleet.report("a", waiting=1, kv_usage=0.5)
    fleet.drain("b")
    fleet.arrive("legal")
    explanation = fleet.explain("r1")
    assert explanation.weights == {"queue-scorer": 1.0, "kv-cache-utilization-scorer": 3.0}
    assert fleet.verdict("r1", "a").scorers == {"queue-scorer": 1.0, "kv-cache-utilization-scorer": 0.5}
    assert fleet.verdict("r1", "b").scorers == {}
    document = verdict_document(fleet.verdict("r1", "a"), explanation.weights, now=0.0)
    assert document.contributions == {"queue-scorer": 1.0, "kv-cache-utilization-scorer": 1.5}


@pytest.mark.parametrize(
    ("scorers", "name"),
    [
        (("queue-scorer",), "gie-default"),
        (("queue-scorer", "lora-affinity-scorer"), "gie-lora"),
        (("lora-affinity-scorer", "lorapick-cost-scorer"), "weighted"),
    ],
)
def test_predictions_take_the_nearest_policy(scorers, name):
    assert nearest_policy(PickingSettings(profiles=Profiles(decode=profile(*scorers)))) == name
    assert nearest_policy(PickingSettings(policy="cost")) == "cost"


def test_a_header_chooses_the_profile():
    free, busy = profile("queue-scorer"), profile(spec("queue-scorer", weight=-1.0))
    named = (msgspec.structs.replace(free, name="free"), msgspec.structs.replace(busy, name="busy"))
    profiles = Profiles(decode=named[0], chosen_by="x-stage", named=named)
    fleet = book_with(free, pods="ab", picking=PickingSettings(profiles=profiles))
    fleet.report("a", waiting=1)
    assert scores(fleet) == scores(fleet, headers={"x-stage": " "}) == {"a": 0.0, "b": 1.0}
    assert scores(fleet, headers={"x-stage": "busy"}) == {"a": 0.0, "b": -1.0}
    assert scores(fleet, headers={"x-stage": "none"}) == {"a": None, "b": None}
