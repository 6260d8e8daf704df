"""The picker's own Prometheus metrics.

In: every event with its effects (`Observer`), the residency changes of the event, pick times from the driver, what is
published of the fleet at each scrape. Out: a page in Prometheus's text format and a server for it, or the samples.
Names and labels: docs/metrics.md. Not here: metrics of pods (they have their own pages), anything that a decision
rests on. Only `page` needs an event loop; a simulated fleet is shown by `samples`.

An event costs a few dictionary look-ups and counter increments; whatever needs the whole fleet is made at the
scrape. Unknown values have no sample: a gauge of 0 would be a claim.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from prometheus_client import ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lorapick.core.fleet import Fleet
from lorapick.live.families_arms import ArmFamilies
from lorapick.live.families_epp import DIALECTS
from lorapick.live.families_gauges import FleetGauges, Moment
from lorapick.live.guard import LOOPBACK, Guard
from lorapick.live.labels import AdapterLabels
from lorapick.live.metrics_counting import Counting
from lorapick.live.metrics_epp import EppMetrics
from lorapick.live.publish import Published
from lorapick.live.tls.door import PLAIN, Door
from lorapick.live.tls.tokens import TokenDoor
from lorapick.live.web import serving, split_bind
from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.settings import SloSettings
from lorapick.model.units import Seconds

SETTING = "server.metrics"


class Metrics(Collector):
    """An `Observer` that counts, and the page that shows the counts."""

    def __init__(self, *, adapter_labels: int = 50, compat: str = "both", slo: SloSettings | None = None) -> None:
        """Begin to count.

        Args:
            adapter_labels: adapters with a label of their own, the busiest; the others share one.
            compat: whose names requests are shown under beside our own: a key of `families_epp.DIALECTS`.
            slo: what users were promised, to be shown beside what they get.
        """
        self._labels = AdapterLabels(adapter_labels)
        self._epp = EppMetrics(DIALECTS[compat])
        self._slo = SloSettings() if slo is None else slo
        self.counting = Counting(labels=self._labels, epp=self._epp, slo=self._slo)
        self._gauges = FleetGauges()
        self._arms = ArmFamilies()
        self._process = ProcessCollector(registry=None)
        self._published: Published | None = None
        self._fleet: Fleet | None = None
        self._more: list[Collector] = []

    def show(self, published: Published) -> None:
        """Name the picker whose gauges the page shows. Until then the page has none."""
        self._published = published

    def also(self, collector: Collector) -> None:
        """Show this one's families too; it may be asked in another thread."""
        self._more.append(collector)

    def follow(self, fleet: Fleet) -> None:
        """Name the core whose residency changes are counted; events must be observed right after it applied them."""
        self._fleet = fleet

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """Count one event and what came of it."""
        self.counting.observe(event, effects, changes=self._fleet.changes if self._fleet is not None else ())

    def pick_seconds(self, seconds: Seconds) -> None:
        """Take note of how long one decision took."""
        self.counting.families.pick_seconds.add(seconds)
        self._epp.decided(seconds)

    async def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type.

        The snapshot is taken here, in the picker's loop; the text is made in a thread, because a large fleet's page
        takes tens of milliseconds and picks must not wait for all of it.
        """
        self.take()
        encode, content_type = choose_encoder(accept)
        return await asyncio.to_thread(encode, _Page(self, self._process)), content_type

    def samples(self) -> list[Sample]:
        """Everything as it is now but the process's own metrics: name, labels, value; without an event loop."""
        return [sample for family in self.families() for sample in family.samples]

    def families(self) -> list[Metric]:
        """The same by family, for who needs types and help texts."""
        self.take()
        return [*self.collect()]

    def collect(self) -> Iterator[Metric]:
        """The families as of the last page or samples; may run in another thread."""
        yield from self.counting.families.collect()
        yield from self._gauges.collect()
        yield from self._arms.collect()
        yield from self._epp.collect()
        for collector in self._more:
            yield from collector.collect()

    def take(self) -> None:
        """Take everything as it is now, for what `collect` gives from here on."""
        moment = self._moment(self._published) if self._published is not None else None
        self._gauges.take(moment)
        self._epp.freeze(moment.fleet.pods if moment is not None else None)
        self.counting.families.freeze()
        self._arms.take(None if self._fleet is None else self._fleet.state.arms)

    def _moment(self, published: Published) -> Moment:
        fleet, core, counting = published.fleet(), self._fleet, self.counting
        known = published.adapters() if core is None else core.state.residency.names()
        counting.relabel(len(known), now=fleet.now)
        counting.forget(fleet.now)
        return Moment(
            fleet=fleet,
            signals=published.signals(),
            active=dict(counting.active),
            alerts=[alert.name for alert in published.alerts()],
            slots=counting.stays.slots(),
            loads=counting.stays.loads(),
            waiting=counting.waiting(),
            times={} if core is None else core.state.signals.useful.totals(fleet.now),
            slo=self._slo,
        )


class _Page(Collector):
    """Several collectors as one."""

    def __init__(self, *parts: Collector) -> None:
        self._parts = parts

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        for part in self._parts:
            yield from part.collect()


def metrics_app(metrics: Metrics, *, bind_host: str = "127.0.0.1", door: Door = PLAIN) -> ASGIApp:
    """Serve `/metrics`. Bound to loopback, foreign host names are refused as by the admin API."""

    async def answer(request: Request) -> Response:
        body, content_type = await metrics.page(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    app: ASGIApp = Starlette(routes=[Route("/metrics", answer)])
    if door.token is not None:
        app = TokenDoor(app, door.token, setting=f"{SETTING}_token")
    return Guard(app, bind_host=bind_host) if bind_host in LOOPBACK else app


@asynccontextmanager
async def serve_metrics(metrics: Metrics, *, bind: str, door: Door = PLAIN) -> AsyncIterator[str]:
    """Serve while the block runs; gives `host:port` as bound. Raises BindError, which names a port in use."""
    app = metrics_app(metrics, bind_host=split_bind(bind, setting=SETTING)[0], door=door)
    async with serving(app, bind, what="metrics", setting=SETTING, tls=door.tls) as address:
        yield address
