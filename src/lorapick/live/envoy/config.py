"""Envoy's bootstrap for an ext_proc picker in front of model servers.

In: an `EnvoySettings`. Out: plain dicts in Envoy's JSON form, ready to be written (see `live.envoy.process`).
Not here: files, processes, clusters (`live.envoy.clusters`), and what the picker answers (`wire`).

Every choice that is not obvious carries its reason; all were tried on Envoy 1.40 and are held by `tests/e2e`.
"""

import json
from typing import Any

import msgspec

from lorapick.live.envoy import clusters
from lorapick.model.reasons import Reason
from lorapick.model.settings import Settings
from lorapick.model.units import Bytes, Seconds
from lorapick.wire.extproc.errors import REASON
from lorapick.wire.extproc.headers import DESTINATION, METADATA, NOT_FROM_CLIENTS, OWN_PREFIX, SUBSET_METADATA
from lorapick.wire.extproc.routes import MANAGEMENT_PATHS
from lorapick.wire.kv_transfer import ENCODERS, PREFILLER

CLIENT_HEADERS_REMOVED = tuple(sorted(NOT_FROM_CLIENTS - {ENCODERS}))
"""Routing headers that only a picker may set, by name; and, unless `disaggregation.pass_encoders`, `ENCODERS`."""

CLIENT_PREFIXES_REMOVED = (DESTINATION, OWN_PREFIX, "x-envoy-")
"""The same by prefix; `x-envoy-` because Envoy takes retries and timeouts from it on the loopback interface."""

STAT_PREFIX = "gateway"
"""Prefix of the listener's counters."""

_TYPES = "type.googleapis.com/envoy.extensions."

_RESELECTIONS = 40
"""How often Envoy draws again when a retry's draw is an endpoint that has failed already.

With one of four pods left, six draws all miss it in 18 % of the cases (0.75^6), forty in one of 100,000.
"""


class EnvoySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between one Envoy and the next. Paths are as the Envoy process sees them."""

    listen: str
    """`host:port` of the OpenAI endpoint."""
    extproc: tuple[str, ...]
    """Pickers, `unix:PATH` or `host:port`; more than one for `full_duplex_streamed`."""
    endpoints_file: str
    """EDS file with the pods; replaced by rename when pods come and go."""
    admin: str
    """`unix:PATH` or `host:port` of Envoy's admin API."""
    body: str = "buffered"
    """`buffered` or `full_duplex_streamed`; only the first fails open."""
    observe: str = "headers"
    """`headers`, or `bodies` to show answers to the picker too (token counts)."""
    max_body: Bytes = 10 * 1024 * 1024
    """Bodies over this are the picker's to refuse (413 with its reason)."""
    longest_hold: Seconds = 30.0
    """Longest time that the picker may sit on a request."""
    retries: int = 3
    """Attempts after the first on connect failure: the picker's fallbacks, then any healthy pod."""
    pass_encoders: bool = False
    """Let clients' `x-encoder-hosts-ports` through."""
    stream_idle: Seconds = 900.0
    """A stream without a byte in either direction for this long is cut; long prefills stay far below."""
    health_path: str = "/health"
    health_interval: Seconds = 1.0
    access_log: str | None = None
    """JSON lines; None: no access log."""
    picker_tls: clusters.PickerTls | None = None
    """None: plain gRPC to pickers."""

    @classmethod
    def of(cls, settings: Settings, *, extproc: tuple[str, ...], endpoints_file: str, admin: str) -> "EnvoySettings":
        """Take over what lorapick's own configuration says."""
        return cls(
            listen=settings.server.endpoint,
            extproc=extproc,
            endpoints_file=endpoints_file,
            admin=admin,
            body=settings.server.body,
            observe=settings.server.observe,
            max_body=settings.server.max_body,
            longest_hold=settings.admission.max_wait,
            retries=settings.picking.fallbacks + 1,
            pass_encoders=settings.disaggregation.pass_encoders,
        )

    def __post_init__(self) -> None:
        if self.body not in ("buffered", "full_duplex_streamed"):
            raise ValueError(f"server.body is {self.body!r}; it must be 'buffered' or 'full_duplex_streamed'")
        if self.observe not in ("headers", "bodies"):
            raise ValueError(f"server.observe is {self.observe!r}; it must be 'headers' or 'bodies'")
        if not self.extproc:
            raise ValueError("no ext_proc address: Envoy needs at least one picker")

    @property
    def buffer_limit(self) -> Bytes:
        """Bytes that Envoy buffers per connection.

        Twice `max_body`, so that the picker sees bodies over the limit and refuses them by name; beyond this Envoy
        itself answers 413.
        """
        return 2 * self.max_body + 65_536

    @property
    def message_timeout(self) -> Seconds:
        """Seconds Envoy waits for one answer of the picker; a shorter one would end holds early."""
        return self.longest_hold + 5.0


def bootstrap(settings: EnvoySettings) -> dict[str, Any]:
    """Return the whole bootstrap configuration."""
    return {
        "node": {"id": "lorapick", "cluster": "lorapick"},
        "admin": {"address": clusters.address(settings.admin)},
        "static_resources": {
            "listeners": [_listener(settings)],
            "clusters": [
                clusters.pods(
                    settings.endpoints_file, health_path=settings.health_path, health_interval=settings.health_interval
                ),
                clusters.pickers(settings.extproc, settings.picker_tls),
            ],
        },
        "overload_manager": {"resource_monitors": [_connection_limit()]},
        "layered_runtime": {"layers": [{"name": "admin", "admin_layer": {}}]},
    }


def _listener(settings: EnvoySettings) -> dict[str, Any]:
    return {
        "name": "openai",
        "address": clusters.address(settings.listen),
        # Else a second Envoy would share the port in silence, and take half of the connections.
        "enable_reuse_port": False,
        "per_connection_buffer_limit_bytes": settings.buffer_limit,
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": _connection_manager(settings),
                    }
                ]
            }
        ],
    }


def _connection_manager(settings: EnvoySettings) -> dict[str, Any]:
    return {
        "@type": _TYPES + "filters.network.http_connection_manager.v3.HttpConnectionManager",
        "codec_type": "AUTO",  # HTTP/1.1, and HTTP/2 with prior knowledge
        # Old tools and health checkers speak it, some without a Host; refused, they would see an empty close.
        "http_protocol_options": {"accept_http_10": True, "default_host_for_http_10": "localhost"},
        "stat_prefix": STAT_PREFIX,
        "use_remote_address": True,
        "normalize_path": True,
        "merge_slashes": True,
        # Pods undo escapes: without this a refused path could be spelled so that only the pod knows it.
        "path_with_escaped_slashes_action": "UNESCAPE_AND_FORWARD",
        # The request id names the request in decisions and logs, so a client's own id must survive.
        "preserve_external_request_id": True,
        "always_set_request_id_in_response": True,
        "stream_idle_timeout": _seconds(settings.stream_idle),
        "request_headers_timeout": "10s",
        # Bounds slow uploads only: it ends when the request has been received.
        "request_timeout": "60s",
        "early_header_mutation_extensions": [_strip_client_headers(pass_encoders=settings.pass_encoders)],
        "http_filters": [_ext_proc(settings), _router()],
        "route_config": _routes(settings),
        "local_reply_config": _local_replies(),
        "access_log": [_access_log(settings.access_log)] if settings.access_log else [],
    }


def _strip_client_headers(*, pass_encoders: bool) -> dict[str, Any]:
    """Remove what only a picker may say, before any filter runs: the picker may be away."""
    names = CLIENT_HEADERS_REMOVED if pass_encoders else (*CLIENT_HEADERS_REMOVED, ENCODERS)
    return {
        "name": "envoy.http.early_header_mutation.header_mutation",
        "typed_config": {
            "@type": _TYPES + "http.early_header_mutation.header_mutation.v3.HeaderMutation",
            "mutations": [
                *({"remove": name} for name in names),
                *(
                    {"remove_on_match": {"key_matcher": {"prefix": prefix, "ignore_case": True}}}
                    for prefix in CLIENT_PREFIXES_REMOVED
                ),
            ],
        },
    }


def _ext_proc(settings: EnvoySettings) -> dict[str, Any]:
    return {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": _TYPES + "filters.http.ext_proc.v3.ExternalProcessor",
            "stat_prefix": "picker",
            "grpc_service": _picker_service(several=len(settings.extproc) > 1),
            # In FULL_DUPLEX_STREAMED Envoy answers 500 while no picker answers, whatever this says.
            "failure_mode_allow": True,
            "processing_mode": _processing_mode(settings),
            "message_timeout": _seconds(settings.message_timeout),
            # A fallback may have served; only Envoy knows.
            "response_attributes": ["upstream.address", "response.code"],
            "metadata_options": {
                "forwarding_namespaces": {"untyped": [METADATA, SUBSET_METADATA]},
                "receiving_namespaces": {"untyped": [METADATA]},
            },
        },
    }


def _picker_service(*, several: bool) -> dict[str, Any]:
    service: dict[str, Any] = {"envoy_grpc": {"cluster_name": clusters.PICKERS}}
    if several:
        # A stream that breaks on one picker before that has answered anything starts anew on the other.
        service["retry_policy"] = {
            "retry_on": "connect-failure,refused-stream,reset",
            "num_retries": 2,
            "retry_host_predicate": [_previous_hosts()],
            "host_selection_retry_max_attempts": _RESELECTIONS,
            "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.05s"},
        }
    return service


def _processing_mode(settings: EnvoySettings) -> dict[str, Any]:
    duplex = settings.body == "full_duplex_streamed"
    answers = ("FULL_DUPLEX_STREAMED" if duplex else "STREAMED") if settings.observe == "bodies" else "NONE"
    return {
        "request_header_mode": "SEND",
        "request_body_mode": "FULL_DUPLEX_STREAMED" if duplex else "BUFFERED",
        "request_trailer_mode": "SEND" if duplex else "SKIP",
        "response_header_mode": "SEND",
        "response_body_mode": answers,
        # Keeps the gRPC stream open until the HTTP stream ends: its end is how the picker learns of completion.
        "response_trailer_mode": "SEND",
    }


def _router() -> dict[str, Any]:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": _TYPES + "filters.http.router.v3.Router", "suppress_envoy_headers": True},
    }


def _routes(settings: EnvoySettings) -> dict[str, Any]:
    # Never after a pod may have begun to work: a request that kills one pod must not visit the next.
    whole = {"match": {"prefix": "/"}, "route": _to_pods("connect-failure,refused-stream", retries=settings.retries)}
    # With the picker's headers a route is chosen anew. A pod that is lost while another prefills has not begun to work,
    # which Envoy cannot know: it retries until response headers came. What a request kills is the engine, for which the
    # sidecar answers with a 5xx; and one more pod follows the fallbacks, the one that prefills.
    split = {
        "match": {"prefix": "/", "headers": [{"name": PREFILLER, "present_match": True}]},
        "route": _to_pods("connect-failure,refused-stream,reset", retries=settings.retries + 1),
    }
    routes = [*(_refused(path) for path in MANAGEMENT_PATHS), split, whole]
    return {"name": "pods", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]}


def _to_pods(retry_on: str, *, retries: int) -> dict[str, Any]:
    return {
        "cluster": clusters.PODS,
        # Answers stream for as long as they like; `stream_idle_timeout` ends dead ones.
        "timeout": "0s",
        "retry_policy": {
            "retry_on": retry_on,
            "num_retries": retries,
            "retry_host_predicate": [_previous_hosts()],
            "host_selection_retry_max_attempts": _RESELECTIONS,
            "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.05s"},
        },
    }


def _refused(path: str) -> dict[str, Any]:
    """A path that manages one pod; the picker refuses it too, but it may be away."""
    error = {"message": "this path manages one pod; ask that pod itself, not the gateway", "type": "ForbiddenError"}
    per_route = _TYPES + "filters.http.ext_proc.v3.ExtProcPerRoute"
    body = json.dumps({"error": {**error, "param": None, "code": 403}})
    return {
        "match": {"path_separated_prefix": path},
        "direct_response": {"status": 403, "body": {"inline_string": body}},
        "response_headers_to_add": [
            {"header": {"key": "content-type", "value": "application/json"}},
            {"header": {"key": REASON, "value": Reason.PATH_REFUSED.value}},
        ],
        "typed_per_filter_config": {
            "envoy.filters.http.ext_proc": {"@type": per_route, "disabled": True},
        },
    }


def _previous_hosts() -> dict[str, Any]:
    return {
        "name": "envoy.retry_host_predicates.previous_hosts",
        "typed_config": {"@type": _TYPES + "retry.host.previous_hosts.v3.PreviousHostsPredicate"},
    }


def _local_replies() -> dict[str, Any]:
    """Give Envoy's own errors the form that the picker's have: an OpenAI error body, and the reason in a header.

    A picker's refusal is a local reply too and keeps its own: it has no code details, unless the picker sets some. So
    is the answer of a route (`_refused`), whose body is an error of this form already.
    """
    no_pod = {"response_flag_filter": {"flags": ["UH", "UF"]}}
    return {
        "mappers": [
            _error(no_pod, kind="ServiceUnavailableError", reason=Reason.NO_POD),
            _error(
                _cel("response.code == 413 && response.code_details != ''"),
                kind="RequestTooLargeError",
                reason=Reason.BODY_TOO_LARGE,
            ),
            _error(
                _cel("response.code_details != '' && response.code_details != 'direct_response'"),
                kind="GatewayError",
                reason=None,
            ),
        ]
    }


def _error(condition: dict[str, Any], *, kind: str, reason: Reason | None) -> dict[str, Any]:
    error = {"message": "%LOCAL_REPLY_BODY%", "type": kind, "param": None, "code": "%RESPONSE_CODE%"}
    headers = {} if reason is None else {REASON: reason.value}
    if reason is Reason.NO_POD:
        headers["retry-after"] = "1"
    return {
        "filter": condition,
        "body_format_override": {"json_format": {"error": error}, "content_type": "application/json"},
        "headers_to_add": [{"header": {"key": key, "value": value}} for key, value in headers.items()],
    }


def _cel(expression: str) -> dict[str, Any]:
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": {
                "@type": _TYPES + "access_loggers.filters.cel.v3.ExpressionFilter",
                "expression": expression,
            },
        }
    }


def _access_log(path: str) -> dict[str, Any]:
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": _TYPES + "access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": {
                "json_format": {
                    "time": "%START_TIME%",
                    "request_id": "%REQ(X-REQUEST-ID)%",
                    "path": "%REQ(:PATH)%",
                    "status": "%RESPONSE_CODE%",
                    "details": "%RESPONSE_CODE_DETAILS%",
                    "flags": "%RESPONSE_FLAGS%",
                    "pod": "%UPSTREAM_HOST%",
                    "milliseconds": "%DURATION%",
                }
            },
        },
    }


def _connection_limit() -> dict[str, Any]:
    return {
        "name": "envoy.resource_monitors.global_downstream_max_connections",
        "typed_config": {
            "@type": _TYPES + "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
            "max_active_downstream_connections": 20_000,
        },
    }


def _seconds(value: Seconds) -> str:
    return f"{value:.3f}s"
