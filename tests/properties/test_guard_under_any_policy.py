"""Whatever is suggested, even at random, the guard keeps its word; and the judge of that would notice if it did not."""

from random import Random

import pytest
from guard_course import Course
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.placement import guard, registering
from lorapick.core.placement.commands import Commands


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_guard_keeps_its_word_whatever_is_suggested(random):
    with pytest.MonkeyPatch.context() as patch:
        Course(random, patch).play(40)


def test_the_guard_keeps_its_word_for_long():
    with pytest.MonkeyPatch.context() as patch:
        course = Course(Random(1), patch)
        course.play(600)
    assert course.judge.commands > 30


MUTANTS = {
    "pins and wanted ones may go": (guard, "protected", lambda *_, **__: False),
    "last copies may go": (guard, "wanted_last_copy", lambda *_, **__: False),
    "any pod may load": (guard, "_unready", lambda *_, **__: None),
    "any adapter fits": (guard, "cannot_serve", lambda *_, **__: None),
    "all pods may load at once": (guard, "rows_loading", lambda _: 0),
    "no budget of loads": (Commands, "loads_in_last_minute", lambda *_, **__: 0),
    "no budget of moves": (Commands, "moves_in_last_minute", lambda *_: 0),
    "what has gone may come back at once": (Commands, "brought", lambda *_, **__: None),
    "what is in use may be unloaded": (registering, "_may_unload", lambda *_, **__: True),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_guard_that_breaks_its_word_is_caught(mutant):
    assert any(breaks(mutant, seed) for seed in range(12)), f"nobody noticed that {mutant}"


def breaks(mutant, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*MUTANTS[mutant])
        try:
            Course(Random(seed), patch).play(200)
        except AssertionError:
            return True
    return False
