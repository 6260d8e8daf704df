"""One command at a time per pod, and what was spent on them."""

import pytest

from lorapick.core.placement.commands import (
    LONGEST,
    LONGEST_PAUSE,
    PATIENT,
    PAUSE,
    SOON,
    Brings,
    Command,
    Commands,
    Failed,
    Kind,
)
from lorapick.model.placement import Why


def load(adapter="x", *, asked=0.0, kind=Kind.LOAD, brings=Brings.IN):
    return Command(kind, adapter, Why.PIN, asked, brings)


def test_a_pod_has_one_command_and_one_touch_beside_it():
    commands = Commands()
    commands.begin(1, load())
    commands.begin(1, load("y", kind=Kind.TOUCH))
    assert commands.busy(1) and not commands.busy(2)
    with pytest.raises(AssertionError, match="row 1 has a command already"):
        commands.begin(1, load("y"))


def test_an_end_is_of_the_command_that_it_names():
    commands = Commands()
    commands.begin(1, load())
    assert commands.end(1, "y", kind=Kind.LOAD, now=1.0) is None
    assert commands.end(1, "x", kind=Kind.UNLOAD, now=1.0) is None
    assert commands.end(1, "x", kind=Kind.LOAD, now=1.0) == load()
    assert commands.end(1, "x", kind=Kind.LOAD, now=1.0) is None, "it came twice"


def fail(commands, times, *, failed=Failed.THIS_TIME):
    for _ in range(times):
        commands.begin(1, load())
        commands.end(1, "x", kind=Kind.LOAD, now=0.0, failed=failed)


def test_a_pair_that_fails_is_tried_soon_and_then_after_pauses_that_double():
    commands = Commands()
    fail(commands, PATIENT - 1)
    assert commands.resting(1, "x", now=0.0) and not commands.resting(1, "x", now=SOON)
    fail(commands, 1)
    assert commands.resting(1, "x", now=PAUSE - 0.1) and not commands.resting(1, "x", now=PAUSE)
    fail(commands, 20)
    assert not commands.resting(1, "x", now=LONGEST_PAUSE)
    commands.begin(1, load())
    commands.end(1, "x", kind=Kind.LOAD, now=0.0)
    assert commands.failures(1, "x") == 0


def test_a_lasting_failure_is_paused_for_at_once():
    commands = Commands()
    fail(commands, 1, failed=Failed.LASTING)
    assert commands.resting(1, "x", now=PAUSE - 0.1)


def test_commands_of_which_nothing_is_heard_are_overdue():
    commands = Commands()
    commands.begin(1, load(asked=5.0))
    commands.begin(2, load(asked=6.0, kind=Kind.TOUCH))
    assert commands.overdue(4.9 + LONGEST) == []
    assert [row for row, _ in commands.overdue(6.0 + LONGEST)] == [1, 2]


def test_only_what_brings_and_is_not_insisted_on_is_a_move_and_two_steps_are_one():
    commands = Commands()
    commands.begin(1, load())
    commands.begin(2, load(brings=Brings.HALFWAY), insisted=False)
    assert (commands.moves_in_last_minute(0.0), commands.halfway(2, "x")) == (1, True)
    commands.begin(2, load(kind=Kind.TOUCH), insisted=False)
    assert (commands.moves_in_last_minute(0.0), commands.halfway(2, "x")) == (1, False)
    commands.begin(1, load(kind=Kind.TOUCH, brings=Brings.NOTHING), insisted=False)
    commands.begin(3, load(), insisted=False)
    assert (commands.moves_in_last_minute(0.0), commands.moves_in_last_minute(60.0)) == (2, 0)
    assert commands.brought(1, "x") == 0.0 and commands.brought(1, "y") is None


def test_an_adapter_is_being_brought_until_the_pod_answers():
    commands = Commands()
    commands.begin(1, load(brings=Brings.HALFWAY))
    assert not commands.bringing(1, "x"), "into host memory"
    commands.begin(1, load(kind=Kind.TOUCH))
    assert commands.bringing(1, "x") and not commands.bringing(1, "y")
    commands.end(1, "x", kind=Kind.TOUCH, now=1.0)
    assert not commands.bringing(1, "x")


def test_a_new_process_has_no_past():
    commands = Commands()
    fail(commands, PATIENT)
    commands.begin(1, load(brings=Brings.HALFWAY))
    commands.load_began(1, now=0.0)
    commands.forget_pod(1)
    assert not commands.busy(1) and not commands.failures(1, "x") and not commands.halfway(1, "x")
    assert commands.loads_in_last_minute(1, now=0.0) == 0 and commands.brought(1, "x") is None


def test_whom_pods_are_told_to_forget():
    commands = Commands()
    commands.begin(1, load(kind=Kind.UNLOAD))
    commands.begin(2, load())
    assert commands.unloading("x") == [1] and commands.unloading("y") == []
