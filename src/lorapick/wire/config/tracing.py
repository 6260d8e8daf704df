"""The section `tracing`.

In: a node. Out: `TracingSettings`; its defaults are there. Not here: what is traced (see `live.tracing`).
"""

from lorapick.model.settings import TracingSettings
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, boolean, record, share, web_address

PATH = "/v1/traces"
"""Where OTLP receivers take spans, unless an address says otherwise."""


def _endpoint(at: At) -> str:
    """`http://host:port`, with the path of the receiver or without."""
    parts = web_address(at, must="must be the URL of an OTLP receiver", example=f"http://127.0.0.1:4318{PATH}")
    return parts.geturl() if parts.path.strip("/") else f"{parts.geturl().rstrip('/')}{PATH}"


tracing: Reader[TracingSettings] = record(TracingSettings, {"enabled": boolean, "endpoint": _endpoint, "sample": share})
