"""Pins in simulated fleets where everything goes wrong: wanted is reached, and no pin is missing for long.

For each time that a pin was missing from its pod, in truth: no longer than the pod was away, plus a tick and a load for
each command that the pod was given meanwhile and one more; plus, for each command of which nobody heard, the time until
it is given up.
"""

import pytest
from chaos_world import LATEST, LOAD, PINS, Faults, chaos, fleet, traffic
from msgspec.structs import replace

from lorapick.core.placement.commands import LONGEST
from lorapick.model import events as said
from lorapick.model.effects import Load, Touch, Unload
from lorapick.model.settings import PlacementSettings
from lorapick.sim.conservation import check
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

TICK = PlacementSettings().tick
CHAOS = {
    "loads fail": Faults(fails=0.3),
    "answers are late": Faults(late=0.5),
    "answers come twice": Faults(twice=0.5),
    "pods die mid-load": Faults(kills=0.2),
    "all of it": Faults(fails=0.3, late=0.3, twice=0.3, kills=0.1),
}


def bound(gap, faults):
    each = TICK + LOAD + (LATEST if faults.late else 0.0)
    return gap.down + (gap.commands + 1) * each + gap.lost * (LONGEST + TICK)


@pytest.mark.parametrize("what", CHAOS)
@pytest.mark.parametrize("seed", range(2))
def test_pins_come_back_in_time_when(what, seed):
    faults = CHAOS[what]
    world = chaos(faults, seed=seed, rate=10.0, settles=5.0)
    assert world.missing() == []
    assert len(world.truth.gaps) >= 6, "each pin was missing on each of its pods once, at the begin"
    for gap in world.truth.gaps:
        assert gap.seconds <= bound(gap, faults), gap


def test_pins_come_back_when_commands_are_never_answered():
    faults = Faults(lost=0.1)
    world = chaos(faults, seed=1, rate=5.0, settles=LONGEST + 5.0)
    assert world.missing() == []
    assert sum(map(len, world.lost.values())) >= 4
    for gap in world.truth.gaps:
        assert gap.seconds <= bound(gap, faults), gap


# -- placement that is off, or has nothing to do


def played(placement, *, until=20.0, pins=False):
    """Everything that the core heard and said."""
    watch, heard = Tally(start=0.0, window=10.0), []
    world = World(fleet(Faults(), placement=placement), observer=watch, seed=1)
    world.check_every = 20
    world.heard = lambda event, effects: heard.append((event, effects))
    if pins:
        for name, pin in PINS.items():
            world.kernel.at(
                1.0,
                lambda pinned: world.apply(said.PinSet, **pinned),
                argument={"adapter": name, "pin": pin},
                priority=3,
            )
        world.kernel.at(2.0, lambda _: world.apply(said.LoadAsked, adapter="other-1", lasts=9.0), priority=3)
        world.kernel.at(9.0, lambda _: world.restart_pod("pod-1", down=2.0), priority=3)
    world.run(traffic(1, rate=20.0, until=until))
    check(world, watch)
    return heard


def test_with_nothing_wanted_placement_changes_nothing():
    on, off = played(PlacementSettings()), played(PlacementSettings(enabled=False))
    assert len(on) > 400
    assert [*told(on)] == [*told(off)]


def told(heard):
    """What was heard and said, without numbers that ticks in which nothing happens move on."""
    for event, effects in heard:
        if effects or not isinstance(event, said.Ticked):
            yield replace(event, id=0), [plain(effect) for effect in effects]


def plain(effect):
    pick = getattr(effect, "pick", None)
    more = {"pick": replace(pick, version=0)} if pick is not None else {}
    return replace(effect, cause=0, **more)


def test_what_is_switched_off_commands_nothing():
    heard = played(PlacementSettings(enabled=False), pins=True)
    assert not [each for _, effects in heard for each in effects if isinstance(each, Load | Touch | Unload)]
    kinds = {type(each).__name__ for _, effects in played(PlacementSettings(), pins=True) for each in effects}
    assert {"Load", "Touch"} <= kinds, "switched on it does"
