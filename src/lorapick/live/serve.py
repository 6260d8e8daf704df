"""One picker process: discovery, scraping, decisions, ext_proc, health, metrics, admin API and page.

In: settings. Out: a picker that answers until it is told to stop, then ends what it has begun.
Not here: Envoy and pods (see `live.stack`), the command line (`cli.serve`), any decision.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from lorapick.live.admin import serve_admin
from lorapick.live.discovery import FileDiscovery, PodSet
from lorapick.live.driver import Driver
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.envoy.watch import EnvoyWatch
from lorapick.live.eventlog import MAX_BYTES, EventLog
from lorapick.live.extproc_server import ExtProcServer
from lorapick.live.health import HealthServer
from lorapick.live.kubernetes.access import find_access
from lorapick.live.kubernetes.cluster import Cluster
from lorapick.live.kv_events import KvEvents
from lorapick.live.ledger.keeper import Ledger
from lorapick.live.ledger.writer import LedgerWriter
from lorapick.live.metrics import Metrics, serve_metrics
from lorapick.live.peers.agent import Peers
from lorapick.live.peers.families import PeersFamilies
from lorapick.live.placing import Placing
from lorapick.live.published import PublishedViews
from lorapick.live.runbook_pages import Files
from lorapick.live.scrape import Scraper
from lorapick.live.signals import asked_to_stop
from lorapick.live.tls.doors import Doors
from lorapick.live.tls.exposure import check_exposure
from lorapick.live.tls.families import TlsFamilies
from lorapick.live.tracing_setup import Traced, traced
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.settings import Settings

log = logging.getLogger(__name__)


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Where one picker listens."""

    extproc: str
    health: str
    metrics: str
    admin: str


class Recording(NamedTuple):
    """Where the event log goes."""

    path: Path
    max_bytes: int = MAX_BYTES
    """Size at which it ends."""


async def serve(
    settings: Settings,
    *,
    beside: Path,
    static: Files | Path | None,
    record: Recording | None = None,
    on_ready: Callable[[Addresses], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        settings: the whole configuration, the catalogue's adapters included.
        beside: directory that relative paths of the configuration start from.
        static: files of the status page, perhaps with the runbooks; None: no page.
        record: where the event log goes; None: none is kept.
        on_ready: told once everything listens.

    Raises:
        BindError: an address cannot be had, or must not be open to all; the message names it. Or a certificate or a
            token cannot be used.
        ConfigError: the pods file is broken.
        NoExporterError: tracing is enabled, and what it needs is not installed.
        PeersError: the store that pickers share cannot be used by this process at all.
    """
    for warning in check_exposure(settings):
        log.warning("%s", warning)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(asked_to_stop())
        transport = TransportCounts()
        recorder = None
        if record is not None:
            recorder = stack.enter_context(_recorder(record, settings, on_lost=transport.event_lost))
        parts = _build(settings, recorder, transport=transport, beside=beside)
        addresses = await _listen(stack, settings, parts=parts, static=static)
        await _run(settings, parts, beside=beside, stop=stop, ready=lambda: on_ready(addresses))


def _recorder(record: Recording, settings: Settings, *, on_lost: Callable[[], None]) -> EventLog:
    return EventLog(record.path, settings=settings, seed=settings.seed, max_bytes=record.max_bytes, on_lost=on_lost)


class _Parts(NamedTuple):
    """What one picker consists of, apart from what listens."""

    driver: Driver
    metrics: Metrics
    views: PublishedViews
    transport: TransportCounts
    envoy: EnvoyWatch | None
    placing: Placing
    ledger: Ledger | None
    traced: Traced | None
    priorities: dict[str, int]
    """Of objectives by name; what streams read, so it is changed in place."""
    doors: Doors


def _build(settings: Settings, recorder: EventLog | None, *, transport: TransportCounts, beside: Path) -> _Parts:
    doors = Doors(settings, beside=beside)
    metrics = Metrics(
        adapter_labels=settings.server.metrics_adapters,
        compat=settings.server.metrics_compat,
        slo=settings.slo,
    )
    driver = Driver(settings, seed=settings.seed, observers=[metrics], recorder=recorder)
    driver.on_pick = metrics.pick_seconds
    ledger = _ledger(settings, driver, transport=transport, beside=beside)
    envoy = None if settings.server.envoy_admin is None else EnvoyWatch(settings.server.envoy_admin)
    placing = Placing(settings, driver, beside=beside)
    views = PublishedViews(
        driver,
        transport=transport,
        envoy=envoy,
        commands=placing.counts,
        ledger=None if ledger is None else ledger.writer.path,
    )
    metrics.show(views)
    metrics.follow(driver.fleet)
    spans = traced(settings.tracing, driver, counts=transport)
    priorities = {objective.name: objective.priority for objective in settings.objectives}
    if doors.keeper is not None:
        metrics.also(TlsFamilies(doors.keeper))
    return _Parts(driver, metrics, views, transport, envoy, placing, ledger, spans, priorities, doors)


def _ledger(settings: Settings, driver: Driver, *, transport: TransportCounts, beside: Path) -> Ledger | None:
    """Kept beside the driver; nothing is written before it serves."""
    if settings.ledger.path is None:
        return None
    writer = LedgerWriter(beside / settings.ledger.path, settings.ledger, clock=driver.now)
    transport.ledger_faults = writer.faults
    ledger = Ledger(writer, lambda: driver.fleet.changes)
    driver.observers.append(ledger)
    return ledger


async def _run(
    settings: Settings, parts: _Parts, *, beside: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Scrape, follow the pods and their KV events, place adapters, and read Envoy's counters, until `stop`."""
    driver = parts.driver
    cluster = await _cluster(settings, parts, beside=beside)
    scraper = Scraper(
        settings.scrape,
        submit=driver.submit,
        now=driver.now,
        core_share=settings.budgets.scrape_core_share,
        rng=random.Random(settings.seed),
    )
    if settings.picking.profiles is not None:
        scraper.custom = settings.picking.profiles.metrics
    driver.observers.append(scraper)
    kv_events = KvEvents(submit=driver.submit, counts=parts.transport)
    driver.observers.append(kv_events)
    driver.on_missing = scraper.refresh
    driver.tell_time()
    peers = _agree(settings, parts, beside=beside, elected=cluster is not None and cluster.leader is not None)
    following = cluster if cluster is not None else _discover(settings, driver, beside=beside)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(scraper.run(), name="scraper"),
            group.create_task(kv_events.run(), name="KV events"),
            group.create_task(parts.placing.run(), name="placing"),
        ]
        if following is not None:
            tasks.append(group.create_task(following.run(), name="discovery"))
        if parts.doors.keeper is not None:
            tasks.append(group.create_task(parts.doors.keeper.run(), name="certificates"))
        if peers is not None:
            tasks.append(group.create_task(peers.run(), name="peers"))
        if parts.envoy is not None:
            tasks.append(group.create_task(parts.envoy.run(), name="envoy counters"))
        ready()
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _cluster(settings: Settings, parts: _Parts, *, beside: Path) -> Cluster | None:
    """What follows the API server, when the pods come from there."""
    if settings.discovery.kubernetes is None:
        return None
    access = await find_access(settings.discovery.kubernetes, beside=beside)
    cluster = Cluster(settings, parts.driver, access=access)

    def objectives(found: dict[str, int]) -> None:
        parts.priorities.clear()
        parts.priorities.update(found)

    cluster.on_priorities = objectives
    parts.metrics.also(cluster.families)
    return cluster


def _agree(settings: Settings, parts: _Parts, *, beside: Path, elected: bool) -> Peers | None:
    """What agrees with the fleet's other pickers, when there are some; who leads may be `elected` elsewhere."""
    if settings.peers is None:
        return None
    peers = Peers(settings.peers, parts.driver, beside=beside, leader=not elected)
    parts.driver.agreement = peers
    parts.driver.observers.append(peers)
    parts.metrics.also(PeersFamilies(peers.counts, parts.driver.fleet, leader=peers.leader))
    return peers


def _discover(settings: Settings, driver: Driver, *, beside: Path) -> FileDiscovery | None:
    """Tell of the first pods; the follower of their file, when they come from one."""
    if settings.discovery.file is None:
        PodSet(driver.submit).replace(settings.discovery.pods)
        return None
    discovery = FileDiscovery(beside / settings.discovery.file, settings, submit=driver.submit)
    discovery.load()
    return discovery


async def _listen(
    stack: AsyncExitStack, settings: Settings, *, parts: _Parts, static: Files | Path | None
) -> Addresses:
    server, driver, doors = settings.server, parts.driver, parts.doors
    if parts.ledger is not None:
        # Closed last, so that streams which end while the picker leaves are still booked.
        parts.ledger.writer.start()
        stack.callback(parts.ledger.writer.close)
    if parts.traced is not None:
        stack.push_async_callback(parts.traced.close)

    def ready() -> bool:
        return bool(driver.fleet.state.columns.row_of)

    metrics_address = await stack.enter_async_context(
        serve_metrics(parts.metrics, bind=server.metrics, door=doors.metrics)
    )
    admin = serve_admin(
        parts.views,
        bind=server.admin,
        static=static,
        operations=DriverOperations(driver),
        door=doors.admin,
    )
    admin_address = await stack.enter_async_context(admin)
    health = HealthServer(server.health, ready)
    await health.start()
    stack.push_async_callback(health.stop)
    extproc = ExtProcServer(driver, settings, ready=ready, counts=parts.transport, credentials=doors.extproc())
    extproc.options = msgspec.structs.replace(extproc.options, priorities=parts.priorities)
    if parts.traced is not None:
        extproc.traceparent = parts.traced.tracing.header
    await extproc.start()
    # Entered last, so it is left first: streams end while everything else still answers.
    stack.push_async_callback(extproc.stop)
    return Addresses(extproc=extproc.address, health=health.address, metrics=metrics_address, admin=admin_address)
