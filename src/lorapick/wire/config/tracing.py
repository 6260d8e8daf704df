"""The section `tracing`.

In: a node. Out: `TracingSettings`; its defaults are there. Not here: what is traced (see `live.tracing`).
"""

from urllib.parse import urlsplit

from lorapick.model.settings import TracingSettings
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, boolean, record, share, text

PATH = "/v1/traces"
"""Where OTLP receivers take spans, unless an address says otherwise."""


def _endpoint(at: At) -> str:
    """`http://host:port`, with the path of the receiver or without."""
    value = text(at)
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        at.refuse("must be the URL of an OTLP receiver", hint=f'for example "http://127.0.0.1:4318{PATH}"')
    return value if parts.path.strip("/") else f"{value.rstrip('/')}{PATH}"


tracing: Reader[TracingSettings] = record(TracingSettings, {"enabled": boolean, "endpoint": _endpoint, "sample": share})
