"""Spans on their way to a collector: OpenTelemetry's own batches and exporter behind a sink that never waits.

In: settings; `Span`s. Out: OTLP over HTTP, from a thread of its own; counts of what was sent and lost. Not here: what
is a span (see `live.tracing`). Imported only where tracing is enabled: OpenTelemetry takes a third of a second.
"""

import logging
from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from lorapick import __version__
from lorapick.live.otlp_json import JsonExporter
from lorapick.live.tracing import REQUEST, Span
from lorapick.model.settings import TracingSettings
from lorapick.model.units import Seconds

log = logging.getLogger(__name__)

MOST_QUEUED = 4096
"""Spans that wait to be sent; further ones are lost, and counted."""
BATCH = 512
EVERY: Seconds = 2.0
"""Time between two batches when there is little to send."""
PATIENCE: Seconds = 2.0
"""Time that one batch may take, tries and all."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_SCOPE = InstrumentationScope("lorapick", __version__)
_OK = Status(StatusCode.UNSET)


class Spans:
    """The sink, and what became of the spans."""

    def __init__(self, exporter: SpanExporter, *, most: int = MOST_QUEUED, every: Seconds = EVERY) -> None:
        """Send through `exporter`, at most `most` spans waiting, a batch at least `every` seconds."""
        self._resource = Resource.create({"service.name": "lorapick", "service.version": __version__})
        self._counting = _Counting(exporter)
        self._most = most
        self._batches = BatchSpanProcessor(
            self._counting,
            max_queue_size=most,
            schedule_delay_millis=1000 * every,
            max_export_batch_size=min(BATCH, most),
        )
        self._taken = 0
        self._overflown = 0

    @property
    def sent(self) -> int:
        """Spans that a collector took."""
        return self._counting.handed - self._counting.failed

    @property
    def lost(self) -> int:
        """Spans that did not leave: too many waited, or no collector took them."""
        return self._overflown + self._counting.failed

    def __call__(self, span: Span) -> None:
        """Take a span; never waits."""
        if self._taken - self._counting.handed >= self._most:
            self._overflown += 1
            return
        self._taken += 1
        self._batches.on_end(self._readable(span))

    def flush(self) -> None:
        """Send what waits, now; for tests and benchmarks."""
        self._batches.force_flush()

    def close(self) -> None:
        """Send what waits; after the first batch that no collector takes, the rest is lost."""
        self._counting.closing = True
        self._batches.shutdown()  # type: ignore[no-untyped-call]  # the library gives it no types

    def _readable(self, span: Span) -> ReadableSpan:
        # The library's own way, a span that is started and ended, takes twenty times as long.
        error = span.error
        return ReadableSpan(
            name=span.name,
            context=SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED),
            parent=None
            if span.parent_id is None
            else SpanContext(span.trace_id, span.parent_id, is_remote=span.remote, trace_flags=_SAMPLED),
            resource=self._resource,
            attributes=span.attributes,
            kind=SpanKind.SERVER if span.name == REQUEST else SpanKind.INTERNAL,
            status=_OK if error is None else Status(StatusCode.ERROR, error),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=_SCOPE,
        )


class _Counting(SpanExporter):
    """Counts what another exporter does, and says once when it begins and ceases to fail."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False
        self.closing = False
        """Whether there is no time left for a collector that does not answer."""
        self.handed = 0
        self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch. Called from the batches' thread only."""
        self.handed += len(spans)
        if self.closing and self._failing:
            self.failed += len(spans)
            return SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001 - whatever an exporter raises, the spans are lost, and the thread goes on
            result = SpanExportResult.FAILURE
        failing = result is not SpanExportResult.SUCCESS
        if failing:
            self.failed += len(spans)
        if failing and not self._failing:
            log.warning("spans are lost: no collector takes them; see tracing.endpoint")
        elif self._failing and not failing:
            log.info("a collector takes spans again")
        self._failing = failing
        return result

    def shutdown(self) -> None:
        """Give up what is under way."""
        self._exporter.shutdown()


def otlp(settings: TracingSettings) -> SpanExporter:
    """The exporter to the configured endpoint. Headers: `OTEL_EXPORTER_OTLP_HEADERS`."""
    return JsonExporter(settings.endpoint, timeout=PATIENCE)
