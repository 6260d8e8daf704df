"""Which pods may begin a load, and how many adapters more may come into use on each.

In: pressure, loads under way, adapters in use. Out: the columns `pressure` and `slots_left`. Only in front of policies
that leave admission to us (`Policy.coalesces`); others see pressure and nothing else. Not here: waiting.

One load at a time per pod, and loads on no more than a share of the pods at once [R3.3]: a load stops everything on its
pod, and when every pod stops at some time, what waits for one moves to the next: a convoy.
"""

from math import ceil, inf

from lorapick.core.admission.pressure import Pressure
from lorapick.core.admission.turns import Turns
from lorapick.core.columns import CODE, PodColumns
from lorapick.core.placement.keeping import Keeps
from lorapick.core.podload import PodLoad
from lorapick.core.residency.table import Residency
from lorapick.model.disaggregation import Choice
from lorapick.model.reasons import Reason
from lorapick.model.settings import Settings
from lorapick.model.units import Seconds

_BUDGET = CODE[Reason.LOAD_BUDGET]
_PRESSURE = (0, CODE[Reason.PRESSURE_SOFT], CODE[Reason.PRESSURE_HARD], CODE[Reason.PRESSURE_CRITICAL])
"""By `Pressure`."""
assert len(_PRESSURE) == len(Pressure)


class Gates:
    """Writer of both columns."""

    __slots__ = (
        "_at_once",
        "_brings",
        "_closed",
        "_columns",
        "_loads",
        "_residency",
        "_share",
        "_slots",
        "_turns",
        "claims",
        "keeps",
        "on",
        "warming",
    )

    def __init__(
        self, columns: PodColumns, residency: Residency, *, loads: dict[int, PodLoad], turns: Turns, settings: Settings
    ) -> None:
        self._columns, self._residency, self._loads, self._turns = columns, residency, loads, turns
        self.keeps: dict[int, Keeps] = {}
        """What pods keep, by row; shared with placement."""
        self.claims: dict[int, None] = {}
        """Pods on which a pin waits for a load to end, there or elsewhere; shared with placement. The next is its."""
        self.warming: dict[int, Seconds] = {}
        """Pods that take no traffic yet; shared with placement. Their loads harm nobody, and are counted as nothing."""
        self.on = False
        """Whether anything but pressure counts."""
        self._closed = False
        """Whether as many pods load as may."""
        self.configure(settings, on=False)

    def configure(self, settings: Settings, *, on: bool) -> None:
        """Take over settings."""
        self.on = on
        self._share = settings.budgets.pods_loading_share
        self._at_once = settings.budgets.loads_at_once
        self._slots = settings.admission.slot_budget
        self._brings = settings.disaggregation.choice is Choice.JOINT
        self.recount()

    def switch(self, *, on: bool) -> None:
        """Write both columns as if anything but pressure counted, or did not."""
        if on is not self.on:
            self.on = on
            self.recount()

    def recount(self) -> None:
        """Pods went, or settings changed: what holds for one pod may have changed for all."""
        self._closed = self._too_many_load()
        for row in self._loads:
            self._write(row)

    @property
    def most_loading(self) -> int:
        """Pods that may load at once; at least one."""
        return max(1, ceil(self._share * len(self._loads)))

    def refresh(self, row: int) -> None:
        """Something changed on a pod."""
        if self._closed is not self._too_many_load():
            self.recount()
        else:
            self._write(row)

    def _too_many_load(self) -> bool:
        rows = self._rows_loading() + sum(not self._residency.home(row).loading for row in self.claims)
        return self.on and rows > 0 and rows >= self.most_loading

    def _rows_loading(self) -> int:
        rows = self._residency.rows_loading
        if rows and self.warming:
            rows -= sum(self._residency.home(row).loading > 0 for row in self.warming)
        return rows

    def open(self, row: int) -> None:
        """Show the slot that is being cleared on a pod to the one whose turn it is; `refresh` hides it again."""
        self._columns.leave(row, self._left(row), kept=self._kept(row))

    def _left(self, row: int) -> float:
        home = self._residency.home(row)
        return home.shadow.gpu_slots - len(home.in_use)

    def _write(self, row: int) -> None:
        self._residency.look(row)
        code, left = self._of(row)
        self._columns.press(row, code)
        self._columns.leave(row, left, kept=self._kept(row))

    def _kept(self, row: int) -> float:
        """Slots of pinned adapters that are not in use, so that nobody else takes them."""
        keeps = self.keeps.get(row)
        if keeps is None:
            return 0.0
        if keeps.reserved:
            return inf
        in_use = self._residency.home(row).in_use
        return float(sum(name not in in_use for name in keeps.pinned)) if self.on else 0.0

    def check(self) -> None:
        """Both columns are what they would be if they were written now."""
        closed = self._too_many_load()
        assert self._closed is closed, f"{self._rows_loading()} pods load, of {self.most_loading} that may"
        for row in self._loads:
            found = self._columns.pressure[row], self._columns.slots_left[row]
            assert self._columns.kept[row] == self._kept(row), f"row {row}: kept slots are {self._columns.kept[row]}"
            assert found == self._of(row), f"row {row}: pressure and slots left are {found}, not {self._of(row)}"

    def _of(self, row: int) -> tuple[int, float]:
        load = self._loads[row]
        code = _PRESSURE[load.pressure_tier]
        if not self.on:
            return code, inf
        home = self._residency.home(row)
        # Who is awaited there comes in before anybody who is not: once its request has come its engine asks nobody.
        awaited = self._brings and bool(home.absent) and home.shadow.free <= len(home.absent)
        claimed = row in self.claims or awaited
        code = code or (_BUDGET if claimed else self._load_code(row))
        if not self._slots:
            return code, inf
        return code, 0.0 if self._turns.taken(row) else home.shadow.gpu_slots - len(home.in_use)

    def may_bring(self, row: int) -> bool:
        """Whether a load of somebody who is awaited on a pod may begin now."""
        return not _PRESSURE[self._loads[row].pressure_tier] and not self._load_code(row, harmless=True)

    def _load_code(self, row: int, *, harmless: bool = False) -> int:
        """Why no load may begin on a pod, for whomever; 0: one may.

        It would be `harmless` to throw out a reserved adapter that does not count as being there, to bring it in.
        """
        home = self._residency.home(row)
        # Where nobody is, a load harms nobody.
        harms = self._loads[row].in_flight > 0 and not home.loading
        if home.loading >= self._at_once or (self._closed and harms):
            return _BUDGET
        keeps = self.keeps.get(row)
        if keeps is not None and keeps.endangered(home) is not None:
            return _BUDGET  # until a touch has made another adapter the next to go
        endangered = home.endangered()
        if endangered is not None and not (harmless and endangered in home.absent):
            return _BUDGET  # until the request that it is reserved for has come
        return 0
