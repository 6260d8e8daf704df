"""Step times by kernel, computed by hand: a = 10, b = 1, c = 2, d = 0.5 ms."""

import pytest
from pod_helpers import MS, ask, config, pod, serve, warm

from lorapick.pod.batch import Job
from lorapick.pod.engine import PodEngine
from lorapick.pod.kernels import batch_and_timer
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.values import AdapterSpec, Kernel, PodConfig, RequestFinished, StepCosts

COSTS = StepCosts(a=10 * MS, b=1 * MS, c=2 * MS, d=0.5 * MS, rank_slope=0.25)


def steps(kernel, *, slots=4, costs=COSTS):
    """Step times as requests of adapters a (rank 16), b (8), a, the base model and c (64) join one after another."""
    batch, timer = batch_and_timer(config(kernel=kernel, slots=slots, host=slots, step=costs))
    ranks = {"a": 16, "b": 8, "c": 64}
    copies = {name: AdapterCopy(AdapterSpec(name=name, rank=rank), 0) for name, rank in ranks.items()}
    jobs = []
    for index, name in enumerate(["a", "b", "a", None, "c"]):
        jobs.append(Job(ask(f"r{index}", name, output=9), copies.get(name), ()))
        batch.join(jobs[-1])
        yield timer.seconds() / MS
    batch.leave(jobs[-1])
    yield timer.seconds() / MS
    assert timer.merged_seconds() == pytest.approx(14 * MS)


def test_the_defaults_are_those_of_the_refit():
    batch, timer = batch_and_timer(PodConfig())
    batch.join(Job(ask("r"), None, ()))
    assert timer.seconds() == pytest.approx(13.892 * MS)


def test_distinct_counts_adapters_whatever_their_rank():
    expected = [13.5, 10 + 2 + 4 + 2, 10 + 3 + 4 + 3, 10 + 4 + 4 + 4, 10 + 5 + 6 + 7.5, 22]
    assert list(steps(Kernel.DISTINCT)) == pytest.approx(expected)


def test_padded_grows_with_the_highest_rank_in_the_batch():
    # rank 64 is three times 16 above 16: c is 1.75 times as large, until the request of that rank has left
    expected = [13.5, 18, 20, 22, 10 + 5 + 6 * 1.75 + 7.5, 22]
    assert list(steps(Kernel.PADDED)) == pytest.approx(expected)


def test_padded_is_cheaper_below_the_reference_rank():
    batch, timer = batch_and_timer(config(kernel=Kernel.PADDED, step=COSTS))
    batch.join(Job(ask("r"), AdapterCopy(AdapterSpec(name="b", rank=8), 0), ()))
    assert timer.seconds() == pytest.approx((10 + 1 + 2 * 0.875 + 0.5) * MS)


def test_the_default_slope_is_that_between_the_refits_of_ranks_16_and_32():
    assert StepCosts().rank_slope == pytest.approx(0.520 / 0.403 - 1, abs=1e-3)


def test_segmented_adds_up_ranks_of_adapters_and_of_requests():
    # c/16 by distinct adapters' ranks, d/16 by requests' ranks
    expected = [
        10 + 1 + 2 + 0.5,
        10 + 2 + 3 + 0.75,
        10 + 3 + 3 + 1.25,
        10 + 4 + 3 + 1.25,
        10 + 5 + 11 + 3.25,
        10 + 4 + 3 + 1.25,
    ]
    assert list(steps(Kernel.SEGMENTED)) == pytest.approx(expected)


@pytest.mark.parametrize("kernel", Kernel)
def test_configured_slots_cost_in_every_step(kernel):
    costs = StepCosts(a=10 * MS, b=1 * MS, c=2 * MS, d=0.5 * MS, slot=0.25 * MS)
    first = next(steps(kernel, slots=20, costs=costs))
    assert first == pytest.approx(13.5 + 5)


def test_passing_over_waiting_requests_takes_time_in_every_step():
    engine = pod(slots=1, step=StepCosts(a=10 * MS, b=0, c=0, d=0, scan=1 * MS))
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=4), now)
    engine.submit(ask("b1", "b"), now + 1 * MS)
    engine.submit(ask("b2", "b"), now + 12 * MS)
    # steps of 10, then 11 with one request passed over, then twice 12
    events = engine.advance(now + 50 * MS)
    assert [event.t for event in events if isinstance(event, RequestFinished)] == pytest.approx([now + 45 * MS])


def test_nobody_is_passed_over_while_the_first_in_line_lacks_a_seat():
    engine = pod(slots=1, seqs=1, step=StepCosts(a=10 * MS, b=0, c=0, d=0, scan=1 * MS))
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=4), now)
    engine.submit(ask("a2", "a"), now + 1 * MS)
    engine.submit(ask("b1", "b"), now + 1 * MS)
    events = engine.advance(now + 40 * MS)
    assert [event.t for event in events if isinstance(event, RequestFinished)] == [pytest.approx(now + 40 * MS)]


def test_a_pod_runs_with_any_kernel():
    times = {}
    for kernel in Kernel:
        engine = PodEngine(config(kernel=kernel, step=COSTS), [AdapterSpec(name="a", rank=32)], now=0.0)
        now = warm(engine, "a")
        times[kernel.value] = (serve(engine, ask("r", "a"), now) - now) / MS
    assert times == pytest.approx({"distinct": 13.5, "padded": 14, "segmented": 10 + 1 + 4 + 1})
