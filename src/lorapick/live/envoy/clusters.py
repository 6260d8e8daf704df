"""Envoy's two clusters: the pods, from a file, and the pickers.

In: addresses. Out: plain dicts in Envoy's JSON form. Not here: listeners and filters (`live.envoy.config`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from lorapick.model.units import Seconds
from lorapick.wire.extproc.headers import DESTINATION, METADATA

PODS = "pods"
PICKERS = "pickers"

_TYPES = "type.googleapis.com/envoy.extensions."
_UNLIMITED = 1_000_000
"""Envoy's own limits (1024 requests, 3 concurrent retries) would refuse traffic before any pod is full; a picker
holds one gRPC stream per request in flight."""


class PickerTls(msgspec.Struct, frozen=True, kw_only=True):
    """How Envoy speaks TLS to pickers. Files are as the Envoy process sees them."""

    ca: str
    """Authorities that a picker's certificate must come from, or that certificate itself."""
    name: str | None = None
    """Host name that it must be for; None: any."""
    certificate: str | None = None
    """Envoy's own, for pickers that ask for one."""
    key: str | None = None


def address(text: str) -> dict[str, Any]:
    """Return Envoy's form of `unix:PATH` or `host:port`.

    Raises:
        ValueError: neither of the two.
    """
    if text.startswith("unix:"):
        return {"pipe": {"path": text.removeprefix("unix:"), "mode": 0o600}}
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"address {text!r}: expected host:port or unix:PATH")
    return {"socket_address": {"address": host.strip("[]"), "port_value": int(port)}}


def endpoints(addresses: Iterable[str]) -> dict[str, Any]:
    """Return the EDS file's content for pods at `ip:port`, in the order given."""
    return {
        "version_info": "1",
        "resources": [
            {
                "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
                **_assignment(PODS, addresses),
            }
        ],
    }


def pods(endpoints_file: str, *, health_path: str, health_interval: Seconds) -> dict[str, Any]:
    """Return the cluster of model servers: the picker's endpoint first, else a healthy one with least requests."""
    return {
        "name": PODS,
        "type": "EDS",
        "eds_cluster_config": {
            "eds_config": {
                "resource_api_version": "V3",
                "path_config_source": {
                    "path": endpoints_file,
                    "watched_directory": {"path": endpoints_file.rpartition("/")[0] or "."},
                },
                "initial_fetch_timeout": "5s",
            }
        },
        "connect_timeout": "1s",
        "per_connection_buffer_limit_bytes": 1_048_576,
        "load_balancing_policy": {"policies": [_override_host()]},
        # The picker overrides health: it knows its pods better. Health guides only traffic without a picker.
        "health_checks": [_http_health(health_path, health_interval)],
        # Else a pod that is gone from the file stays until it fails its health checks.
        "ignore_health_on_host_removal": True,
        # With no healthy pod at all, try anyway.
        "common_lb_config": {"healthy_panic_threshold": {"value": 1}},
        "circuit_breakers": _no_limits(),
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": _TYPES + "upstreams.http.v3.HttpProtocolOptions",
                # Shorter than the 5 s after which uvicorn, and so vLLM, closes idle connections: else now and then a
                # request meets a closing connection and fails.
                "common_http_protocol_options": {"idle_timeout": "4s"},
                "explicit_http_config": {"http_protocol_options": {}},
            }
        },
    }


def pickers(addresses: Sequence[str], tls: PickerTls | None = None) -> dict[str, Any]:
    """Return the cluster of ext_proc servers. Two or more are watched, so that a dead one is left."""
    cluster: dict[str, Any] = {
        "name": PICKERS,
        "type": "STATIC",
        "connect_timeout": "0.250s",
        "load_assignment": _assignment(PICKERS, addresses),
        "circuit_breakers": _no_limits(),
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": _TYPES + "upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {
                    "http2_protocol_options": {
                        "max_concurrent_streams": 100_000,
                        "initial_stream_window_size": 1_048_576,
                        "initial_connection_window_size": 16_777_216,
                    }
                },
            }
        },
    }
    if tls is not None:
        cluster["transport_socket"] = _tls(tls)
    if len(addresses) > 1:
        cluster["health_checks"] = [_grpc_health()]
    return cluster


def _tls(tls: PickerTls) -> dict[str, Any]:
    trusted: dict[str, Any] = {"trusted_ca": {"filename": tls.ca}}
    if tls.name is not None:
        trusted["match_typed_subject_alt_names"] = [{"san_type": "DNS", "matcher": {"exact": tls.name}}]
    common: dict[str, Any] = {"validation_context": trusted, "alpn_protocols": ["h2"]}
    if tls.certificate is not None:
        own = {"certificate_chain": {"filename": tls.certificate}, "private_key": {"filename": tls.key}}
        common["tls_certificates"] = [own]
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": _TYPES + "transport_sockets.tls.v3.UpstreamTlsContext",
            "common_tls_context": common,
            **({"sni": tls.name} if tls.name is not None else {}),
        },
    }


def _assignment(cluster: str, addresses: Iterable[str]) -> dict[str, Any]:
    hosts = [{"endpoint": {"address": address(text)}} for text in addresses]
    return {"cluster_name": cluster, "endpoints": [{"lb_endpoints": hosts}]}


def _override_host() -> dict[str, Any]:
    return {
        "typed_extension_config": {
            "name": "envoy.load_balancing_policies.override_host",
            "typed_config": {
                "@type": _TYPES + "load_balancing_policies.override_host.v3.OverrideHost",
                # One source only: Envoy joins the lists of all sources, so a second one would make the first retry
                # go to the endpoint that has just failed. The metadata is the one that clients cannot write.
                "override_host_sources": [
                    {"metadata": {"key": METADATA, "path": [{"key": DESTINATION}]}},
                ],
                "fallback_policy": {
                    "policies": [
                        {
                            "typed_extension_config": {
                                "name": "envoy.load_balancing_policies.least_request",
                                "typed_config": {
                                    "@type": _TYPES + "load_balancing_policies.least_request.v3.LeastRequest",
                                    "choice_count": 2,
                                },
                            }
                        }
                    ]
                },
            },
        }
    }


def _http_health(path: str, interval: Seconds) -> dict[str, Any]:
    seconds = f"{interval:.3f}s"
    return {
        "timeout": "1s",
        "interval": seconds,
        "no_traffic_interval": seconds,
        "unhealthy_threshold": 2,
        "healthy_threshold": 1,
        "http_health_check": {"path": path},
    }


def _grpc_health() -> dict[str, Any]:
    return {
        "timeout": "0.5s",
        "interval": "0.5s",
        "no_traffic_interval": "0.5s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "grpc_health_check": {},
    }


def _no_limits() -> dict[str, Any]:
    limits = ("max_connections", "max_pending_requests", "max_requests", "max_retries")
    return {"thresholds": [dict.fromkeys(limits, _UNLIMITED)]}
