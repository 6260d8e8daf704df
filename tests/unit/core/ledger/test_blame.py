"""Whose doing a change was."""

from lorapick.core.ledger.blame import MOST_ASKED, Blame, Happened
from lorapick.model import events
from lorapick.model.effects import LOAD_FAILED, Load, Note, Register, Touch
from lorapick.model.events import By
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier

BEGINS = Change(1.0, "a", "x", Tier.DISK, Tier.LOADING, 0.0, Tier.DISK)
LEAVES = Change(2.0, "a", "x", Tier.GPU_IDLE, Tier.CPU, 1.0, Tier.DISK)
TICK = events.Ticked(t=1.0, id=1)


def began(pod: str = "a", adapter: str = "x") -> events.LoadStarted:
    return events.LoadStarted(t=1.0, id=2, pod=pod, adapters=(adapter,), by=By.CONTROLLER)


def test_a_command_is_remembered_until_its_load_begins() -> None:
    blame = Blame()
    blame.remember(Load(cause=1, pod="a", adapters=("w", "x"), why="pin"))
    assert blame.cause(BEGINS, Happened(began(), ())) == ("controller", None, "pin")
    assert blame.cause(BEGINS, Happened(TICK, ())) == ("engine", None, None)


def test_registering_and_touching_bring_adapters_too() -> None:
    for effect, why in ((Register, "register"), (Touch, "touch")):
        blame = Blame()
        blame.remember(effect(cause=1, pod="a", adapter="x"))
        assert blame.cause(BEGINS, Happened(TICK, ())) == ("controller", None, why)


def test_a_load_told_with_its_command() -> None:
    effects = [Load(cause=1, pod="a", adapters=("x",), why="plan")]
    assert Blame().cause(BEGINS, Happened(TICK, effects)) == ("controller", None, "plan")


def test_memory_is_bounded() -> None:
    blame = Blame()
    blame.remember(Load(cause=1, pod="a", adapters=("x", *map(str, range(MOST_ASKED))), why="pin"))
    assert blame.cause(BEGINS, Happened(TICK, ())) == ("engine", None, None)


def test_why_it_left() -> None:
    blame = Blame()
    assert blame.left_why(LEAVES, Happened(TICK, ())) == "capacity"
    assert blame.left_why(LEAVES._replace(restart=True), Happened(TICK, ())) == "restart"
    gone = events.PodGone(t=2.0, id=3, pod="a")
    assert blame.left_why(LEAVES._replace(restart=True), Happened(gone, ())) == "gone"
    for adapter, why in (("x", "unload"), ("y", "capacity")):
        unloaded = events.Unloaded(t=2.0, id=3, pod="a", adapter=adapter)
        assert blame.left_why(LEAVES, Happened(unloaded, ())) == why
    failed = Note(cause=3, kind=LOAD_FAILED, facts={"pod": "a", "adapter": "x"})
    assert blame.left_why(LEAVES, Happened(TICK, [failed])) == "failed"
    assert blame.left_why(LEAVES._replace(before=Tier.LOADING), Happened(TICK, ())) == "dropped"


def test_how_a_load_ended() -> None:
    ends = BEGINS._replace(before=Tier.LOADING, after=Tier.DISK)
    refused = events.LoadFailed(t=2.0, id=3, pod="a", adapter="x", by=By.CONTROLLER, why="no room")
    assert Blame().load_end(ends, Happened(refused, ())) == "failed"
    assert Blame().load_end(ends, Happened(TICK, ())) == "dropped"
