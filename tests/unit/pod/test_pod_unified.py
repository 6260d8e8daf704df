"""One pool of pages for adapters and context. Steps take 10 ms, a page holds 16 tokens of 1 MB: 16 MB.

An adapter of 50 MB takes 4 pages and 13 + 20 + 75 ms to come from disk, 3 + 20 + 75 ms from host memory.
"""

import pytest
from pod_helpers import MB, MS, ask, config, pod, rest, serve, told, warm

from lorapick.model.tiers import Tier
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import AdapterTooLarge, PromptTooLong
from lorapick.pod.unified import pages_for
from lorapick.pod.values import AdapterEvicted, AdapterSpec, Memory, RequestStarted, SwapEnded


def unified(*, pages, host=20, **more):
    return pod(memory=Memory.UNIFIED, kv_bytes_per_token=MB, kv_blocks=pages, slots=1, host=host, **more)


def evicted(events):
    return [event.adapter for event in events if isinstance(event, AdapterEvicted)]


def test_an_adapter_takes_whole_pages():
    sizes = config(memory=Memory.UNIFIED, kv_bytes_per_token=MB)
    assert [pages_for(size * MB, sizes) for size in (1, 16, 17, 50)] == [1, 1, 2, 4]


def test_more_adapters_run_together_than_there_would_be_slots():
    engine = unified(pages=30)
    for index, name in enumerate("abcde"):
        engine.submit(ask(f"r{index}", name, output=5), 0.0)
    stats = engine.stats(555 * MS)  # one load, a step, four loads
    assert (stats.running, stats.on_gpu) == (5, ("a", "b", "c", "d", "e"))
    assert stats.kv_usage == (5 * 4 + 5 + 1) / 30  # the first has its 17th token to come
    engine.check()


def test_an_idle_adapter_stays_until_its_pages_are_needed_and_the_least_recently_used_goes_first():
    engine = unified(pages=12)
    now = warm(engine, "a", "b")  # 8 pages, 4 are left
    assert engine.stats(now).kv_usage == 0.0
    engine.submit(ask("small", prompt=60, output=2), now)
    assert evicted(rest(engine)) == []
    now = engine._now
    engine.submit(ask("large", prompt=100, output=2), now)  # 7 pages: one adapter has to go
    events = rest(engine)
    assert evicted(events) == ["a"]
    assert engine.stats(events[-1].t).on_gpu == ("b",)
    assert engine.residency()["a"] is Tier.CPU


def test_a_request_that_grows_pushes_out_idle_adapters_before_anybody_is_preempted():
    engine = unified(pages=6)
    now = warm(engine, "a")
    engine.submit(ask("r", prompt=16, output=40), now)  # 2 pages for 17 tokens, a third for 33
    events = rest(engine)
    assert evicted(events) == ["a"]
    assert [round((event.t - now) / MS) for event in events if isinstance(event, AdapterEvicted)] == [170]
    assert engine.stats(events[-1].t).preemptions == 0


def test_adapters_in_use_are_not_pushed_out_the_youngest_is_preempted():
    engine = unified(pages=9)
    now = warm(engine, "a")
    engine.submit(ask("r", "a", prompt=16, output=40), now)
    engine.submit(ask("s", prompt=16, output=40), now)
    events = rest(engine)
    assert evicted(events) == []
    assert engine.stats(events[-1].t).preemptions == 1


def test_cached_blocks_give_way_to_an_adapter():
    engine = unified(pages=8)
    now = serve(engine, ask("r", prompt=64, output=1, blocks=(1, 2, 3, 4)), 0.0)
    now = serve(engine, ask("again", prompt=65, output=1, blocks=(1, 2, 3, 4)), now)
    assert engine.stats(now).cached_tokens == 64
    now = serve(engine, ask("warm", "a"), now)
    engine.submit(ask("third", prompt=49, output=1, blocks=(1, 2, 3)), now)
    (start,) = [event for event in rest(engine) if isinstance(event, RequestStarted)]
    assert start.cached_tokens == 48  # 4 pages for a, 1 for its request: three blocks were left


def test_a_request_whose_adapter_does_not_fit_waits_and_nobody_is_preempted_for_it():
    engine = unified(pages=9)
    engine.submit(ask("r", prompt=80, output=10), 0.0)  # 6 pages, 3 are left
    engine.submit(ask("s", "a"), 1 * MS)
    events = rest(engine)
    assert told(events)[2:5] == [(100, "RequestFinished", "r"), (100, "SwapStarted", "a"), (208, "SwapEnded", "a")]


def test_pages_cost_no_deallocation():
    engine = unified(pages=9)
    now = warm(engine, "a")
    engine.submit(ask("r", "b", prompt=32), now)
    (end,) = [event for event in rest(engine) if isinstance(event, SwapEnded)]
    assert (end.deallocation, end.t) == (0.0, pytest.approx(now + 108 * MS))


def test_a_load_that_was_ordered_waits_for_pages():
    engine = unified(pages=9)
    engine.submit(ask("r", prompt=80, output=10), 0.0)
    engine.load("a", 5 * MS)
    assert told(rest(engine))[2:] == [(100, "RequestFinished", "r"), (100, "SwapStarted", "a"), (208, "SwapEnded", "a")]


def test_a_load_that_fails_gives_its_pages_back():
    engine = unified(pages=9, load_failure_share=1.0, draw=lambda: 0.0)
    engine.load("a", 0.0)
    rest(engine)
    engine.check()
    engine.submit(ask("r", prompt=140), 1.0)
    assert len([event for event in rest(engine) if isinstance(event, RequestStarted)]) == 1


def test_what_can_never_fit_is_refused():
    engine = unified(pages=8)
    engine.submit(ask("base", prompt=120, output=8), 0.0)
    with pytest.raises(PromptTooLong, match="limit of 64 tokens"):
        engine.submit(ask("r", "a", prompt=60, output=5), 0.0)
    for action in (lambda: engine.load("x", 0.0), lambda: engine.submit(ask("s", "x"), 0.0)):
        engine.register(AdapterSpec(name="x", size=8 * 16 * MB))
        with pytest.raises(AdapterTooLarge, match="x takes 8 pages and the pool has 8"):
            action()


def test_a_thousand_adapters_fit_where_a_thousand_slots_do_not():
    """64 GB less 15 GB of weights; rank 16 on an 8B model reserves 94 MiB per slot, q and v alone have 13.6 MB."""
    room, reservation = 49 * 10**9, 94 * 2**20
    block = 131_072 * 16
    names = [AdapterSpec(name=f"a{index}", rank=16, size=13_600_000) for index in range(1000)]
    assert room - 1000 * reservation < 0
    engine = PodEngine(
        config(memory=Memory.UNIFIED, slots=1, host=1000, seqs=1000, kv_blocks=room // block), names, now=0.0
    )
    for spec in names:
        engine.submit(ask(spec.name, spec.name, prompt=100, output=2), 0.0)
    stats = engine.stats(1000.0)
    assert (len(stats.on_gpu), stats.evictions, stats.finished) == (1000, 0, 1000)
