"""Scheduling profiles as a policy: filters in order, scorers clamped to [0, 1] and weighed, one picker.

In: checked profiles (`model.profiles`). Out: keys of the candidates; those that a filter of the profile took out are no
candidates (`narrow`). A pod that prefills for another is looked for by the profile for that.
Not here: the plugins (see `tables`), what is true of every policy (`core.picking.filters`), files (`wire.config.epp`).
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.epp.plugin import Filter, Scorer
from lorapick.core.picking.epp.tables import OWN, PICKERS, make_filter, make_scorer
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.profiles import PluginSpec, Profile, Profiles
from lorapick.model.settings import PickingSettings

NAME = "endpoint-picker-config"


def nearest_policy(settings: PickingSettings) -> str:
    """Name of the policy that looks at the same kinds of things, for predictions, which know policies by name only."""
    if settings.profiles is None:
        return settings.policy
    types = [spec.type for spec in settings.profiles.decode.scorers]
    if any(each in OWN for each in types):
        return "weighted"
    return "gie-lora" if "lora-affinity-scorer" in types else "gie-default"


def clamped(value: float) -> float:
    """The value, or the nearer bound of [0, 1]; 0 for what is no number."""
    return min(1.0, max(0.0, value))


class Running:
    """One profile, ready to run."""

    def __init__(self, profile: Profile, settings: PickingSettings) -> None:
        self.filters = [make_filter(spec) for spec in profile.filters]
        self.scorers = [make_scorer(spec, settings) for spec in profile.scorers]
        self.weights = [spec.weight for spec in profile.scorers]
        self.names = [spec.name for spec in profile.scorers]
        self.picker = PICKERS[profile.picker.type]

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Candidates that all filters leave; the filters after one that leaves nobody are not asked."""
        for each in self.filters:
            if not rows:
                break
            rows = each.keep(query, view, rows=rows)
        return rows

    def totals(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Weighed sums of the scorers, in the order of the profile."""
        sums = [0.0] * len(rows)
        for scorer, weight in zip(self.scorers, self.weights, strict=True):
            values = scorer.values(query, view, rows=rows)
            # Two comparisons cost a third of two calls.
            sums = [
                total + weight * (value if 0.0 <= value <= 1.0 else clamped(value))
                for total, value in zip(sums, values, strict=True)
            ]
        return sums

    def parts(self, query: Query, view: FleetView, *, rows: list[int]) -> list[dict[str, float]]:
        """The same before they are weighed, by name of the scorer, for each row."""
        found: list[dict[str, float]] = [{} for _ in rows]
        for name, scorer in zip(self.names, self.scorers, strict=True):
            for part, value in zip(found, scorer.values(query, view, rows=rows), strict=True):
                part[name] = clamped(value)
        return found


class _Nobody(Running):
    """In place of a profile that a request names and that is not there: nobody may serve it."""

    def __init__(self) -> None:
        picker = PluginSpec(type="max-score-picker", name="")
        super().__init__(Profile(name="", picker=picker), PickingSettings())

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """None."""
        del query, view, rows
        return []


NOBODY = _Nobody()


class ProfilePolicy:
    """Runs the profile that is asked for."""

    name = NAME
    keeps_sessions = False
    counts_in_flight = False
    narrows = True

    def __init__(self, settings: PickingSettings, profiles: Profiles) -> None:
        self._decode = Running(profiles.decode, settings)
        self._prefill = Running(profiles.prefill, settings) if profiles.prefill is not None else self._decode
        self._header = profiles.chosen_by
        self._named = {each.name: Running(each, settings) for each in profiles.named}
        plugins = [*self._all()]
        self.coalesces = any(scorer.aware for each in self._profiles() for scorer in each.scorers)
        self.waits = self.coalesces or profiles.waits
        """Where not, a request goes to the best pod whatever waits there already, as with llm-d."""
        self.reads: tuple[str, ...] = tuple(dict.fromkeys(name for each in plugins for name in each.reads))
        self.needs: tuple[str, ...] = tuple(dict.fromkeys(name for each in plugins for name in each.needs))
        """Facts that must be collected for it (`facts`)."""

    def _profiles(self) -> list[Running]:
        return [self._decode, self._prefill, *self._named.values()]

    def _all(self) -> list[Filter | Scorer]:
        found: list[Filter | Scorer] = []
        for each in self._profiles():
            found += [*each.filters, *each.scorers]
        return found

    def _of(self, query: Query) -> Running:
        if self._header is not None and (name := query.facts.headers.get(self._header, "").strip()):
            return self._named.get(name, NOBODY)
        return self._prefill if query.prefill else self._decode

    def narrow(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those of the candidates that the profile's filters leave."""
        return self._of(query).keep(query, view, rows=rows)

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Key of one pod among the candidates."""
        among = rows if row in rows else sorted([*rows, row])
        return self.score_rows(query, view, rows=among)[among.index(row)]

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Keys of the candidates."""
        running = self._of(query)
        return running.picker(query, view, rows=rows, scores=running.totals(query, view, rows=rows))

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        rows: list[int] = np.flatnonzero(may).tolist()
        found = np.full(columns.rows, -np.inf)
        found[rows] = self.score_rows(query, columns, rows=rows)
        return found

    def terms(self, query: Query, view: FleetView, *, row: int) -> None:
        """None: its parts are not those of `Terms` (see `parts`)."""
        del query, view, row

    def parts(self, query: Query, view: FleetView, *, rows: list[int]) -> dict[int, dict[str, float]]:
        """What each scorer gives each of the candidates, clamped and not weighed, by row and its name."""
        return dict(zip(rows, self._of(query).parts(query, view, rows=rows), strict=True))

    def weights(self) -> dict[str, float]:
        """Weight of each scorer by its name, of the profile that picks the pod that answers."""
        return dict(zip(self._decode.names, self._decode.weights, strict=True))
