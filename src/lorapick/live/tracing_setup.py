"""Tracing for one picker, where its configuration asks for it.

In: settings, the driver. Out: spans of its requests on their way to a collector; nothing, and nothing imported, where
tracing is off. Not here: what is a span (see `live.tracing`), how it is sent (see `live.tracing_export`).
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from lorapick.live.driver import Driver
from lorapick.live.tracing import Tracing
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.settings import TracingSettings

if TYPE_CHECKING:
    from lorapick.live.tracing_export import Spans


class NoExporterError(Exception):
    """Tracing is enabled and what it needs is not installed; the message says what to do."""


class Traced(NamedTuple):
    """What follows requests, and what sends."""

    tracing: Tracing
    spans: "Spans"

    async def close(self) -> None:
        """Send what waits; a collector that is away is not waited for, and the loop goes on meanwhile."""
        await asyncio.to_thread(self.spans.close)


def traced(settings: TracingSettings, driver: Driver, *, counts: TransportCounts) -> Traced | None:
    """Follow the driver's requests; None: tracing is off.

    Raises:
        NoExporterError: the extra `otlp` is not installed.
    """
    if not settings.enabled:
        return None
    try:
        # Here, since it takes a third of a second and 15 MB that nobody should pay without tracing.
        from lorapick.live.tracing_export import Spans, otlp

        exporter = otlp(settings)
    except ImportError as error:
        raise NoExporterError(
            f"tracing.enabled is true and {error.name} is not installed; pip install 'lorapick[otlp]', or set "
            "tracing.enabled to false"
        ) from None
    spans = Spans(exporter)
    tracing = Tracing(spans, sample=settings.sample, changes=lambda: driver.fleet.changes, clock=driver.now)
    counts.spans_lost = lambda: spans.lost + tracing.not_followed
    driver.observers.append(tracing)
    return Traced(tracing, spans)
