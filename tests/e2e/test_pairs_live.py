"""Pairs on real parts: Envoy, the picker, six emulated pods that prefill and six that decode, thirty adapters.

Plays of `bench.disagg_live` with fewer requests, twelve of them in flight at any time, so that nothing depends on how
fast the machine is. The same requests in the same order go to pods that do both, to pairs chosen jointly (twice, pods
that decode being killed the second time), and to pairs chosen independently. A fifth run is short of slots: 12 on the
side that decodes, 18 adapters and 14 requests in flight, so that whoever loads there throws somebody out.
"""

import asyncio

import pytest
from bench.disagg_live import Sizes, play, table

pytestmark = [pytest.mark.e2e, pytest.mark.twin, pytest.mark.timeout(300)]
SIZES = Sizes(requests=90, at_once=12, each_first=True, kills=4)
SHORT_OF_SLOTS = Sizes(requests=150, at_once=14, pods=3, adapters=18, slots=4, words=8000, tokens=24, skew=0.5)
TRIES = 3
MOST_SPLIT = 0.8
"""Share of requests: nobody waits for a pod that prefills, so a few are not when all of these are busy."""
MOST_LOADS = 2.2
"""Times those of pods that do both: each adapter is needed on either side."""
MOST_COLD = 6
"""Requests of 90 whose adapter was on its way when they had their KV: where a load outlasts the prefill."""


def undisturbed(names, sizes=SIZES):
    """Of a stack whose picker ran through: a machine that stands still for long has it started anew by its watchdog."""
    for _ in range(TRIES):
        found = asyncio.run(play(*names, sizes=sizes))
        if not any(outcome.restarted for outcome in found):
            return found
    pytest.fail(f"the picker was started anew in each of {TRIES} plays of {names}")


@pytest.fixture(scope="module")
def played():
    """What came of each run, by name."""
    stacks = [["pods that do both"], ["pairs, jointly", "pairs, pods killed"], ["pairs, independently"]]
    found = [outcome for names in stacks for outcome in undisturbed(names)]
    print("", *table(found), sep="\n")
    return {outcome.name: outcome for outcome in found}


def test_every_request_is_accounted_for(played):
    for outcome in played.values():
        assert outcome.answered + outcome.lost == SIZES.requests, outcome.name
        assert (outcome.arrivals, outcome.left) == (SIZES.requests, SIZES.requests), outcome.name


def test_nothing_is_decoded_where_it_must_not_be(played):
    for outcome in played.values():
        assert outcome.foreign == 0, outcome.name
        # Of a pod that died, the one that prefilled for it is a fallback: before pods that lack the adapter.
        assert outcome.not_decoding == 0 or outcome.kills, outcome.name


def test_pairs_find_their_adapter_there(played):
    pairs = played["pairs, jointly"]
    assert (pairs.lost, pairs.local, pairs.late, pairs.overdue) == (0, 0, 0, 0)
    assert pairs.split >= MOST_SPLIT * SIZES.requests
    # By the word of the pods.
    assert pairs.cold <= MOST_COLD and pairs.cold < played["pairs, independently"].cold / 2
    assert (pairs.evicted, pairs.unreserved) == (0, 0)


def test_pairs_load_each_adapter_once_on_either_side(played):
    alone, pairs = played["pods that do both"], played["pairs, jointly"]
    assert alone.split == 0 and alone.lost == 0
    assert pairs.loads_per_request <= MOST_LOADS * alone.loads_per_request, (pairs.loads, alone.loads)


def test_pods_chosen_independently_get_adapters_late(played):
    pairs = played["pairs, independently"]
    assert pairs.lost == 0 and pairs.split >= MOST_SPLIT * SIZES.requests
    # The first request of each adapter at least finds it nowhere on the side that decodes.
    assert pairs.late > played["pairs, jointly"].late + 5
    assert pairs.cold >= pairs.late


def test_pods_that_die_lose_what_is_in_flight_there_at_most(played):
    pairs = played["pairs, pods killed"]
    assert pairs.kills and sum(kill.there for kill in pairs.kills) > 0
    assert pairs.elsewhere == 0, (pairs.kills, pairs.losses)
    assert pairs.lost <= sum(kill.there for kill in pairs.kills)
    # Whose answer had not begun gets it from another pod.
    assert pairs.lost == pairs.begun, pairs.losses


def test_after_the_kills_pairs_are_as_they_were(played):
    last = played["pairs, pods killed"].answers[-15:]
    assert sum(answer.split for answer in last) >= MOST_SPLIT * len(last)
    assert sum(answer.cold for answer in last) <= 2


def test_where_slots_are_short_no_adapter_leaves_before_its_request_runs():
    (pairs,) = undisturbed(["pairs, jointly"], SHORT_OF_SLOTS)
    print("", *table([pairs]), sep="\n")
    assert (pairs.lost, pairs.foreign, pairs.overdue) == (0, 0, 0)
    assert pairs.split >= MOST_SPLIT * SHORT_OF_SLOTS.requests
    assert pairs.loads > 2 * SHORT_OF_SLOTS.adapters, "many were thrown out"
    # By the word of the picker, and of the pods. Without reservations it is ten and more.
    assert (pairs.unreserved, pairs.evicted) == (0, 0)
