"""What a router of Ray Serve believes and chooses; the class itself is tested on a Ray cluster (make test-ray)."""

import asyncio

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.live.ray.beliefs import EVERY, LAG, TRIES, Beliefs, Ranked, Replica, RouterOptions

NAMES = ("a", "b", "c", "d")


class Clock:
    """Time that tests tell."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def beliefs_of(*, models=2, most=5, names=NAMES, **options):
    clock = Clock()
    made = Beliefs(RouterOptions(max_models=models, **options), clock=clock)
    made.listed(Replica(name, (), most, 0) for name in names)
    return made, clock


async def test_a_crowd_for_a_cold_model_goes_to_one_replica():
    beliefs, _ = beliefs_of(most=20)
    first = [(await beliefs.ranked(f"r{number}", "m")).names[0] for number in range(5)]
    assert first == [first[0]] * 5 and beliefs.loads_expected == 5
    assert beliefs.in_flight == 5


async def test_what_replicas_say_they_have_counts():
    beliefs, clock = beliefs_of()
    clock.now += 2 * LAG
    beliefs.listed([Replica(name, ("m",) if name == "c" else (), 5, 0) for name in NAMES])
    assert (await beliefs.ranked("r1", "m")).names[0] == "c"
    assert beliefs.loads_expected == 0


async def test_what_a_replica_said_before_a_load_began_does_not_undo_it():
    beliefs, clock = beliefs_of()
    chosen = (await beliefs.ranked("r1", "m")).names[0]
    clock.now += LAG / 2
    beliefs.listed(Replica(name, (), 5, 0) for name in NAMES)
    assert (await beliefs.ranked("r2", "m")).names[0] == chosen


async def test_what_ray_counts_of_our_own_requests_is_not_counted_again():
    """Ray lists models late but counts requests at once: six that have ended are not six that are still there."""
    beliefs, clock = beliefs_of(most=20, load_seconds=0.2)
    sent = [f"r{number}" for number in range(6)]
    chosen = [(await beliefs.ranked(each, "m")).names[0] for each in sent]
    for each in sent:
        beliefs.routed(each, chosen[0])
    clock.now += 0.1
    beliefs.listed(Replica(name, ("m",) if name == chosen[0] else (), 20, 6 * (name == chosen[0])) for name in NAMES)
    clock.now += 0.1
    for each in sent:
        beliefs.completed(each, chosen[0])
    assert (await beliefs.ranked("next", "m")).names[0] == chosen[0]


async def test_a_request_without_a_model_goes_to_who_is_least_busy():
    beliefs, clock = beliefs_of()
    clock.now += 2 * LAG
    beliefs.listed(Replica(name, (), 5, 0 if name == "b" else 4) for name in NAMES)
    assert (await beliefs.ranked("r1", "")).names[0] == "b"


async def test_another_replica_than_chosen_may_take_it_and_the_end_counts_once():
    beliefs, _ = beliefs_of()
    first, second, *_ = (await beliefs.ranked("r1", "m")).names
    beliefs.routed("r1", second)
    beliefs.completed("r1", first)
    assert beliefs.in_flight == 1, "that was the refusal of the first one"
    beliefs.completed("r1", second)
    beliefs.completed("r1", second)
    assert beliefs.in_flight == 0


@pytest.mark.parametrize("taken", [False, True])
async def test_a_refusal_is_no_answer(taken):
    beliefs, _ = beliefs_of()
    chosen = (await beliefs.ranked("r1", "m")).names[0]
    if taken:
        beliefs.routed("r1", chosen)
    beliefs.completed("r1", chosen)
    assert beliefs.served == int(taken) and beliefs.in_flight == 0


async def test_asked_again_it_decides_anew_and_forgets_the_first_time():
    beliefs, _ = beliefs_of()
    first = (await beliefs.ranked("r1", "m")).names[0]
    beliefs.gone(first)
    again = await beliefs.ranked("r1", "m")
    assert first not in again.names and beliefs.in_flight == 1


async def test_a_replica_that_is_slow_to_say_is_asked_again_before_others_are():
    beliefs, _ = beliefs_of()
    asked = [await beliefs.ranked("r1", "m") for _ in range(TRIES)]
    assert [each.alone for each in asked] == [True] * (TRIES - 1) + [False]
    assert len({each.names for each in asked}) == 1 and beliefs.loads_expected == 1, "decided for once"
    assert (await beliefs.ranked("r1", "m")).alone, "and now anew"
    assert beliefs.in_flight == 1


async def test_without_replicas_ray_may_choose():
    beliefs, _ = beliefs_of(names=())
    assert await beliefs.ranked("r1", "m") == Ranked(()) and beliefs.undecided == 1


async def test_whoever_was_decided_for_and_never_sent_is_forgotten():
    beliefs, _ = beliefs_of()
    await beliefs.ranked("r1", "m")
    beliefs.abandoned(["r1", "unknown"])
    assert beliefs.in_flight == 0


async def test_a_caller_that_leaves_while_it_waits_is_forgotten():
    beliefs, _ = beliefs_of(models=1, names=("a",), most=50)
    await beliefs.ranked("r1", "m")
    beliefs.routed("r1", "a")
    waiting = asyncio.create_task(beliefs.ranked("r2", "other"))
    await asyncio.sleep(0)
    assert not waiting.done(), "the only slot is in use"
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert beliefs.in_flight == 1
    beliefs.completed("r1", "a")
    assert (await beliefs.ranked("r3", "third")).names == ("a",)


def test_it_is_time_to_look_again_once_a_second():
    beliefs = Beliefs(RouterOptions(), clock=(clock := Clock()))
    assert beliefs.due()
    beliefs.listed([])
    assert not beliefs.due()
    clock.now += EVERY
    assert beliefs.due()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"max_models": 0}, "at least 1"),
        ({"policy": "fastest"}, "unknown; use one of"),
        ({"max_wait": 0.0}, "above 0"),
        ({"max_model": 4}, "unknown field"),
        ({"max_models": "4"}, "Expected `int`"),
    ],
)
def test_options_without_sense_are_refused(wrong, says):
    with pytest.raises((ValueError, msgspec.ValidationError), match=says):
        msgspec.convert(wrong, RouterOptions)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "end", "list", "gone", "leave", "time"]),
        st.integers(0, 5),
        st.sampled_from(["m1", "m2", "m3", ""]),
    ),
    max_size=30,
)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_whatever_happens_every_request_ends_once(steps):
    asyncio.run(_play(steps))


async def _play(steps):
    beliefs, clock = beliefs_of(models=1, names=("a", "b"), max_wait=0.02)
    sent = {}
    for number, (what, which, model) in enumerate(steps):
        clock.now += 0.1
        if what == "ask":
            waiting = asyncio.create_task(beliefs.ranked(f"r{number}", model))
            await asyncio.sleep(0)
            clock.now += 0.1
            found = await asyncio.wait_for(waiting, 5)
            if found.names:
                sent[f"r{number}"] = found.names[0]
        elif what == "end" and sent:
            name = sorted(sent)[which % len(sent)]
            beliefs.completed(name, sent.pop(name))
        elif what == "leave" and sent:
            name = sorted(sent)[which % len(sent)]
            del sent[name]
            beliefs.abandoned([name])
        elif what == "list":
            beliefs.listed(Replica(name, (model,) if model else (), 3, which) for name in ("a", "b")[: 1 + which % 2])
        elif what == "gone":
            beliefs.gone("a")
        else:
            clock.now += which
        assert beliefs.in_flight == len(sent)
    for name, replica in sent.items():
        beliefs.completed(name, replica)
    assert beliefs.in_flight == 0
