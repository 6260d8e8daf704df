"""What the pod does from one change to the next, computed by hand.

Steps take 10 ms; a first load (from disk, into a free slot) 13 + 20 + 75 = 108 ms, one that frees a slot 5 ms more, one
from host memory 10 ms less.
"""

import pytest
from pod_helpers import MS, ask, config, pod, rest, serve, told, warm

from lorapick.model.tiers import Tier
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import (
    AdapterEvicted,
    AdapterSpec,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    StepCosts,
    SwapEnded,
    SwapMode,
    SwapStarted,
)


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


# ---- batching ----


def test_a_request_alone_has_its_first_token_after_prefill_and_one_step():
    engine = pod(prefill_per_token=1 * MS)
    engine.submit(ask("r", prompt=30, output=3), 1.0)
    assert told(rest(engine)) == [
        (1000, "RequestStarted", "r"),
        (1040, "FirstToken", "r"),
        (1060, "RequestFinished", "r"),
    ]


def test_a_request_that_arrives_in_a_step_joins_at_its_end_and_its_prefill_holds_up_the_others():
    engine = pod(prefill_per_token=1 * MS)
    engine.submit(ask("r", prompt=10, output=4), 0.0)
    engine.submit(ask("s", prompt=50, output=2), 25 * MS)  # r: first token at 20, next step ends at 30
    assert told(rest(engine)) == [
        (0, "RequestStarted", "r"),
        (20, "FirstToken", "r"),
        (30, "RequestStarted", "s"),
        (90, "FirstToken", "s"),  # 50 ms of prefill, one step: r's third token too
        (100, "RequestFinished", "r"),
        (100, "RequestFinished", "s"),
    ]


def test_step_time_grows_with_requests_and_adapters():
    engine = PodEngine(config(step=StepCosts(a=10 * MS, b=1 * MS, c=2 * MS, d=0.5 * MS)), now=0.0)
    engine.register(AdapterSpec(name="a"))
    engine.submit(ask("warm", "a"), 0.0)
    now = rest(engine)[-1].t
    engine.submit(ask("r", "a", output=2), now)
    engine.submit(ask("s", output=9), now)
    # r alone: 10 + 1 + 2 + 0.5; then two requests, one adapter: 10 + 2 + 2 + 1; then s alone, base model: 11
    starts = [round((event.t - now) / MS, 3) for event in rest(engine) if not isinstance(event, RequestStarted)]
    assert starts == [13.5, 13.5 + 15, 13.5 + 15, 13.5 + 15 + 8 * 11]


def test_no_more_requests_run_than_there_are_seats():
    engine = pod(seqs=2)
    for index in range(4):
        engine.submit(ask(f"r{index}", output=2), 0.0)
    stats = engine.stats(15 * MS)
    assert (stats.running, stats.waiting, stats.deferred) == (2, 2, 0)
    assert [event.t for event in of(RequestFinished, rest(engine))] == pytest.approx([0.02, 0.03, 0.04, 0.05])


def test_prompts_that_exceed_the_tokens_of_a_step_put_the_next_ones_off():
    engine = pod(prefill_per_token=0.1 * MS, max_batched_tokens=100)
    for index, prompt in enumerate([60, 250, 10, 10]):
        engine.submit(ask(f"r{index}", prompt=prompt, output=9), 0.0)
    starts = [(round(event.t / MS, 3), event.request_id) for event in of(RequestStarted, rest(engine))]
    # r0 has begun alone at 0, its step takes 16. 99 are left, r1 takes 250 (its step: 35), which leaves the next step
    # 98 - 151 and the one after that 98 - 53.
    assert starts == [(0, "r0"), (16, "r1"), (16 + 35 + 10, "r2"), (16 + 35 + 10, "r3")]


def test_an_aborted_request_keeps_its_place_until_the_step_ends_and_gets_no_more_tokens():
    engine = pod(seqs=1)
    engine.submit(ask("r", output=100), 0.0)
    engine.submit(ask("s"), 0.0)
    engine.abort("r", 25 * MS)
    stats = engine.stats(26 * MS)
    assert (stats.running, stats.output_tokens) == (1, 2)
    assert told(rest(engine))[2:] == [
        (30, "RequestStarted", "s"),
        (40, "FirstToken", "s"),
        (40, "RequestFinished", "s"),
    ]
    assert engine.stats(1.0).output_tokens == 3
    engine.abort("r", 1.0)
    engine.abort("nobody", 1.0)


def test_an_aborted_request_leaves_the_queue_at_once():
    engine = pod(seqs=1)
    engine.submit(ask("r", output=3), 0.0)
    engine.submit(ask("s"), 0.0)
    engine.abort("s", 1 * MS)
    assert engine.stats(1 * MS).waiting == 0
    assert [event.request_id for event in of(RequestFinished, rest(engine))] == ["r"]


# ---- inline ----


def test_inline_a_load_holds_up_everybody():
    engine = pod()
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=5), now)
    engine.submit(ask("s", "b", output=2), now + 3 * MS)
    start = round(now / MS)
    assert told(rest(engine)) == [
        (start, "RequestStarted", "r"),
        (start + 10, "FirstToken", "r"),
        (start + 10, "SwapStarted", "b"),
        (start + 118, "SwapEnded", "b"),
        (start + 118, "RequestStarted", "s"),
        (start + 128, "FirstToken", "s"),
        (start + 138, "RequestFinished", "s"),
        (start + 158, "RequestFinished", "r"),
    ]


def test_inline_adapters_beyond_the_slots_are_passed_over():
    engine = pod(slots=1)
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=10), now)
    engine.submit(ask("b1", "b"), now + 1 * MS)
    engine.submit(ask("a2", "a"), now + 2 * MS)
    engine.submit(ask("base"), now + 2 * MS)
    assert (engine.stats(now + 5 * MS).waiting, engine.stats(now + 5 * MS).deferred) == (3, 1)
    assert engine.stats(now + 15 * MS).running == 3
    finished = [event.request_id for event in of(RequestFinished, rest(engine))]
    assert finished == ["a2", "base", "r", "b1"]


def test_inline_the_front_loads_before_the_prompts_and_all_that_joined_start_together():
    engine = pod(slots=3, seqs=8)
    now = warm(engine, "a")
    engine.submit(ask("r", "a"), now)
    for name, adapter in [("b1", "b"), ("b2", "b"), ("c1", "c"), ("a1", "a")]:
        engine.submit(ask(name, adapter), now + 1 * MS)
    events = rest(engine)
    swaps = of(SwapStarted, events)
    assert [(swap.adapter, swap.waited) for swap in swaps] == [("b", True), ("c", True)]
    started = {event.request_id: event for event in of(RequestStarted, events)}
    together = {round((started[name].t - now) / MS, 3) for name in ("b1", "b2", "c1", "a1")}
    assert together == {10 + 2 * 108}
    assert {name: event.hit for name, event in started.items()} == {
        "r": True,
        "b1": False,
        "b2": False,
        "c1": False,
        "a1": True,
    }
    stats = engine.stats(now + 10)
    assert (stats.loads, stats.swaps, stats.hits, stats.misses) == (3, 3, 2, 4)  # with the one that warmed


# ---- drain ----


def test_drain_keeps_new_requests_out_finishes_the_batch_loads_and_serves():
    engine = pod(SwapMode.DRAIN, slots=1)
    now = warm(engine, "a")
    start = round(now / MS)
    engine.submit(ask("r", "a", output=5), now)
    engine.submit(ask("s", "b", output=2), now + 3 * MS)
    engine.submit(ask("t", "a"), now + 4 * MS)
    events = rest(engine)
    assert told(events) == [
        (start, "RequestStarted", "r"),
        (start + 10, "FirstToken", "r"),
        (start + 50, "RequestFinished", "r"),
        (start + 50, "SwapStarted", "b"),
        (start + 50, "AdapterEvicted", "a"),
        (start + 163, "SwapEnded", "b"),  # 5 + 13 + 20 + 75
        (start + 163, "RequestStarted", "s"),
        (start + 173, "FirstToken", "s"),
        (start + 183, "RequestFinished", "s"),
        (start + 183, "SwapStarted", "a"),
        (start + 183, "AdapterEvicted", "b"),
        (start + 286, "SwapEnded", "a"),  # 5 + 3 + 20 + 75: a is in host memory
        (start + 286, "RequestStarted", "t"),
        (start + 296, "FirstToken", "t"),
        (start + 296, "RequestFinished", "t"),
    ]
    # The first drain began at the end of the step in which s came, the second when s joined.
    assert [swap.drain for swap in of(SwapEnded, events)] == pytest.approx([40 * MS, 20 * MS])


def test_drain_time_is_the_room_that_the_batch_leaves_empty():
    engine = pod(SwapMode.DRAIN, slots=1)
    now = warm(engine, "a")
    before = engine.stats(now).time
    engine.submit(ask("r", "a", output=3), now)
    engine.submit(ask("s", "a", output=6), now)  # joins at 10, ends at 70
    engine.submit(ask("t", "b"), now + 12 * MS)  # the drain begins at 20 with two; r ends at 30
    events = rest(engine)
    (swap,) = of(SwapEnded, events)
    assert swap.drain == pytest.approx(50 * MS)
    time = engine.stats(events[-1].t).time
    assert time.drain - before.drain == pytest.approx(0.5 * 40 * MS)
    assert time.decode - before.decode == pytest.approx((20 + 10 + 0.5 * 40 + 10) * MS)


def test_one_drained_operation_loads_what_waits_up_to_the_slots_in_queue_order():
    engine = pod(SwapMode.DRAIN, slots=2)
    now = warm(engine, "a", "b")
    engine.submit(ask("r", "a", output=2), now)
    for index, adapter in enumerate(["c", "b", "d"]):  # b stays: it is among the first two that are wanted
        engine.submit(ask(f"s{index}", adapter), now + 1 * MS)
    events = rest(engine)
    assert [event.adapter for event in of(AdapterEvicted, events)] == ["a", "c"]
    assert [(event.adapter, event.drain) for event in of(SwapEnded, events)] == [
        ("c", pytest.approx(10 * MS)),
        ("d", pytest.approx(10 * MS)),
    ]
    assert [event.request_id for event in of(RequestFinished, events)] == ["r", "s0", "s1", "s2"]


def test_a_drain_ends_when_its_cause_goes_away():
    engine = pod(SwapMode.DRAIN, slots=1)
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=10), now)
    engine.submit(ask("s", "b"), now)
    engine.submit(ask("t", "a"), now)
    engine.abort("s", now + 25 * MS)
    events = rest(engine)
    assert not of(SwapEnded, events)
    assert of(RequestStarted, events)[1].t == pytest.approx(now + 30 * MS)


# ---- failures ----


def test_a_failing_load_fails_those_who_wait_for_it_and_frees_the_slot():
    draws = iter([0.9, 0.1, 0.9])
    engine = pod(slots=2, load_failure_share=0.5, draw=lambda: next(draws))
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=4), now)
    engine.submit(ask("b1", "b"), now)
    engine.submit(ask("b2", "b"), now + 12 * MS)  # while b is on its way
    events = rest(engine)
    assert [(event.request_id, round((event.t - now) / MS)) for event in of(RequestFailed, events)] == [
        ("b1", 10 + 13),  # at the end of the transfer
        ("b2", 10 + 13),
    ]
    assert [event.request_id for event in of(RequestFinished, events)] == ["r"]
    stats = engine.stats(events[-1].t)
    assert (stats.loads, stats.load_failures, stats.swaps) == (1, 1, 1)
    assert (stats.on_gpu, stats.on_cpu) == (("a",), ("a",))
    assert serve(engine, ask("b3", "b"), events[-1].t) == pytest.approx(events[-1].t + 118 * MS)


def test_a_failing_load_after_a_drain_leaves_the_rest_of_the_queue():
    draws = iter([0.9, 0.1, 0.9])
    engine = pod(SwapMode.DRAIN, slots=2, load_failure_share=0.5, draw=lambda: next(draws))
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=2), now)
    engine.submit(ask("s", "b"), now)
    engine.submit(ask("t", "c"), now)
    events = rest(engine)
    assert [event.request_id for event in of(RequestFailed, events)] == ["s"]
    assert [event.request_id for event in of(RequestFinished, events)] == ["r", "t"]


def test_a_client_that_left_during_a_load_that_fails_is_not_told():
    engine = pod(load_failure_share=1.0, draw=lambda: 0.0)
    engine.submit(ask("r", "a"), 0.0)
    engine.submit(ask("s", "a"), 1 * MS)
    engine.abort("r", 5 * MS)
    assert [event.request_id for event in of(RequestFailed, rest(engine))] == ["s"]
    engine.check()
    assert engine.stats(1.0).running == 0


def test_a_client_that_left_during_the_load_leaves_after_one_step():
    engine = pod()
    engine.submit(ask("r", "a", output=50), 0.0)
    engine.abort("r", 5 * MS)
    assert told(rest(engine)) == [(0, "SwapStarted", "a"), (108, "SwapEnded", "a")]
    stats = engine.stats(1.0)
    assert (stats.output_tokens, stats.prompt_tokens, stats.hits + stats.misses) == (0, 0, 0)
    assert stats.time.decode == pytest.approx(10 * MS)


# ---- KV memory ----


def test_when_memory_ends_the_youngest_is_preempted_and_computed_again():
    # Four blocks of 16. Both need a third block when 17 of their tokens exist.
    engine = pod(kv_blocks=4, prefill_per_token=1 * MS)
    engine.submit(ask("old", prompt=16, output=33), 0.0)  # first token at 26
    engine.submit(ask("young", prompt=16, output=33), 0.0)  # joins at 26, first token at 52
    # old has 2 tokens at 52 and 17 at 202; young then has 16.
    assert engine.stats(201 * MS).kv_usage == 1.0
    assert (engine.stats(202 * MS).running, engine.stats(202 * MS).waiting) == (1, 1)
    assert engine.tokens_out("young", 202 * MS) == 16
    assert engine.next_token_at("young", 202 * MS) is None
    events = rest(engine)
    assert told(events) == [
        (0, "RequestStarted", "old"),
        (26, "FirstToken", "old"),
        (26, "RequestStarted", "young"),
        (52, "FirstToken", "young"),
        (362, "RequestFinished", "old"),  # 16 more steps
        (362 + 32 + 17 * 10, "RequestFinished", "young"),  # prompt and its 16 tokens again, then the 17 missing
    ]
    stats = engine.stats(1.0)
    assert (stats.preemptions, stats.output_tokens, stats.prompt_tokens, stats.queried_tokens) == (1, 66, 32, 32)


def test_a_request_that_memory_does_not_hold_waits_and_nobody_overtakes_it():
    engine = pod(kv_blocks=4)
    engine.submit(ask("r", prompt=32, output=3), 0.0)
    engine.submit(ask("large", prompt=48, output=1), 1 * MS)
    engine.submit(ask("small", prompt=16, output=1), 2 * MS)
    assert (engine.stats(15 * MS).running, engine.stats(15 * MS).waiting) == (1, 2)
    assert [event.request_id for event in of(RequestStarted, rest(engine))] == ["r", "large", "small"]


# ---- LRU ----


def test_the_least_recently_used_adapter_gives_up_its_slot():
    engine = pod(slots=2, host=4)
    now = serve(engine, ask("again", "a"), warm(engine, "a", "b"))
    engine.submit(ask("r", "c"), now)
    assert [(event.adapter, event.tier) for event in of(AdapterEvicted, rest(engine))] == [("b", Tier.CPU)]
    assert engine.residency() == {
        "a": Tier.GPU_IDLE,
        "b": Tier.CPU,
        "c": Tier.GPU_IDLE,
        "d": Tier.DISK,
        "e": Tier.DISK,
        "f": Tier.DISK,
    }


def test_an_adapter_in_use_keeps_its_slot_even_as_the_least_recently_used():
    engine = pod(slots=2)
    now = warm(engine, "a", "b")
    engine.submit(ask("long", "a", output=100), now)
    engine.submit(ask("b2", "b"), now + 1 * MS)
    engine.advance(now + 50 * MS)
    assert engine.stats(now + 50 * MS).on_gpu == ("a", "b")
    engine.submit(ask("r", "c"), now + 55 * MS)
    assert [event.adapter for event in of(AdapterEvicted, rest(engine))] == ["b"]


def test_host_memory_is_an_lru_of_its_own_and_holds_what_the_gpu_holds():
    engine = pod(slots=1, host=2)
    now = warm(engine, "a", "b")
    assert engine.stats(now).on_cpu == ("a", "b")
    engine.submit(ask("r", "c"), now)
    evicted = of(AdapterEvicted, rest(engine))
    assert [(event.adapter, event.tier) for event in evicted] == [("b", Tier.CPU), ("a", Tier.DISK)]
    assert [engine.residency()[name] for name in "abc"] == [Tier.DISK, Tier.CPU, Tier.GPU_IDLE]


def test_without_room_beside_the_slots_an_adapter_falls_to_disk():
    engine = pod(slots=1, host=1)
    engine.submit(ask("r", "b"), warm(engine, "a"))
    evicted = of(AdapterEvicted, rest(engine))
    assert [(event.adapter, event.tier) for event in evicted] == [("a", Tier.CPU), ("a", Tier.DISK)]


def test_memory_taken_for_a_load_that_fails_is_gone_from_the_prefix_cache():
    engine = pod(kv_blocks=4, load_failure_share=1.0, draw=lambda: 0.0)
    now = serve(engine, ask("first", prompt=40, blocks=(11, 12)), 0.0)
    engine.submit(ask("fails", "a", prompt=48), now)  # three of four blocks: the end of the cached prompt goes
    now = rest(engine)[-1].t
    engine.submit(ask("again", prompt=40, blocks=(11, 12)), now)
    (start,) = of(RequestStarted, rest(engine))
    assert start.cached_tokens == 16
