"""Whether a request must wait although some pod would take it, or is refused by chance, since the fleet is busy.

In: a case. Out: words for the client, or None: it may go. Not here: how ceilings are told from settings
(`core.admission.ceilings`), what becomes of the request then (`core.waiting`).
"""

from lorapick.core.admission import saturation
from lorapick.core.admission.ceilings import OPEN, ceilings, period
from lorapick.core.case import Case
from lorapick.core.draw import draw_for
from lorapick.core.facts import tokens_in_flight
from lorapick.core.state import FleetState
from lorapick.model.bands import SaturationSettings, Spread
from lorapick.model.units import Ratio

_DETECTOR = SaturationSettings()


def why_shed(case: Case) -> str | None:
    """Why a request of priority below 0 is refused while pods have room; None: it is not.

    Chance is drawn once per request: who is tried again has the same draw.
    """
    admission, request = case.state.settings.admission, case.flight.request
    text = f"its priority is {request.priority}, below 0 (objectives), and the pods are"
    if admission.saturation is not None:
        level = _level(case, admission.saturation)
        if level >= saturation.FULL:
            return f"{text} saturated: {level:.2f} of 1 (admission.saturation)"
    chance = admission.chance
    if chance is None or not case.state.columns.row_of:
        return None
    level = _level(case, chance)
    likely = min(1.0, chance.factor * level**chance.power)
    if draw_for(case.state.seed, request.id, purpose="chance") >= likely:
        return None
    return f"{text} at {level:.2f} of 1, where {likely:.0%} of such requests are refused (admission.chance)"


def _level(case: Case, thresholds: SaturationSettings) -> Ratio:
    """Of the pods that it may go to."""
    return _saturation(case, thresholds, subset=case.flight.request.subset)


def _saturation(case: Case, thresholds: SaturationSettings, *, subset: tuple[str, ...] | None = None) -> Ratio:
    state, columns = case.state, case.state.columns
    shares = []
    if (requests := thresholds.requests) is not None:
        counts = {row: float(load.in_flight) for row, load in state.loads.items()}
        shares.append(saturation.share(columns, counts, most=requests, subset=subset))
    if (tokens := thresholds.tokens) is not None:
        shares.append(saturation.share(columns, tokens_in_flight(state), most=tokens, subset=subset))
    return max(shares) if shares else saturation.level(columns, thresholds, now=case.now, subset=subset)


def why_held_back(case: Case, *, tries: bool = True) -> str | None:
    """Why it must wait although some pod would take it; None: it need not.

    With `tries` false nothing is counted: somebody only asks.
    """
    state = case.state
    settings = state.settings.admission.ceilings
    if settings is None or not case.policy.waits:
        return None
    priority = case.flight.request.priority
    level = _saturation(case, state.settings.admission.saturation or _DETECTOR)
    if tries:
        state.queues.ceilings.saw(priority, now=case.now)
    known = state.queues.ceilings.known([priority, *_declared(state)], now=case.now)
    ceiling = ceilings(settings, known, level=level)[known.index(priority)]
    if level < ceiling or (ceiling >= OPEN and not settings.full):
        return None
    if settings.spread is Spread.REFLECTED and _passes(state, priority, level=level, tries=tries):
        return None
    may = f"requests of priority {priority} are sent only below {ceiling:.2f}"
    return f"the pods are at {level:.2f} of 1, and {may} (admission.ceilings)"


def _declared(state: FleetState) -> list[int]:
    """Priorities that the configuration names."""
    objectives = [each.priority for each in state.settings.objectives]
    return objectives + [band.priority for band in state.settings.admission.bands if band.priority is not None]


def _passes(state: FleetState, priority: int, *, level: Ratio, tries: bool) -> bool:
    every = period(level)
    return every == 1 or (every > 0 and tries and state.queues.ceilings.passes(priority, period=every))
