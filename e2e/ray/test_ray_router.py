"""The router class on a local Ray cluster, beside Ray's own: `make test-ray`.

Replicas load a model in 0.3 s and answer in 0.03 s; forty models, Zipf 1.0, four per replica.
"""

import asyncio
import statistics
import time

import pytest
from ray import serve
from ray_kit import arrivals, cluster, deploy, play

REPEATS = 3
REQUESTS = 800
SETTLED = 0.5
"""Seconds after which the router has heard of all that has ended."""


@pytest.fixture(scope="module", autouse=True)
def ray_cluster():
    with cluster():
        yield


@pytest.fixture
def ours():
    """Eight replicas behind our router."""
    yield deploy(ours=True)
    serve.delete("ours")


def ask(handle, model, count):
    async def all_of_them():
        asked = [handle.options(multiplexed_model_id=model).remote() for _ in range(count)]
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_fewer_loads_and_no_worse_latency_than_rays_own_router():
    runs = {False: [], True: []}
    for repeat in range(REPEATS):
        for whose in (False, True) if repeat % 2 == 0 else (True, False):
            handle = deploy(ours=whose)
            runs[whose].append(asyncio.run(play(handle, arrivals(repeat + 1, count=REQUESTS))))
            serve.delete("ours" if whose else "rays")
    for whose, found in runs.items():
        shown = [(run.loads, *(round(1e3 * run.percentile(share)) for share in (0.5, 0.95, 0.99))) for run in found]
        print("\n" + ("ours" if whose else "Ray's"), "(loads, P50, P95, P99 in ms)", shown)
    assert all(run.failed == 0 for found in runs.values() for run in found)
    loads = {whose: [run.loads for run in found] for whose, found in runs.items()}
    p95 = {whose: [run.percentile(0.95) for run in found] for whose, found in runs.items()}
    assert sum(loads[True]) < sum(loads[False])
    assert statistics.median(p95[True]) <= statistics.median(p95[False])


def test_a_stampede_for_a_cold_model_is_one_load(ours):
    answers = ask(ours, "wanted-by-all", 12)
    assert {replica for replica, _ in answers} == {answers[0][0]}
    assert answers[0][1], "the first one waited for the load"
    time.sleep(SETTLED)  # Ray tells routers that requests have ended after it has told who asked
    # Asked for the model, the router goes to the replica that has it.
    assert ask(ours.options(method_name="count"), "wanted-by-all", 1) == [1]


def test_more_requests_than_a_replica_takes_go_elsewhere(ours):
    answers = ask(ours, "wanted-by-many-more", 60)
    assert not [each for each in answers if isinstance(each, Exception)]
    assert len({replica for replica, _ in answers}) > 1


def test_a_replica_dies_and_its_models_are_loaded_elsewhere(ours):
    (before, _), *_ = ask(ours, "model-of-the-dead", 1)
    ask(ours.options(method_name="die"), "model-of-the-dead", 1)
    answers = ask(ours, "model-of-the-dead", 4)
    served = [each for each in answers if not isinstance(each, Exception)]
    assert served and {replica for replica, _ in served} != {before}


def test_replicas_that_come_take_their_share():
    handle = deploy(ours=True, replicas=4)
    first = asyncio.run(play(handle, arrivals(7, count=200)))
    handle = deploy(ours=True, replicas=8)
    answers = [ask(handle, f"new-{number}", 1)[0] for number in range(24)]
    serve.delete("ours")
    assert first.failed == 0
    assert len({replica for replica, _ in answers}) >= 6, "of the eight"
