"""The doctor on a running picker: puts the picture together, and asks for the diagnosis.

In: published views, operations. Out: `DoctorAnswer`, the picture with what is made of it. Not here: what is
wrong (see `core.doctor`), HTTP (see `live.admin`), words on a terminal (see `cli.doctor`).

The picture is made on the event loop; what changed in the traffic is worked out in a thread, from counts that do not
change, at most once a minute, so that no pick waits for it.
"""

import asyncio
from collections.abc import Callable

import msgspec

from lorapick.core.doctor.diagnose import diagnose
from lorapick.core.doctor.findings import Diagnosis
from lorapick.core.doctor.picture import AdapterPicture, AlertPicture, Picture, PodPicture
from lorapick.core.signals.shifts import find
from lorapick.core.signals.traffic import TrafficTable
from lorapick.live.insight import Insight, PodInsight
from lorapick.live.operations import Operations
from lorapick.live.publish import AdapterRow, PodRow, Published
from lorapick.model.shifts import Shift
from lorapick.model.units import Seconds
from lorapick.wire.admin_answers import Intent

SHIFTS_FOR: Seconds = 60.0
"""For how long shifts that were found hold."""


class DoctorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/doctor, and what `lorapick doctor --file` reads."""

    diagnosis: Diagnosis
    picture: Picture


class Doctor:
    """Looks at one picker."""

    def __init__(
        self,
        published: Published,
        operations: Operations | None = None,
        *,
        certificate_problem: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Look at what is published; with operations also at what is wanted, and inside the core.

        `certificate_problem` says why the certificate's files cannot be used; None: they can, or there are none.
        """
        self._certificate_problem = certificate_problem
        self._published = published
        self._operations = operations
        self._shifts: tuple[Shift, ...] = ()
        self._found_at: Seconds = float("-inf")
        self._finding: asyncio.Task[tuple[Shift, ...]] | None = None

    async def answer(self) -> DoctorAnswer:
        """What is wrong now."""
        inside = None if self._operations is None else self._operations.insight()
        shifts = () if inside is None else await self._changed(inside.traffic)
        picture = msgspec.structs.replace(self._picture(inside), shifts=shifts)
        return DoctorAnswer(diagnosis=diagnose(picture), picture=picture)

    async def _changed(self, traffic: TrafficTable) -> tuple[Shift, ...]:
        """What changed in the traffic, at most a minute old; whoever asks meanwhile waits for the same search."""
        if traffic.now - self._found_at < SHIFTS_FOR:
            return self._shifts
        if self._finding is None:
            self._finding = asyncio.create_task(asyncio.to_thread(find, traffic), name="doctor")
        finding = self._finding
        self._shifts = await asyncio.shield(finding)
        self._found_at = traffic.now
        if self._finding is finding:
            self._finding = None
        return self._shifts

    def _picture(self, inside: Insight | None) -> Picture:
        fleet = self._published.fleet()
        intents = {} if self._operations is None else self._operations.intents()
        totals, placement = fleet.totals, fleet.placement
        picture = Picture(
            now=fleet.now,
            wall=fleet.wall,
            watched=max(0.0, fleet.wall - fleet.started_at),
            signals=self._published.signals(),
            history=tuple(self._published.history()),
            pods=tuple(_pod(row, None if inside is None else inside.pods.get(row.name)) for row in fleet.pods),
            adapters=tuple(_adapter(row, intents.get(row.name), inside=inside) for row in self._published.adapters()),
            alerts=tuple(
                AlertPicture(name=row.name, since=row.since, facts=row.facts) for row in self._published.alerts()
            ),
            arrivals=totals.arrivals,
            faults={kind: count for kind, count in totals.faults.items() if count},
            passed={why: count for why, count in totals.passed.items() if count},
            envoy_requests=totals.envoy_requests,
            envoy_without_picker=totals.envoy_without_picker,
            pins_wanted=placement.pins_wanted,
            pins_missing=placement.pins_missing,
            pins_without_place=placement.pins_without_place,
            pin_missing_longest=placement.pin_missing_longest,
            certificate_problem=self._certificate_problem(),
        )
        return picture if inside is None else _with_insight(picture, inside)


def _with_insight(picture: Picture, inside: Insight) -> Picture:
    settings = inside.settings
    return msgspec.structs.replace(
        picture,
        alert_bounds=settings.alerts,
        slo=settings.slo,
        stale_after=settings.scrape.stale_after,
        loads=inside.loads,
        refused=dict(inside.refused),
        pin_problems=dict(inside.pin_problems),
        pin_missing_longest=inside.pin_missing,
        splits_requests=inside.splits,
        roles=inside.roles,
    )


def _pod(row: PodRow, inside: PodInsight | None) -> PodPicture:
    found = PodPicture(
        name=row.name,
        role=row.role,
        ready=row.ready,
        reason=row.reason,
        queue_depth=row.queue_depth,
        max_queue=row.max_queue,
        running=row.running,
        in_flight=row.in_flight,
        gpu_utilization=row.gpu_utilization,
        kv_usage=row.kv_usage,
        slots=row.slots,
        scrape_age=row.scrape_age_s,
        last_error=row.last_error,
        pressure=row.pressure,
    )
    return found if inside is None else msgspec.structs.replace(found, **inside._asdict())


def _adapter(row: AdapterRow, intent: Intent | None, *, inside: Insight | None) -> AdapterPicture:
    facts = None if intent is None else intent.facts
    rank = row.rank if facts is None or facts.rank is None else facts.rank
    return AdapterPicture(
        name=row.name,
        declared=row.declared,
        rank=rank,
        size=None if facts is None else facts.size,
        source=None if intent is None else intent.source,
        fingerprint=None if facts is None else facts.fingerprint,
        base_model=None if facts is None else facts.base_model,
        problem=None if intent is None else intent.problem,
        pinned=None if intent is None else intent.pin is not None,
        slots=sum(len(row.pods.get(tier, ())) for tier in ("gpu_idle", "gpu_serving")),
        known_to=None if inside is None or inside.known_to is None else inside.known_to.get(row.name),
        requests=row.requests,
    )
