"""Merged weights, computed by hand: a step takes 10 ms, one more per request and four more per adapter.

A merge or unmerge takes 40 ms; all adapters are on the GPU when the clock starts.
"""

import pytest
from pod_helpers import MS, ask, pod, rest, told, warm

from lorapick.pod.batch import Span
from lorapick.pod.folding import Folding
from lorapick.pod.values import AdapterMerged, AdapterUnmerged, MergePolicy, Merging, RequestFinished, StepCosts

COSTS = StepCosts(a=10 * MS, b=1 * MS, c=4 * MS, d=0)


def merging(mode, *, share=0.6, patience=100 * MS, warmed="ab", slots=3, **more):
    """A pod with warm adapters, and the time."""
    policy = MergePolicy(mode=mode, seconds=40 * MS, share=share, patience=patience)
    engine = pod(merging=policy, step=COSTS, slots=slots, **more)
    if mode is Merging.BY_LOAD:
        # Loaded, and never asked for: nothing has been merged.
        for name in warmed:
            engine.load(name, engine._now)
            rest(engine)
        return engine, engine._now
    return engine, warm(engine, *warmed)


def since(start, events):
    return [(round(t - start / MS, 3), what, whom) for t, what, whom in told(events)]


def merges(events):
    return [event for event in events if isinstance(event, AdapterMerged | AdapterUnmerged)]


def finished(events):
    return [event.request_id for event in events if isinstance(event, RequestFinished)]


# ---- always ----


def test_always_a_request_of_what_is_merged_costs_nothing_but_its_own():
    engine, now = merging(Merging.ALWAYS)
    assert engine.stats(now).merged == "b"
    engine.submit(ask("r", "b", output=2), now)
    assert since(now, rest(engine)) == [
        (0, "RequestStarted", "r"),
        (11, "FirstToken", "r"),
        (22, "RequestFinished", "r"),
    ]


def test_always_another_adapter_costs_an_unmerge_and_a_merge():
    engine, now = merging(Merging.ALWAYS)
    engine.submit(ask("r", "a"), now)
    events = rest(engine)
    assert since(now, events) == [
        (40, "AdapterUnmerged", "b"),
        (80, "AdapterMerged", "a"),
        (80, "RequestStarted", "r"),
        (91, "FirstToken", "r"),
        (91, "RequestFinished", "r"),
    ]
    engine.submit(ask("base"), engine._now)
    assert [event.adapter for event in merges(rest(engine))] == ["a"]  # the base model needs an unmerge only
    assert engine.stats(engine._now).merged is None
    assert engine.stats(engine._now).time.merge == pytest.approx(6 * 40 * MS)


def test_always_an_absent_adapter_is_loaded_between_the_two():
    engine, now = merging(Merging.ALWAYS)
    engine.submit(ask("r", "c"), now)
    assert since(now, rest(engine))[:4] == [
        (40, "AdapterUnmerged", "b"),
        (40, "SwapStarted", "c"),
        (148, "SwapEnded", "c"),
        (188, "AdapterMerged", "c"),
    ]


def test_always_nothing_else_joins_while_what_is_merged_has_work_and_the_others_are_patient():
    engine, now = merging(Merging.ALWAYS)
    engine.submit(ask("r", "b", output=4), now)
    engine.submit(ask("other", "a"), now + 1 * MS)
    engine.submit(ask("s", "b", output=4), now + 2 * MS)  # joins at 11, both steps take 12
    events = rest(engine)
    assert finished(events) == ["r", "s", "other"]
    assert merges(events)[0].t == pytest.approx(now + (11 + 3 * 12 + 11 + 40) * MS)


def test_always_when_patience_ends_the_batch_runs_dry_and_the_weights_change():
    engine, now = merging(Merging.ALWAYS, patience=30 * MS)
    engine.submit(ask("r", "b", output=5), now)
    engine.submit(ask("other", "a"), now + 1 * MS)
    engine.submit(ask("late", "b"), now + 34 * MS)  # after 31 ms nobody joins
    events = rest(engine)
    assert finished(events) == ["r", "other", "late"]
    assert merges(events)[0].t == pytest.approx(now + (55 + 40) * MS)


def test_always_those_who_waited_for_a_change_join_before_the_next():
    engine, now = merging(Merging.ALWAYS, patience=0.0, seqs=1)
    for index, name in enumerate("abab"):
        engine.submit(ask(f"r{index}", name), now)
    assert finished(rest(engine)) == ["r0", "r1", "r2", "r3"]
    assert engine.stats(engine._now).running == 0


# ---- by load ----


def test_by_load_a_lone_adapter_is_merged_after_its_first_step():
    engine, now = merging(Merging.BY_LOAD)
    engine.submit(ask("r", "a", output=3), now)
    assert since(now, rest(engine)) == [
        (0, "RequestStarted", "r"),
        (15, "FirstToken", "r"),
        (55, "AdapterMerged", "a"),
        (77, "RequestFinished", "r"),
    ]
    assert engine.stats(engine._now).merged == "a"


def test_by_load_below_the_share_everything_runs_as_usual():
    engine, now = merging(Merging.BY_LOAD, share=0.6)
    engine.submit(ask("r", "a", output=3), now)
    engine.submit(ask("s", "b", output=3), now)
    events = rest(engine)
    ends = [round((event.t - now) / MS) for event in events if isinstance(event, RequestFinished)]
    assert ends == [15 + 2 * 20, 55 + 40 + 11]  # s is merged when r has left


def test_by_load_others_wait_until_their_patience_ends_and_then_run_unmerged():
    engine, now = merging(Merging.BY_LOAD, patience=100 * MS)
    engine.submit(ask("r", "a", output=30), now)
    engine.submit(ask("s", "a", output=30), now)
    engine.submit(ask("other", "b", output=2), now + 56 * MS)
    events = rest(engine)
    unmerged = [event for event in merges(events) if isinstance(event, AdapterUnmerged)]
    # Patience ends at 156, in a step of 12 ms.
    assert 156 * MS <= unmerged[0].t - 40 * MS - now < 168 * MS + 1e-9
    assert finished(events)[0] == "other"


def test_by_load_what_has_no_work_left_gives_way_at_once():
    engine, now = merging(Merging.BY_LOAD)
    engine.submit(ask("r", "a", output=3), now)
    rest(engine)
    now = engine._now
    engine.submit(ask("s", "b"), now)
    assert since(now, rest(engine))[:2] == [(40, "AdapterUnmerged", "a"), (40, "RequestStarted", "s")]


def test_an_idle_merged_adapter_makes_way_for_a_load_that_finds_no_room_beside_it():
    engine, now = merging(Merging.BY_LOAD, warmed="a", slots=1)
    engine.submit(ask("r", "a", output=3), now)
    rest(engine)
    assert engine.stats(engine._now).merged == "a"
    engine.load("b", engine._now)
    assert [word for _, word, _ in told(rest(engine))] == [
        "AdapterUnmerged",
        "SwapStarted",
        "AdapterEvicted",
        "SwapEnded",
    ]


def test_a_span_ends_with_the_step_in_which_patience_ends():
    folding = Folding(MergePolicy(mode=Merging.BY_LOAD, patience=1.0))
    span = Span(0.0, origin=0.0, step=0.25, count=20)
    assert folding.last_step(span) == 20
    for since_, last in [(0.0, 4), (0.1, 5), (-2.0, 1), (9.0, 20)]:
        folding._longest = since_
        assert folding.last_step(span) == last
