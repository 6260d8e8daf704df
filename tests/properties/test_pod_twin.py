"""`PodEngine` against `PodTwin`: same inputs, same events, same statistics, however often the engine is asked.

All times are multiples of 2^-12 s, so that both compute exactly and ties (an arrival at the end of a step) are hit.
"""

import random
from collections import Counter
from math import inf, isclose, pi

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pod_twin import PodTwin

from lorapick.model.pods import PodLimits
from lorapick.model.tiers import Tier
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import PodError
from lorapick.pod.values import (
    AdapterEvicted,
    AdapterSpec,
    AdapterUnloaded,
    Kernel,
    KvExpired,
    Memory,
    MergePolicy,
    Merging,
    PodConfig,
    PodRequest,
    ReceivedKv,
    RequestFailed,
    StepCosts,
    SwapCosts,
    SwapMode,
)

UNIT = 2.0**-10
NAMES = ("a", "b", "c", "d", "e")
STATIC = tuple(
    AdapterSpec(name=name, rank=16 if name in "ac" else 8, size=16 if name in "ab" else 32) for name in NAMES[:4]
)
BLOCK = 4


@st.composite
def configs(draw):
    slots = draw(st.integers(1, 3))
    zero = draw(st.booleans())
    return PodConfig(
        limits=PodLimits(
            max_loras=slots,
            max_cpu_loras=slots + draw(st.integers(0, 2)),
            max_lora_rank=16,
            max_num_seqs=draw(st.integers(1, 5)),
        ),
        mode=draw(st.sampled_from(SwapMode)),
        step=StepCosts(a=16 * UNIT, b=UNIT, c=2 * UNIT, d=UNIT / 4),
        swap=SwapCosts(
            deallocation=0.0 if zero else 8 * UNIT,
            fragmentation=4 * UNIT,
            cpu_bandwidth=inf if zero else 1024.0,
            disk_bandwidth=512.0,
            initialisation=0.0 if zero else 8 * UNIT,
            warm_up=0.0 if zero else 16 * UNIT,
        ),
        prefill_per_token=draw(st.sampled_from([0.0, UNIT / 4])),
        block_size=BLOCK,
        kv_blocks=draw(st.integers(4, 14)),
        max_model_len=40,
        max_batched_tokens=draw(st.sampled_from([None, 6, 20])),
        unload_frees=draw(st.booleans()),
        load_failure_share=draw(st.sampled_from([0.0, 0.0, 0.25, 1.0])),
        kv_hold=draw(st.sampled_from([30, 100, 3000])) * UNIT,
    )


@st.composite
def variants(draw):
    """A configuration with a variant of the engine."""
    config = draw(configs())
    return with_variant(
        config,
        memory=draw(st.sampled_from(Memory)),
        kernel=draw(st.sampled_from(Kernel)),
        merging=draw(st.sampled_from(Merging)),
        scan=draw(st.sampled_from([0.0, UNIT / 2])),
        patience=draw(st.sampled_from([0, 10, 100])),
        share=draw(st.sampled_from([0.3, 0.6, 1.0])),
    )


def with_variant(config, *, memory, kernel, merging, scan=0.0, patience=40, share=0.6):
    """Pages hold 16 bytes: adapters take one or two, or in another pool two or four."""
    return msgspec.structs.replace(
        config,
        mode=SwapMode.INLINE,
        memory=memory,
        kernel=kernel,
        merging=MergePolicy(mode=merging, seconds=24 * UNIT, share=share, patience=patience * UNIT),
        step=msgspec.structs.replace(config.step, slot=UNIT / 4, scan=scan, rank_slope=0.5),
        kv_bytes_per_token=4 if config.kv_blocks % 2 else 2,
    )


def chain(document, blocks):
    """Ids of a document's blocks; documents 1 and 2 share their first two."""
    return tuple(index if index < 2 and document else 100 * (document + 1) + index for index in range(blocks))


@st.composite
def requests(draw):
    prompt = draw(st.integers(1, 24))
    adapter = draw(st.sampled_from([None, *NAMES]))
    prefill_only = draw(st.integers(0, 4)) == 0
    return PodRequest(
        id=f"r{draw(st.integers(0, 40))}",
        adapter=adapter,
        prompt_tokens=prompt,
        output_tokens=1 if prefill_only else draw(st.integers(1, 14)),
        prefill_only=prefill_only,
        kv=draw(st.sampled_from([None, None, None, None, ReceivedKv(adapter=adapter), ReceivedKv(adapter="a")])),
        blocks=chain(draw(st.integers(0, 2)), draw(st.sampled_from([prompt // BLOCK, prompt // BLOCK, 0, 1]))),
    )


SPECS = st.builds(
    AdapterSpec, name=st.sampled_from(NAMES), rank=st.sampled_from([8, 8, 32]), size=st.sampled_from([16, 32])
)
INPUTS = st.one_of(
    *[st.tuples(st.just("submit"), requests())] * 6,
    st.tuples(st.just("abort"), st.integers(0, 40).map("r{}".format)),
    st.tuples(st.just("release_kv"), st.integers(0, 40).map("r{}".format)),
    st.tuples(st.just("load"), st.one_of(st.sampled_from(NAMES), SPECS)),
    st.tuples(st.just("unload"), st.sampled_from(NAMES)),
    st.tuples(st.just("register"), SPECS),
    st.tuples(st.just("look"), st.none()),
    st.tuples(st.just("look"), st.none()),
)
PAUSES = st.sampled_from([0, 0, 1, 3, 16, 19, 40, 90, 400])
SCRIPTS = st.lists(st.tuples(PAUSES, INPUTS), min_size=1, max_size=40)


def act(engine, action, argument, now):
    """Perform one input on an engine; False when it is refused."""
    try:
        if action == "register":
            engine.advance_quietly(now)
            engine.register(argument)
        elif action == "restart":
            engine.restart(now)
        else:
            getattr(engine, action)(argument, now)
    except PodError:
        return False
    return True


class Asked(PodEngine):
    """An engine that is asked at each change, and stops at each of them."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.said = []

    def advance_quietly(self, now):
        steps = 0
        while (change := self.next_change()) is not None and change <= now:
            events = self.advance(change)
            assert all(event.t == change for event in events), (change, events)
            self.check()
            self.said += events
            steps += 1
            assert steps < 10_000, "no progress"
        self.said += self.advance(now)
        self.check()


class Silent(PodEngine):
    """An engine that is never asked before the end."""

    def advance_quietly(self, now):
        self.stats(now)


def same(left, right):
    """Equal, times within 1e-9."""
    if isinstance(left, float):
        return isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, msgspec.Struct):
        return type(left) is type(right) and all(
            same(getattr(left, f), getattr(right, f)) for f in left.__struct_fields__
        )
    return left == right


def compare(left, right):
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        assert same(one, other), f"item {index}\nengine {one}\ntwin   {other}"
    assert len(left) == len(right)


def play(config, script, seed, unit=UNIT):
    asked = Asked(config, STATIC, now=1.0, draw=random.Random(seed).random)
    silent = Silent(config, STATIC, now=1.0, draw=random.Random(seed).random)
    twin = PodTwin(config, STATIC, now=1.0, draw=random.Random(seed).random)
    now = 1.0
    for pause, (action, argument) in [*script, (100_000, ("look", None))]:
        now += pause * unit
        asked.advance_quietly(now)
        if action == "look":
            compare([asked.stats(now)], [twin.stats(now)])
            for work in twin.in_flight():
                assert asked.tokens_out(work.id, now) == work.tokens
            assert {each.request_id for each in asked._machine.handover.held.values()} == twin.waiting_for_fetch()
            assert asked.registered == tuple(twin.names)
        else:
            expected = twin.do(action, argument, now)
            assert act(asked, action, argument, now) == expected
            assert act(silent, action, argument, now) == expected
            asked.check()
    compare(asked.said, twin.events)
    assert silent.advance(now) == asked.said
    stats = asked.stats(now)
    assert stats == silent.stats(now)
    assert (stats.running, stats.waiting, stats.kv_held) == (0, 0, 0)
    assert stats.kv_usage == 0.0 or stats.merged is not None
    return twin


@settings(max_examples=100, deadline=None)
@given(configs(), SCRIPTS, st.integers(0, 9))
def test_engine_equals_twin(config, script, seed):
    play(config, script, seed)


@settings(max_examples=100, deadline=None)
@given(variants(), SCRIPTS, st.integers(0, 9))
def test_variants_equal_twins(config, script, seed):
    play(config, script, seed)


def busy_config(rng, mode):
    """A small pod that is always short of something."""
    slots = rng.randint(1, 3)
    instant = rng.random() < 0.2
    return PodConfig(
        limits=PodLimits(max_loras=slots, max_cpu_loras=slots + rng.randint(0, 2), max_num_seqs=rng.randint(2, 6)),
        mode=mode,
        step=StepCosts(a=16 * UNIT, b=UNIT, c=2 * UNIT, d=UNIT / 4),
        swap=SwapCosts(
            deallocation=8 * UNIT,
            fragmentation=4 * UNIT,
            cpu_bandwidth=inf if instant else 1024.0,
            disk_bandwidth=inf if instant else 512.0,
            initialisation=0.0 if instant else 8 * UNIT,
            warm_up=0.0 if instant else 16 * UNIT,
        ),
        prefill_per_token=UNIT / 4,
        block_size=BLOCK,
        kv_blocks=rng.randint(8, 20),
        max_model_len=32,
        max_batched_tokens=rng.choice([None, None, 5, 12, 30]),
        unload_frees=slots == 2,
        kv_hold=rng.choice([100, 1000, 10_000]) * UNIT,
        load_failure_share=rng.choice([0.0, 0.0, 0.0, 0.1]),
    )


def handed(rng, adapter):
    """What some requests have, of which only the prompt is wanted, or whose KV comes from elsewhere."""
    kind = rng.random()
    if kind < 0.15:
        return {"output_tokens": 1, "prefill_only": True}
    return {"kv": ReceivedKv(adapter=adapter)} if kind < 0.25 else {}


def busy_script(rng):
    """Mostly requests for adapters that exist, in bursts, with everything else in between."""
    script, handed_over = [], []
    spread = rng.choice([10, 60, 200])
    for index in range(rng.randint(40, 120)):
        kind = rng.random()
        if kind < 0.75:
            prompt = rng.randint(1, 16)
            blocks = chain(rng.randint(0, 2), prompt // BLOCK)
            adapter = rng.choice([None, "a", "a", "b", "c", "d"])
            size = {"prompt_tokens": prompt, "output_tokens": rng.randint(1, 16), "blocks": blocks}
            request = PodRequest(id=f"r{index}", adapter=adapter, **(size | handed(rng, adapter)))
            step = ("submit", request)
            if request.prefill_only:
                handed_over.append(request.id)
        elif kind < 0.82 and handed_over:
            step = ("release_kv", rng.choice(handed_over[-3:]))
        elif kind < 0.85:
            step = ("abort", f"r{rng.randint(max(0, index - 8), index)}")
        elif kind < 0.89:
            step = ("load", rng.choice([*STATIC, AdapterSpec(name="e", rank=8, size=rng.choice([16, 32]))]))
        elif kind < 0.92:
            step = ("unload", rng.choice(NAMES))
        elif kind < 0.94:
            step = ("register", rng.choice(STATIC))
        elif kind < 0.945:
            step = ("restart", None)
        else:
            step = ("look", None)
        script.append((rng.choice([0, 0, rng.randint(0, spread), rng.randint(0, 8 * spread)]), step))
    return script


@pytest.mark.parametrize("mode", SwapMode)
def test_busy_pods_equal_twins(mode):
    seen = Counter()
    for seed in range(60):
        rng = random.Random(seed)
        twin = play(busy_config(rng, mode), busy_script(rng), seed)
        seen += Counter(twin.count)
        seen["drains"] += twin.time["drain"] > 0
        seen["unloaded"] += sum(isinstance(event, AdapterUnloaded) for event in twin.events)
        seen["failed"] += sum(isinstance(event, RequestFailed) for event in twin.events)
        seen["expired"] += sum(isinstance(event, KvExpired) for event in twin.events)
        seen["released"] += twin.releases
        seen["received"] += twin.receptions
        seen["to disk"] += sum(isinstance(event, AdapterEvicted) and event.tier == Tier.DISK for event in twin.events)
    # The comparison is worth something only if everything happened many times.
    rare = ["swaps", "evictions", "preemptions", "cached_tokens", "hits", "misses", "failed", "to disk", "unloaded"]
    rare += ["released", "expired", "received"]
    rare += ["drains"] if mode is SwapMode.DRAIN else []
    assert all(seen[what] > 25 for what in rare), seen


VARIANTS = [
    (Memory.UNIFIED, Kernel.DISTINCT, Merging.NEVER),
    (Memory.SLOTS, Kernel.PADDED, Merging.NEVER),
    (Memory.SLOTS, Kernel.SEGMENTED, Merging.NEVER),
    (Memory.SLOTS, Kernel.DISTINCT, Merging.ALWAYS),
    (Memory.SLOTS, Kernel.DISTINCT, Merging.BY_LOAD),
    (Memory.UNIFIED, Kernel.SEGMENTED, Merging.ALWAYS),
    (Memory.UNIFIED, Kernel.PADDED, Merging.BY_LOAD),
]


@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_busy_variants_equal_twins(variant):
    memory, kernel, merging = variant
    seen = Counter()
    for seed in range(25):
        rng = random.Random(2000 + seed)
        config = with_variant(
            busy_config(rng, SwapMode.INLINE),
            memory=memory,
            kernel=kernel,
            merging=merging,
            scan=rng.choice([0.0, UNIT / 2]),
            patience=rng.choice([10, 40, 200]),
            share=rng.choice([0.4, 0.6, 0.8]),
        )
        twin = play(config, busy_script(rng), seed)
        seen += Counter(twin.count)
        seen += Counter(type(event).__name__ for event in twin.events)
    rare = ["swaps", "preemptions", "cached_tokens", "hits", "misses", "evictions"]
    rare += [] if merging is Merging.NEVER else ["AdapterMerged", "AdapterUnmerged"]
    assert all(seen[what] > 8 for what in rare), seen


@pytest.mark.parametrize("mode", SwapMode)
def test_twins_agree_on_real_costs_too(mode):
    """Costs and times that have no short binary fraction; ties do not occur."""
    for seed in range(25):
        rng = random.Random(1000 + seed)
        config = msgspec.structs.replace(
            busy_config(rng, mode),
            step=StepCosts(),
            swap=SwapCosts(cpu_bandwidth=16e3, disk_bandwidth=5e3),
            prefill_per_token=33e-3 / 2048,
        )
        play(config, busy_script(rng), seed, unit=13.76e-3 / 16 * pi / 3)
