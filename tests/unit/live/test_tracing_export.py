"""Spans to a collector: a real one over HTTP, one that is away, one that is too slow."""

import asyncio
import threading
import time
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from lorapick.live.tracing import PICK, REQUEST, Span
from lorapick.live.tracing_export import BATCH, Spans, otlp
from lorapick.model.settings import TracingSettings


def span(name: str = PICK, **fields: object) -> Span:
    given = {"trace_id": 1, "span_id": 2, "parent_id": 3, "start": 10, "end": 20, "attributes": {"lorapick.pod": "a"}}
    return Span(name=name, **{**given, **fields})  # type: ignore[arg-type]


def test_a_span_is_told_as_opentelemetry_tells_its_own() -> None:
    exporter = InMemorySpanExporter()
    spans = Spans(exporter)
    spans(span(error="no_pod"))
    spans(span(REQUEST, parent_id=None))
    spans.flush()
    pick, whole = exporter.get_finished_spans()
    assert (pick.name, pick.kind, pick.status.status_code, pick.status.description) == (
        "lorapick.pick", SpanKind.INTERNAL, StatusCode.ERROR, "no_pod",
    )  # fmt: skip
    assert (pick.context.trace_id, pick.context.span_id, pick.parent.span_id) == (1, 2, 3)
    assert (pick.start_time, pick.end_time, pick.attributes) == (10, 20, {"lorapick.pod": "a"})
    assert (whole.kind, whole.parent, whole.status.status_code) == (SpanKind.SERVER, None, StatusCode.UNSET)
    assert whole.resource.attributes["service.name"] == "lorapick"
    assert '"lorapick.pick"' in pick.to_json()
    assert (spans.sent, spans.lost) == (2, 0)
    spans.close()


async def test_a_real_receiver_gets_them() -> None:
    got: list[dict[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        got.append(await request.json())
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    spans = Spans(otlp(TracingSettings(enabled=True, endpoint=f"http://127.0.0.1:{port}/v1/traces")))
    values = {"text": "a", "share": 0.5, "count": 3, "yes": True, "many": ("x", "y")}
    spans(span(attributes=values))
    await asyncio.to_thread(spans.close)
    await runner.cleanup()
    (found,) = [each for message in got for each in message["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert (found["name"], found["traceId"], found["parentSpanId"]) == ("lorapick.pick", f"{1:032x}", f"{3:016x}")
    assert (found["kind"], found["startTimeUnixNano"]) == (1, "10")
    assert {each["key"]: each["value"] for each in found["attributes"]} == {
        "text": {"stringValue": "a"},
        "share": {"doubleValue": 0.5},
        "count": {"intValue": "3"},
        "yes": {"boolValue": True},
        "many": {"arrayValue": {"values": [{"stringValue": "x"}, {"stringValue": "y"}]}},
    }
    assert (spans.sent, spans.lost) == (1, 0)


async def test_a_receiver_that_is_away_costs_spans_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    spans = Spans(otlp(TracingSettings(enabled=True, endpoint="http://127.0.0.1:1/v1/traces")))
    for _ in range(3 * BATCH):
        spans(span())
    await asyncio.to_thread(spans.close)
    assert (spans.sent, spans.lost) == (0, 3 * BATCH)
    assert [record.message for record in caplog.records if record.name.startswith("lorapick")] == [
        "spans are lost: no collector takes them; see tracing.endpoint"
    ]


class Slow(SpanExporter):
    """Takes nothing until it may; then fails or raises, as told."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.answer: SpanExportResult | None = SpanExportResult.SUCCESS

    def export(self, spans: object) -> SpanExportResult:
        self.may.wait(10)
        if self.answer is None:
            raise RuntimeError("broken")
        return self.answer

    def shutdown(self) -> None:
        self.may.set()


def test_a_slow_receiver_never_keeps_anybody_waiting() -> None:
    slow = Slow()
    spans = Spans(slow, most=4, every=0.001)
    spans(span())
    while spans._counting.handed == 0:
        time.sleep(0.001)  # it has taken the first, and holds it
    for _ in range(10):
        spans(span())
    assert spans.lost == 6, "four wait, the others are lost at once"
    slow.may.set()
    spans.close()
    assert (spans.sent, spans.lost) == (5, 6)


def test_failures_are_counted_whatever_they_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    slow = Slow()
    slow.may.set()
    spans = Spans(slow, every=60.0)
    for answer in (SpanExportResult.FAILURE, None, SpanExportResult.SUCCESS):
        slow.answer = answer
        spans(span())
        spans.flush()
    assert (spans.sent, spans.lost) == (1, 2)
    assert [record.message for record in caplog.records if record.name.startswith("lorapick")] == [
        "spans are lost: no collector takes them; see tracing.endpoint",
        "a collector takes spans again",
    ]
    spans.close()
