"""Whether what was counted is what happened: the laws that hold in every run.

In: a world that stands still, and its tally. Out: nothing, or an AssertionError that says what differs. Each law
compares two accounts that come from different places: what observers were told, with what pods, core and workload have
themselves. Not here: requests that nobody has (see `World.run`).
"""

from lorapick.sim.tally import Tally
from lorapick.sim.world import World


def check(world: World, tally: Tally) -> None:
    """All of them, and the invariants of the core and of every pod."""
    tally.check()
    check_arrivals(world, tally)
    check_slots(world, tally)
    check_time(world)
    world.check()


def check_arrivals(world: World, tally: Tally) -> None:
    """Every request that the workload gave, followers included, was counted, and came to the core."""
    heard = world.fleet.state.tally.arrivals
    assert world.drawn == tally.arrivals == heard, (
        f"{world.drawn} arrivals were drawn, {tally.arrivals} counted, and the core was told of {heard}"
    )


def check_slots(world: World, tally: Tally) -> None:
    """Residencies are those of the pods' slots, and add up to slots in use times time."""
    now = world.kernel.now
    for name, sim in world.pods.items():
        tally.residencies.check(name, held=sim.held(now), slot_seconds=sim.slot_seconds(now), now=now)


def check_time(world: World) -> None:
    """The pods' time adds up to the clock."""
    now = world.kernel.now
    for name, sim in world.pods.items():
        total = sim.time(now).total
        assert abs(total - now) <= 1e-6 * max(1.0, now), f"{name}: {total} s are accounted for, {now} s passed"
