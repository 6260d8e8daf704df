"""Whether one more request may wait, by its priority and its size.

In: a case that would begin to wait. Out: what is full, in words for the client. Not here: how many may wait at all, and
who gives way then (see `core.waiting`).
"""

from collections.abc import Iterator

from lorapick.core.case import Case
from lorapick.core.state import FleetState
from lorapick.model.bands import Band
from lorapick.model.requests import Request
from lorapick.model.units import Bytes


def why_full(case: Case) -> str | None:
    """What is full; None: there is room.

    A request whose size nobody measured takes no room, and finds none where others fill it to the last byte.
    """
    state, request = case.state, case.flight.request
    admission = state.settings.admission
    band = _band(admission.bands, request.priority)
    return (_of_band(state, request, band=band) if band is not None else None) or _too_large(
        request, [*_waiting(state)], most=admission.max_bytes, named="admission.max_bytes"
    )


def _band(bands: tuple[Band, ...], priority: int) -> Band | None:
    by_priority = {band.priority: band for band in bands}
    return by_priority.get(priority, by_priority.get(None))


def _of_band(state: FleetState, request: Request, *, band: Band) -> str | None:
    priority = request.priority
    if band.max_queued is not None:
        held = sum(state.flights[each].request.priority == priority for each in state.holds.held)
        if state.queues.of_priority(priority) + held >= band.max_queued:
            return f"{band.max_queued} requests of priority {priority} wait already (admission.bands)"
    same = [each for each in _waiting(state) if each.priority == priority] if band.max_bytes is not None else []
    return _too_large(request, same, most=band.max_bytes, named=f"of priority {priority}, admission.bands")


def _too_large(request: Request, waiting: list[Request], *, most: Bytes | None, named: str) -> str | None:
    if most is None:
        return None
    taken = sum(each.body_bytes or 0 for each in waiting)
    size = request.body_bytes or 0
    if taken + size <= most and taken < most:
        return None
    return f"{taken} bytes of requests wait already, and with its {size} it would be more than {most} ({named})"


def _waiting(state: FleetState) -> Iterator[Request]:
    """Requests that wait for a load or for a place."""
    for request_id in (*state.holds.held, *state.queues.ids):
        yield state.flights[request_id].request
