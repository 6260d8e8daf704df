"""The pod's front end: names, refusals, explicit loads, restart, what can be asked at any time."""

import pytest
from pod_helpers import MB, MS, ask, config, pod, rest, serve, told, warm

from lorapick.model.tiers import Tier
from lorapick.pod import errors
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, FirstToken, Memory, RequestFinished, SwapEnded, SwapMode


def started(events):
    return {event.request_id: event for event in events if type(event).__name__ == "RequestStarted"}


# ---- refusals ----


def test_a_name_that_is_not_registered_is_unknown():
    engine = pod(names="a")
    with pytest.raises(errors.UnknownAdapter, match="The model `b` does not exist") as caught:
        engine.submit(ask("r", "b"), 0.0)
    assert caught.value.name == "b"
    for act in (engine.unload, engine.load):
        with pytest.raises(errors.UnknownAdapter):
            act("b", 0.0)
    assert engine.next_change() is None


def test_a_request_longer_than_the_model_or_the_memory_is_refused():
    engine = pod(max_model_len=100)
    with pytest.raises(errors.PromptTooLong, match="at most 10 tokens") as caught:
        engine.submit(ask("r", prompt=90, output=11), 0.0)
    assert (caught.value.prompt_tokens, caught.value.output_tokens, caught.value.limit) == (90, 11, 100)
    assert pod(kv_blocks=3).max_tokens == 48


def test_a_rank_above_the_limit_is_refused_at_load_and_at_submit():
    engine = pod()
    large = AdapterSpec(name="large", rank=128)
    with pytest.raises(errors.RankTooLarge, match="128 of large is greater than max_lora_rank 64"):
        engine.load(large, 0.0)
    engine.register(large)
    with pytest.raises(errors.RankTooLarge):
        engine.submit(ask("r", "large"), 0.0)


@pytest.mark.parametrize("request_", [ask("twice"), ask("r", prompt=0), ask("r", output=0)])
def test_ids_in_use_and_empty_requests_are_refused(request_):
    engine = pod()
    engine.submit(ask("twice", output=9), 0.0)
    with pytest.raises(errors.BadRequest):
        engine.submit(request_, 1 * MS)


def test_time_does_not_go_back():
    engine = pod()
    engine.advance(2.0)
    with pytest.raises(errors.ClockWentBack, match=r"1.5 is before 2.0"):
        engine.advance(1.5)


# ---- explicit loads ----


def test_a_load_activates_and_registers_when_it_ends():
    engine = pod(names="")
    engine.load(AdapterSpec(name="x", size=50 * MB), 0.0)
    assert engine.registered == ()
    assert engine.stats(50 * MS).loading == ("x",)
    (end,) = [event for event in engine.advance(108 * MS) if isinstance(event, SwapEnded)]
    assert (end.t, end.waited) == (pytest.approx(108 * MS), False)
    assert engine.registered == ("x",)
    assert engine.residency() == {"x": Tier.GPU_IDLE}
    stats = engine.stats(1.0)
    assert (stats.loads, stats.swaps) == (1, 0)


def test_a_load_may_push_out_an_idle_adapter_however_popular():
    engine = pod(slots=1)
    now = warm(engine, "a")
    engine.load("b", now)
    engine.submit(ask("r", "a"), now + 1 * MS)
    assert [word for _, word, _ in told(rest(engine))].count("AdapterEvicted") == 2


def test_what_is_loaded_or_loading_is_not_loaded_twice():
    engine = pod()
    new = AdapterSpec(name="x")
    engine.load(new, 0.0)
    engine.load(new, 1 * MS)
    engine.load("a", 2 * MS)
    engine.load("a", 3 * MS)
    now = rest(engine)[-1].t
    assert engine.stats(now).loads == 2
    engine.load("x", now)  # holds a slot: only used, so that it is not the next to go
    assert engine.next_change() is None
    assert engine.stats(now).on_gpu == ("a", "x")


def test_a_load_waits_for_a_slot_that_nobody_uses():
    engine = pod(slots=1)
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=5), now)
    engine.load("b", now + 1 * MS)
    assert told(rest(engine))[2:4] == [
        (round(now / MS) + 50, "RequestFinished", "r"),
        (round(now / MS) + 50, "SwapStarted", "b"),
    ]


def test_in_drain_mode_a_load_drains_the_batch():
    engine = pod(SwapMode.DRAIN, slots=2)
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=5), now)
    engine.load("b", now + 1 * MS)
    engine.submit(ask("s", "a"), now + 2 * MS)
    events = rest(engine)
    (end,) = [event for event in events if isinstance(event, SwapEnded)]
    assert (end.drain, end.waited) == (pytest.approx(40 * MS), False)
    assert started(events)["s"].t == pytest.approx(end.t)


def test_a_request_that_comes_during_a_load_waits_for_it_and_is_no_hit():
    engine = pod()
    engine.load("a", 0.0)
    engine.submit(ask("r", "a"), 50 * MS)
    assert started(rest(engine))["r"].hit is False
    stats = engine.stats(1.0)
    assert (stats.loads, stats.swaps, stats.misses) == (1, 0, 1)  # nobody waited when it began


def test_unload_frees_nothing_and_a_second_load_leaves_a_ghost():
    engine = pod(slots=2)
    now = warm(engine, "a")
    engine.unload("a", now)
    assert engine.registered == tuple("bcdef")
    assert engine.stats(now).on_gpu == ("a",)
    engine.load(AdapterSpec(name="a", size=50 * MB), now)
    now = rest(engine)[-1].t
    assert engine.stats(now).on_gpu == ("a", "a")
    assert engine.residency()["a"] == Tier.GPU_IDLE
    # LRU pushes the ghost out, not the copy that serves.
    now = serve(engine, ask("r", "b"), now)
    assert engine.residency()["a"] == Tier.GPU_IDLE
    assert engine.stats(now).on_gpu == ("a", "b")
    assert engine.stats(now).on_cpu == ("a", "a", "b")


def test_requests_in_flight_outlive_an_unload():
    engine = pod()
    now = warm(engine, "a")
    engine.submit(ask("r", "a", output=5), now)
    engine.unload("a", now + 1 * MS)
    assert [type(event) for event in rest(engine)].count(RequestFinished) == 1


def test_an_unload_that_frees_drops_the_weights_at_once_when_nobody_uses_them():
    engine = pod(slots=2, unload_frees=True)
    now = warm(engine, "a", "b")
    engine.unload("a", now)
    left = [(236, "AdapterEvicted", "a"), (236, "AdapterEvicted", "a"), (236, "AdapterUnloaded", "a")]
    assert told(rest(engine)) == left
    stats = engine.stats(now)
    assert (stats.on_gpu, stats.on_cpu, stats.evictions, engine.slots_used) == (("b",), ("b",), 1, 1)
    with pytest.raises(errors.UnknownAdapter):
        engine.submit(ask("r", "a"), now)
    engine.load(AdapterSpec(name="a", size=50 * MB), now)
    assert next(event for event in rest(engine) if isinstance(event, SwapEnded)).tier_from is Tier.DISK


def test_an_unload_that_frees_waits_for_requests_in_flight():
    engine = pod(slots=1, unload_frees=True)
    now = warm(engine, "a")
    for name in ("r", "s"):
        engine.submit(ask(name, "a", output=5), now)
    engine.unload("a", now + 1 * MS)
    engine.abort("s", now + 1 * MS)
    events = [event for event in rest(engine) if type(event).__name__ in ("RequestFinished", "AdapterUnloaded")]
    assert told(events) == [
        (round(now / MS) + 50, "RequestFinished", "r"),
        (round(now / MS) + 50, "AdapterUnloaded", "a"),
    ]


def test_what_is_fetched_is_known_and_in_host_memory():
    engine = pod(slots=1, unload_frees=True)
    now = warm(engine, "a")
    engine.unload("a", now)
    rest(engine)
    for _ in range(2):
        engine.fetch(AdapterSpec(name="a", size=50 * MB), now)
        stats = engine.stats(now)
        assert (stats.on_gpu, stats.on_cpu, engine.registered[-1], rest(engine)) == ((), ("a",), "a", [])
    engine.submit(ask("r", "a"), now)
    assert next(event for event in rest(engine) if isinstance(event, SwapEnded)).tier_from is Tier.CPU
    engine.check()


def test_host_memory_that_is_full_makes_room_for_what_is_fetched_unless_slots_need_it_all():
    engine = pod(slots=1, host=2)
    now = warm(engine, "a", "b")
    engine.fetch(AdapterSpec(name="new"), now)
    assert [each[1:] for each in told(rest(engine))] == [("AdapterEvicted", "a")]
    assert engine.stats(now).on_cpu == ("b", "new")
    engine = pod(slots=1, host=1)
    engine.load("a", 0.0)
    engine.advance(0.001)
    engine.fetch(AdapterSpec(name="new"), 0.001)
    rest(engine)
    assert (engine.stats(9.0).on_cpu, engine.registered[-1]) == (("a",), "new")
    engine.check()


def test_an_unload_of_an_adapter_in_no_memory_is_done_at_once():
    engine = pod(unload_frees=True)
    engine.unload("a", 1.0)
    assert told(engine.advance(1.0)) == [(1000, "AdapterUnloaded", "a")]


@pytest.mark.parametrize("mode", SwapMode)
def test_an_unload_waits_for_a_load_that_is_under_way(mode):
    engine = pod(mode, slots=2, unload_frees=True)
    engine.load("a", 0.0)
    engine.advance(1 * MS)
    engine.unload("a", 1 * MS)
    assert [type(event).__name__ for event in rest(engine)][-4:] == [
        "SwapEnded",
        "AdapterEvicted",
        "AdapterEvicted",
        "AdapterUnloaded",
    ]
    assert engine.slots_used == 0


def test_an_unload_gives_a_unified_pool_its_pages_back():
    pages = {"kv_bytes_per_token": 1 * MB, "block_size": 16, "kv_blocks": 100}
    engine = pod(memory=Memory.UNIFIED, unload_frees=True, **pages)
    now = warm(engine, "a")
    assert engine.stats(now).on_gpu == ("a",)
    engine.unload("a", now)
    engine.check()
    assert engine.stats(now).on_gpu == ()


def test_a_name_with_new_weights_stands_for_a_new_copy():
    engine = pod(slots=2)
    now = warm(engine, "a")
    engine.register(AdapterSpec(name="a", size=50 * MB))
    assert engine.residency()["a"] == Tier.GPU_IDLE  # the same spec: nothing changes
    engine.register(AdapterSpec(name="a", size=51 * MB))
    assert engine.residency()["a"] == Tier.DISK
    engine.load(AdapterSpec(name="a", size=52 * MB), now)
    rest(engine)
    assert engine.residency()["a"] == Tier.GPU_IDLE


# ---- prefix cache ----


def test_prefix_blocks_are_found_again_under_the_same_adapter_only():
    engine = pod(prefill_per_token=1 * MS)
    now = warm(engine, "a", "b")
    document = {"prompt": 40, "blocks": (11, 12)}
    cached = []
    for name, adapter in [("r", "a"), ("s", "a"), ("t", "b"), ("u", None), ("v", None)]:
        engine.submit(ask(name, adapter, **document), now)
        events = rest(engine)
        now = events[-1].t
        cached.append(started(events)[name].cached_tokens)
    assert cached == [0, 32, 0, 0, 32]
    stats = engine.stats(now)
    assert (stats.cached_tokens, stats.queried_tokens) == (64, 5 * 40 + 2 * 16)


def test_the_last_token_is_computed_even_when_all_blocks_are_cached():
    engine = pod()
    now = serve(engine, ask("r", prompt=32, blocks=(11, 12)), 0.0)
    engine.submit(ask("s", prompt=32, blocks=(11, 12)), now)
    assert started(rest(engine))["s"].cached_tokens == 16


def test_unload_and_load_of_one_name_finds_the_old_kv_blocks():
    engine = pod()
    now = serve(engine, ask("r", "a", prompt=40, blocks=(11, 12)), 0.0)
    engine.unload("a", now)
    engine.load(AdapterSpec(name="a", size=1 * MB), now)
    now = rest(engine)[-1].t
    engine.submit(ask("s", "a", prompt=40, blocks=(11, 12)), now)
    assert started(rest(engine))["s"].cached_tokens == 32


# ---- restart ----


def test_a_restart_loses_everything_but_the_adapters_given_at_start():
    engine = pod(names="ab", slots=2)
    now = serve(engine, ask("r", "a", prompt=40, blocks=(11, 12)), 0.0)
    engine.load(AdapterSpec(name="x"), now)
    now = rest(engine)[-1].t
    engine.submit(ask("s", "a", output=50), now)
    engine.submit(ask("t", "b"), now)
    assert engine.restart(now + 15 * MS) == ("s", "t")
    now += 15 * MS
    stats = engine.stats(now)
    assert (stats.running, stats.waiting, stats.on_cpu, stats.in_flight, stats.loads) == (0, 0, (), (), 0)
    assert sum(getattr(stats.time, field) for field in stats.time.__struct_fields__) == 0
    assert engine.registered == ("a", "b")
    assert set(engine.residency().values()) == {Tier.DISK}
    engine.submit(ask("s", "a", prompt=40, blocks=(11, 12)), now + 1)
    events = [event for event in rest(engine) if event.t > now]
    assert started(events)["s"].cached_tokens == 0
    assert started(events)["s"].t == pytest.approx(now + 1 + 108 * MS)
    assert engine.stats(now + 2).time.idle == pytest.approx(2 - 118 * MS)


# ---- at any time ----


def test_tokens_are_known_at_any_time_and_so_is_the_next():
    engine = pod(prefill_per_token=1 * MS)
    engine.submit(ask("r", prompt=20, output=5), 0.0)
    known = [(engine.tokens_out("r", t * MS), engine.next_token_at("r", t * MS)) for t in (0, 25, 30, 44)]
    assert known == [(0, 0.03), (0, 0.03), (1, pytest.approx(0.04)), (2, pytest.approx(0.05))]
    engine.abort("r", 45 * MS)
    with pytest.raises(errors.UnknownRequest):
        engine.tokens_out("r", 45 * MS)


def test_an_ended_request_is_known_until_its_end_was_told():
    engine = pod()
    engine.submit(ask("r", output=5), 0.0)
    assert engine.tokens_out("r", 1.0) == 5
    assert engine.next_change() == 1.0
    assert isinstance(engine.advance(1.0)[-1], RequestFinished)
    assert engine.next_change() is None
    for act in (engine.tokens_out, engine.next_token_at):
        with pytest.raises(errors.UnknownRequest, match="r is not in flight"):
            act("r", 1.0)


def test_nothing_is_known_of_tokens_while_their_adapter_loads():
    engine = pod()
    engine.submit(ask("r", "a"), 0.0)
    assert engine.next_token_at("r", 50 * MS) is None
    assert engine.tokens_out("r", 50 * MS) == 0
    assert engine.residency()["a"] == Tier.LOADING


def test_in_flight_names_adapters_from_their_first_token_to_the_end_of_their_last_request():
    engine = pod(slots=1)
    for name, adapter in [("r", "b"), ("s", "a"), ("t", None), ("u", "b")]:
        engine.submit(ask(name, adapter, output=3), 0.0)
    assert engine.stats(0.0).in_flight == ()
    spans, first = {"b": [], "a": []}, {}
    while (due := engine.next_change()) is not None:
        for event in engine.advance(due):
            if isinstance(event, FirstToken):
                first[event.request_id] = due
        for name in engine.stats(due).in_flight:
            spans[name].append(due)
    assert spans["b"][0] == first["r"] < spans["b"][-1] < spans["a"][0] == first["s"]
    assert engine.stats(10.0).in_flight == ()


def test_time_spent_adds_up_while_a_phase_is_in_progress():
    engine = PodEngine(config(prefill_per_token=1 * MS), [AdapterSpec(name="a", size=50 * MB)], now=5.0)
    engine.submit(ask("r", "a", prompt=20, output=3), 6.0)
    for now in (6.0, 6.001, 6.02, 6.05, 6.108, 6.12, 6.13, 6.15, 7.0):
        time = engine.stats(now).time
        assert sum(getattr(time, field) for field in time.__struct_fields__) == pytest.approx(now - 5.0)
        engine.check()
    assert (time.prefill, time.decode, time.idle) == pytest.approx((20 * MS, 30 * MS, 2 - 158 * MS))
