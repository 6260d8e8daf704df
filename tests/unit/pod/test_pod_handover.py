"""Prefill here, decode there: KV that is held for another pod, and KV that comes from one. Steps take 10 ms."""

import pytest
from pod_helpers import MS, ask, pod, rest, serve, told, warm

from lorapick.pod import errors
from lorapick.pod.values import KvExpired, Memory, MergePolicy, Merging, ReceivedKv, RequestStarted


def ask_prefill(name, adapter=None, *, prompt=16, blocks=()):
    return _replace(ask(name, adapter, prompt=prompt, blocks=blocks), prefill_only=True)


def ask_decode(name, adapter=None, *, under="same", **more):
    return _replace(ask(name, adapter, **more), kv=ReceivedKv(adapter=adapter if under == "same" else under))


def _replace(request, **changes):
    return type(request)(**{name: getattr(request, name) for name in request.__struct_fields__} | changes)


# ---- prefill only


def test_a_prompt_alone_takes_its_prefill_and_one_step_and_its_blocks_stay():
    engine = pod(prefill_per_token=1 * MS, kv_blocks=10)
    engine.submit(ask_prefill("p", prompt=40), 0.0)
    assert told(engine.advance(1.0)) == [
        (0, "RequestStarted", "p"),
        (50, "FirstToken", "p"),
        (50, "RequestFinished", "p"),
    ]
    stats = engine.stats(1.0)
    assert (stats.running, stats.kv_held, stats.kv_usage) == (0, 1, 0.3)
    held = engine.held_kv("p", 1.0)
    assert held is not None and (held.adapter, held.tokens) == (None, 40)
    assert engine.release_kv("p", 2.0)
    engine.check()
    assert (engine.stats(2.0).kv_held, engine.stats(2.0).kv_usage) == (0, 0.0)
    assert engine.held_kv("p", 2.0) is None
    assert not engine.release_kv("p", 2.0)


def test_what_nobody_fetches_is_given_up_and_told():
    engine = pod(kv_hold=2.0)
    engine.submit(ask_prefill("p", "a"), 0.0)
    assert engine.held_kv("p", 1.0).adapter == "a"
    expired = [event for event in rest(engine) if isinstance(event, KvExpired)]
    assert [(event.request_id, round(event.t, 9)) for event in expired] == [("p", 2.0 + 0.118)]
    assert engine.stats(3.0).kv_usage == 0.0


def test_a_busy_pod_gives_it_up_at_the_end_of_a_step():
    engine = pod(kv_hold=0.1)
    engine.submit(ask_prefill("p"), 0.0)
    engine.submit(ask("r", output=50), 1 * MS)  # begins at 10, with the end of p; p is given up at 110
    assert (110, "KvExpired", "p") in told(rest(engine))
    engine.submit(ask_prefill("q"), 1.0)
    engine.submit(ask("s", output=50), 1.001)
    engine.release_kv("q", 1.053)
    assert (engine.stats(1.055).kv_usage, engine.stats(1.055).kv_held) == (3 / engine.config.kv_blocks, 0)
    assert engine.stats(1.061).kv_usage == 2 / engine.config.kv_blocks


def test_held_blocks_keep_others_out_until_they_are_released():
    engine = pod(kv_blocks=4)
    engine.submit(ask_prefill("p", prompt=48), 0.0)
    engine.submit(ask("r", prompt=32), 20 * MS)
    assert (engine.stats(1.0).running, engine.stats(1.0).waiting) == (0, 1)
    engine.check()
    engine.release_kv("p", 1.0)
    assert told(rest(engine))[-1] == (1010, "RequestFinished", "r")


def test_whoever_needs_memory_that_is_held_is_sent_back_and_waits_for_it():
    engine = pod(kv_blocks=3, kv_hold=1.0)
    engine.submit(ask_prefill("p", prompt=16), 0.0)
    engine.submit(ask("r", prompt=16, output=30), 1 * MS)  # needs a third block after its 17th token
    events = rest(engine)
    assert engine.stats(9.0).preemptions == 1
    assert told(events)[-2:] == [(1010, "KvExpired", "p"), (1140, "RequestFinished", "r")]


def test_a_held_prompt_is_in_the_prefix_cache_then_and_afterwards():
    engine = pod(kv_blocks=8)
    engine.submit(ask_prefill("p", "a", prompt=40, blocks=(1, 2)), 0.0)
    now = rest_until_held(engine)
    request = ask("again", "a", prompt=40, blocks=(1, 2))
    assert engine.cached_tokens(request, now) == 32
    engine.submit(request, now)
    engine.release_kv("p", now + 1 * MS)
    (start,) = [event for event in rest(engine) if isinstance(event, RequestStarted) and event.request_id == "again"]
    assert start.cached_tokens == 32
    assert engine.cached_tokens(ask("third", "a", prompt=40, blocks=(1, 2)), 1.0) == 32
    assert engine.cached_tokens(ask("third", "a", prompt=32, blocks=(1, 2)), 1.0) == 16  # one token is always computed
    assert engine.cached_tokens(ask("third", "b", prompt=40, blocks=(1, 2)), 1.0) == 0
    assert engine.cached_tokens(ask("third", "unknown", prompt=40, blocks=(1, 2)), 1.0) == 0


def rest_until_held(engine, now=0.0):
    while not engine.stats(now).kv_held:
        now = engine.next_change()
        engine.advance(now)
        engine.check()
    return now


def test_an_aborted_prompt_is_not_held_and_a_restart_loses_what_is():
    engine = pod()
    engine.submit(ask_prefill("p"), 0.0)
    engine.abort("p", 5 * MS)
    rest(engine)
    assert engine.held_kv("p", 1.0) is None
    engine.submit(ask_prefill("q"), 1.0)
    assert engine.held_kv("q", 2.0) is not None
    assert engine.restart(2.0) == ()
    assert engine.held_kv("q", 2.0) is None


def test_the_name_of_what_is_held_is_taken():
    engine = pod()
    now = serve_held(engine, "p")
    with pytest.raises(errors.BadRequest, match="in flight"):
        engine.submit(ask("p"), now)
    engine.release_kv("p", now)
    assert serve(engine, ask("p"), now) == pytest.approx(now + 10 * MS)


def serve_held(engine, name):
    engine.submit(ask_prefill(name), 0.0)
    return rest_until_held(engine)


# ---- prefilled elsewhere


def test_a_request_that_comes_with_its_kv_joins_by_a_decode_step():
    engine = pod(prefill_per_token=1 * MS)
    engine.submit(ask("r", prompt=10, output=4), 0.0)
    engine.submit(ask_decode("d", prompt=500, output=2), 25 * MS)
    assert told(rest(engine)) == [
        (0, "RequestStarted", "r"),
        (20, "FirstToken", "r"),
        (30, "RequestStarted", "d"),
        (40, "FirstToken", "d"),  # nobody waits for 500 ms of prefill
        (50, "RequestFinished", "r"),
        (50, "RequestFinished", "d"),
    ]


def test_it_needs_blocks_as_any_other_and_what_it_brought_is_cached_afterwards():
    engine = pod(kv_blocks=4, prefill_per_token=1 * MS)
    engine.submit(ask("r", prompt=32, output=3), 0.0)
    engine.submit(ask_decode("d", prompt=40, blocks=(1, 2)), 1 * MS)
    assert engine.stats(50 * MS).waiting == 1
    events = rest(engine)
    (start,) = [event for event in events if isinstance(event, RequestStarted) and event.request_id == "d"]
    assert start.cached_tokens == 0  # nothing was there before
    now = events[-1].t
    assert engine.cached_tokens(ask("again", prompt=40, blocks=(1, 2)), now) == 32


def test_one_that_is_sent_back_computes_its_prompt():
    engine = pod(kv_blocks=4, prefill_per_token=1 * MS)
    engine.submit(ask("old", prompt=16, output=33), 0.0)
    engine.submit(ask_decode("young", prompt=16, output=33), 0.0)
    events = rest(engine)
    assert engine.stats(9.0).preemptions == 1
    # old: 26, then 32 steps; young joined at 26 and had 15 or so tokens; then its prompt and they again.
    end = {event.request_id: event.t for event in events if type(event).__name__ == "RequestFinished"}
    assert end["young"] - end["old"] == pytest.approx((16 + 16 + 17 * 10) * MS)


def test_it_loads_its_adapter_like_any_other():
    engine = pod()
    engine.submit(ask_decode("d", "a"), 0.0)
    assert told(rest(engine))[1:3] == [(108, "SwapEnded", "a"), (108, "RequestStarted", "d")]


def test_it_takes_one_token_of_a_step():
    engine = pod(prefill_per_token=0.1 * MS, max_batched_tokens=4)
    for index in range(6):
        engine.submit(ask_decode(f"r{index}", prompt=100, output=9), 0.0)
    started = [round(event.t / MS) for event in rest(engine) if isinstance(event, RequestStarted)]
    assert started == [0, 10, 10, 10, 90, 100]


@pytest.mark.parametrize(("adapter", "under"), [("a", "b"), ("a", None), (None, "a")])
def test_kv_of_another_adapter_is_refused(adapter, under):
    engine = pod()
    with pytest.raises(errors.KvMismatch, match="was computed under") as caught:
        engine.submit(ask_decode("d", adapter, under=under), 0.0)
    assert (caught.value.wanted, caught.value.found) == (adapter, under)
    assert engine.next_change() is None


# ---- what is refused


def test_what_cannot_be_handed_over_is_refused():
    engine = pod()
    for wrong in (
        _replace(ask_prefill("p"), output_tokens=2),
        _replace(ask_prefill("p"), kv=ReceivedKv(adapter=None)),
    ):
        with pytest.raises(errors.BadRequest):
            engine.submit(wrong, 0.0)
    for variant in ({"memory": Memory.UNIFIED}, {"merging": MergePolicy(mode=Merging.ALWAYS)}):
        with pytest.raises(errors.BadRequest, match="hold no KV"):
            pod(**variant).submit(ask_prefill("p"), 0.0)


def test_the_adapter_of_held_kv_may_leave_its_slot():
    engine = pod(slots=1)
    now = warm(engine, "b")
    engine.submit(ask_prefill("p", "a"), now)
    now = rest_until_held(engine, now)
    engine.submit(ask("r", "b"), now)
    assert "AdapterEvicted" in [word for _, word, _ in told(rest(engine))]
