"""How a change reaches the core, and what its answer tells.

In: a maker of an event. Out: the event's id with its effects; `Done` with the pods as they are after it.
Not here: which changes there are (see the other files of this package).
"""

from collections.abc import Iterable

from lorapick.core.placement.state import Order
from lorapick.core.state import FleetState
from lorapick.live.changes.known import MOST_TOLD, pods_of, resident_rows, wanted_rows
from lorapick.live.driver import Driver, MakeEvent
from lorapick.model.effects import Effect, Note
from lorapick.model.events import Event
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds
from lorapick.wire.admin_answers import Done

MOST_NOTES = 20


class Submitting:
    """One driver, as changes see it."""

    def __init__(self, driver: Driver) -> None:
        """Change what `driver` drives."""
        self._driver = driver

    @property
    def state(self) -> FleetState:
        """To be read only."""
        return self._driver.fleet.state

    @property
    def now(self) -> Seconds:
        """The driver's clock."""
        return self._driver.now()

    def submit(self, make: MakeEvent) -> tuple[int, list[Effect]]:
        """The event's id, and what came of it at once."""
        ids: list[int] = []

        def made(t: Seconds, number: int) -> Event:
            ids.append(number)
            return make(t, number)

        effects = self._driver.submit(made)
        return ids[0], effects

    def done(self, name: AdapterName, understood: str, *, event: int, notes: Iterable[str] = ()) -> Done:
        """The answer to a change of one adapter."""
        return Done(
            changed=True,
            understood=understood,
            event=event,
            pods=pods_of(self.state, wanted_rows(self.state, name)),
            resident=pods_of(self.state, resident_rows(self.state, name)),
            notes=tuple([*notes, *self._waits(name)][:MOST_NOTES]),
        )

    def unchanged(self, name: AdapterName, understood: str) -> Done:
        """The answer when there is nothing to do."""
        state = self.state
        return Done(
            changed=False,
            understood=understood,
            pods=pods_of(state, wanted_rows(state, name)),
            resident=pods_of(state, resident_rows(state, name)),
        )

    def order_of(self, name: AdapterName) -> Order | None:
        """The order for an adapter that is not done; there is at most one."""
        return next((order for order in self.state.placement.orders if order.want.adapter == name), None)

    def _waits(self, name: AdapterName) -> list[str]:
        """Why the guard does not let it be loaded yet, pod by pod."""
        placement, targets = self.state.placement, self.state.columns.targets
        found = [
            f"waits for pod {targets[row].pod}: {refusal.reason}"
            for row in wanted_rows(self.state, name)
            if (refusal := placement.refusals.get((row, name))) is not None and self._tier(row, name) < Tier.LOADING
        ]
        return found[:MOST_TOLD]

    def _tier(self, row: int, name: AdapterName) -> Tier:
        cell = self.state.residency.home(row).cells.get(name)
        return cell.tier if cell is not None else Tier.DISK


def notes_of(effects: Iterable[Effect], kind: str) -> list[Note]:
    """Notes of one kind."""
    return [effect for effect in effects if isinstance(effect, Note) and effect.kind == kind]
