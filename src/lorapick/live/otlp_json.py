"""OTLP over HTTP in its JSON form: an exporter of OpenTelemetry's for collectors.

In: spans, batch by batch, from the thread that sends. Out: whether a collector took them. Not here: batches and counts
(see `live.tracing_export`). Imported only where tracing is enabled.

OpenTelemetry's own exporter speaks protobuf with the package `opentelemetry-proto`; Envoy's stubs (`xds-protos`) bring
an older copy of the same modules, so which of the two is found is a matter of which was installed last. Every
collector takes the JSON form too (OTLP 1.x, "OTLP/HTTP", JSON Protobuf encoding).
"""

import http.client
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace.status import StatusCode

from lorapick.model.units import Seconds

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""Environment variable with further headers, as `name=value,...` (OpenTelemetry's)."""
_ERROR = 2


class JsonExporter(SpanExporter):
    """Posts spans to an endpoint; one connection for each batch."""

    def __init__(self, endpoint: str, *, timeout: Seconds) -> None:
        """`endpoint` is the whole URL, `/v1/traces` included; one batch may take `timeout`."""
        self._url: SplitResult = urlsplit(endpoint)
        self._timeout = timeout
        self._headers = {"content-type": "application/json", **_given(os.environ.get(HEADERS, ""))}

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send one batch."""
        url = self._url
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.netloc, timeout=self._timeout)
        try:
            path = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
            connection.request("POST", path, body=document(spans), headers=self._headers)
            taken = 200 <= connection.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            taken = False
        finally:
            connection.close()
        return SpanExportResult.SUCCESS if taken else SpanExportResult.FAILURE


def document(spans: Sequence[ReadableSpan]) -> bytes:
    """Spans of one resource and one scope, as the body of a request."""
    if not spans:
        return b"{}"
    first = spans[0]
    scope = first.instrumentation_scope
    told = {} if scope is None else {"name": scope.name, "version": scope.version or ""}
    scoped = {"scope": told, "spans": [_span(span) for span in spans]}
    resource = {"attributes": _attributes(first.resource.attributes)}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}).encode()


def _span(span: ReadableSpan) -> dict[str, Any]:
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    told: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "kind": span.kind.value + 1,  # the wire has 0 for "not said"
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes or {}),
    }
    if parent is not None:
        told["parentSpanId"] = f"{parent.span_id:016x}"
    if span.status.status_code is StatusCode.ERROR:
        told["status"] = {"code": _ERROR, "message": span.status.description or ""}
    return told


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # 64 bits are more than a JSON number holds everywhere
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case Sequence():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}


def _given(text: str) -> dict[str, str]:
    pairs = [pair.split("=", 1) for pair in text.split(",") if "=" in pair]
    return {name.strip().lower(): unquote(value.strip()) for name, value in pairs}
