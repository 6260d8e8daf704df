"""`PodEngine` against `PodTwin`: same inputs, same events, same statistics, however often the engine is asked.

All times are multiples of 2^-12 s, so that both compute exactly and ties (an arrival at the end of a step) are hit.
"""

import random
from math import inf, isclose

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from pod_twin import PodTwin

from lorapick.model.pods import PodLimits
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import PodError
from lorapick.pod.values import AdapterSpec, PodConfig, PodRequest, StepCosts, SwapCosts, SwapMode

UNIT = 2.0**-10
NAMES = ("a", "b", "c", "d", "e")
STATIC = tuple(AdapterSpec(name=name, rank=8, size=16 if name in "ab" else 32) for name in NAMES[:4])
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
        load_failure_share=draw(st.sampled_from([0.0, 0.0, 0.25, 1.0])),
    )


def chain(document, blocks):
    """Ids of a document's blocks; documents 1 and 2 share their first two."""
    return tuple(index if index < 2 and document else 100 * (document + 1) + index for index in range(blocks))


@st.composite
def requests(draw):
    prompt = draw(st.integers(1, 24))
    return PodRequest(
        id=f"r{draw(st.integers(0, 40))}",
        adapter=draw(st.sampled_from([None, *NAMES])),
        prompt_tokens=prompt,
        output_tokens=draw(st.integers(1, 14)),
        blocks=chain(draw(st.integers(0, 2)), draw(st.sampled_from([prompt // BLOCK, prompt // BLOCK, 0, 1]))),
    )


SPECS = st.builds(
    AdapterSpec, name=st.sampled_from(NAMES), rank=st.sampled_from([8, 8, 32]), size=st.sampled_from([16, 32])
)
INPUTS = st.one_of(
    *[st.tuples(st.just("submit"), requests())] * 6,
    st.tuples(st.just("abort"), st.integers(0, 40).map("r{}".format)),
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


def play(config, script, seed):
    asked = Asked(config, STATIC, now=1.0, draw=random.Random(seed).random)
    silent = Silent(config, STATIC, now=1.0, draw=random.Random(seed).random)
    twin = PodTwin(config, STATIC, now=1.0, draw=random.Random(seed).random)
    now = 1.0
    for pause, (action, argument) in [*script, (100_000, ("look", None))]:
        now += pause * UNIT
        asked.advance_quietly(now)
        if action == "look":
            compare([asked.stats(now)], [twin.stats(now)])
            for work in twin.in_flight():
                assert asked.tokens_out(work.id, now) == work.tokens
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
    assert (stats.running, stats.waiting, stats.kv_usage) == (0, 0, 0.0)
    return twin


@settings(max_examples=300, deadline=None)
@given(configs(), SCRIPTS, st.integers(0, 9))
def test_engine_equals_twin(config, script, seed):
    play(config, script, seed)
