"""Command-line flags of llm-d's endpoint picker, so that its image can be exchanged and its arguments stay.

In: arguments, the environment. Out: `Flags`: settings, and which configuration is named; or `FlagError`, which says
what is wrong with a flag, and what would be right. A flag without a counterpart is refused by name; none is passed over
in silence. Not here: reading the configuration (see `cli.loading`). Facts: llm-d-router's `pkg/epp/server/options.go`,
August 2026.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from lorapick.model.settings import (
    DiscoverySettings,
    KubernetesSettings,
    LeaderSettings,
    ScrapeSettings,
    ServerSettings,
    Settings,
)
from lorapick.model.tls import SurfaceTls, TlsSettings
from lorapick.model.units import Seconds
from lorapick.wire.config.document import nearest_word
from lorapick.wire.config.epp.reading import go_seconds
from lorapick.wire.config.tls import CERTIFICATE, KEY

GROUP = "inference.networking.k8s.io"
PREFIX = "LORAPICK_"
"""Of the variables that stand for flags which are not given: `LORAPICK_POOL_NAME` for `--pool-name`."""
NAMESPACE = "NAMESPACE"
"""Variable that llm-d's chart sets, for `--pool-namespace`."""
_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
_EQUAL = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_./]*)={1,2}([A-Za-z0-9][-A-Za-z0-9_.]*)?", re.ASCII)
_MOST_PORTS = 8
_LEVELS = ("error", "info", "debug")
_LEAST_INTERVAL: Seconds = 0.05


class FlagError(ValueError):
    """A flag that cannot be had; the text says which, and what would be right."""


class Flags(NamedTuple):
    """What the arguments say."""

    settings: Settings
    config_file: str | None
    config_text: str | None
    log_level: str | None
    """None: nobody said."""


# -- readers of values


def _word(flag: str, value: str) -> str:
    if not value:
        raise FlagError(f"{flag} needs a value")
    return value


def _boolean(flag: str, value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0", "t", "f"):
        raise FlagError(f"{flag} must be true or false, written {flag}=false (found {value!r})")
    return value.lower() in ("true", "1", "t")


def _port(flag: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 5 and 0 < int(value) < 65_536):
        raise FlagError(f"{flag} must be a port in 1-65535 (found {value!r})")
    return int(value)


def _ports(flag: str, value: str) -> tuple[int, ...]:
    found = tuple(dict.fromkeys(_port(flag, each.strip()) for each in value.split(",")))
    if len(found) > _MOST_PORTS:
        raise FlagError(f"{flag} has {len(found)} ports; at most {_MOST_PORTS} can be told apart as ranks of a pod")
    return found


def _duration(flag: str, value: str) -> Seconds:
    found = go_seconds(value)
    if found is None:
        raise FlagError(f'{flag} must be a duration such as "50ms" or "30s" (found {value!r})')
    return found


def _object(flag: str, value: str) -> str:
    if not _OBJECT.fullmatch(value):
        raise FlagError(f"{flag} must be a name of lower-case letters, digits, dashes and dots (found {value!r})")
    return value


def _group(flag: str, value: str) -> str:
    if value.partition("/")[0] != GROUP:
        raise FlagError(f"{flag} must be {GROUP}: lorapick reads InferencePools of that group only (found {value!r})")
    return value


def _selector(flag: str, value: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in value.split(","):
        match = _EQUAL.fullmatch(part.strip())
        if match is None:
            raise FlagError(f"{flag} takes key=value pairs, as an InferencePool does; it has no sets (found {part!r})")
        found[match[1]] = match[2] or ""
    return found


def _level(flag: str, value: str) -> str:
    """`-v` and `--zap-log-level`: llm-d's 2 is its default, 3 and more are for debugging."""
    if value in _LEVELS:
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= 3):
        raise FlagError(f"{flag} must be a number, or one of {', '.join(_LEVELS)} (found {value!r})")
    return "info" if int(value) <= 2 else "debug"


def _without(why: str) -> Callable[[str, str], Any]:
    def read(flag: str, value: str) -> Any:
        raise FlagError(f"{flag} is not supported (found {value!r}): {why}")

    return read


def _only(wanted: bool, why: str) -> Callable[[str, str], Any]:
    """A switch that lorapick has in one position only."""

    def read(flag: str, value: str) -> bool:
        if _boolean(flag, value) is not wanted:
            raise FlagError(f"{flag} must be {str(wanted).lower()} here: {why}")
        return wanted

    return read


_METRIC = _without("lorapick knows the names of each engine's metrics; llm-d refuses it too")
_METRICS_TLS = _without(
    "name certificates under tls in a lorapick.yaml (docs/tls.md), and the policy file under picking"
)

READERS: dict[str, Callable[[str, str], Any]] = {
    "pool-name": _object,
    "pool-namespace": _object,
    "pool-group": _group,
    "endpoint-selector": _selector,
    "endpoint-target-ports": _ports,
    "kubeconfig": _word,
    "config-file": _word,
    "config-text": _word,
    "grpc-port": _port,
    "grpc-health-port": _port,
    "metrics-port": _port,
    "admin-port": _port,
    "secure-serving": _boolean,
    "cert-path": _word,
    "enable-cert-reload": _boolean,
    "health-checking": _boolean,
    "ha-enable-leader-election": _boolean,
    "refresh-metrics-interval": _duration,
    "refresh-prometheus-metrics-interval": _duration,
    "metrics-staleness-threshold": _duration,
    "drain-timeout": _duration,
    "v": _level,
    "zap-log-level": _level,
    "zap-encoder": _word,
    "zap-devel": _boolean,
    "zap-stacktrace-level": _word,
    "zap-time-encoding": _word,
    "enable-grpc-stream-metrics": _boolean,
    "allow-experimental-plugins": _boolean,
    "enable-pprof": _only(False, "there is no profiler in the picker"),
    "tracing": _only(False, "write tracing, with its collector, in a lorapick.yaml (docs/tracing.md)"),
    "metrics-endpoint-auth": _only(
        False, "lorapick asks the API server about nobody's token; a lorapick.yaml can have server.metrics_token_file"
    ),
    "disable-endpoint-subset-filter": _only(False, "the gateway's subset hint always counts"),
    "metrics-client-ca-file": _METRICS_TLS,
    "metrics-cert-dir": _METRICS_TLS,
    "grpc-max-recv-msg-size": _without("a body may have server.max_body bytes (10 MiB); a lorapick.yaml can say more"),
    "grpc-max-send-msg-size": _without("pieces that are sent have at most 62000 bytes"),
    "total-queued-requests-metric": _METRIC,
    "total-running-requests-metric": _METRIC,
    "kv-cache-usage-percentage-metric": _METRIC,
    "lora-info-metric": _METRIC,
    "cache-info-metric": _METRIC,
}
"""Every flag that llm-d's endpoint picker has; and `admin-port`, of lorapick's admin API on loopback."""
_SWITCHES = frozenset(
    {
        "secure-serving", "enable-cert-reload", "health-checking", "ha-enable-leader-election", "zap-devel",
        "enable-grpc-stream-metrics", "allow-experimental-plugins", "enable-pprof", "tracing",
        "metrics-endpoint-auth", "disable-endpoint-subset-filter",
    }
)  # fmt: skip
"""As in Go, these take no value after a space."""


def read_flags(arguments: Sequence[str], environment: Mapping[str, str]) -> Flags:
    """What the arguments say; `LORAPICK_POOL_NAME` and its like where the flag is not given.

    Raises:
        FlagError: a flag is unknown, has no counterpart, is wrong, or two contradict each other.
    """
    found = _found(arguments)
    for name in READERS:
        variable = PREFIX + name.upper().replace("-", "_")
        if name not in found and environment.get(variable):
            found[name] = (variable, environment[variable])
    values = {name: READERS[name](written, value) for name, (written, value) in found.items()}
    if "pool-namespace" not in values and environment.get(NAMESPACE):
        values["pool-namespace"] = _object(NAMESPACE, environment[NAMESPACE])
    if "config-file" in values and "config-text" in values:
        raise FlagError("--config-file and --config-text: one of them; both say which pods are picked")
    return Flags(
        settings=_settings(values),
        config_file=values.get("config-file"),
        config_text=values.get("config-text"),
        log_level=values.get("v") or values.get("zap-log-level"),
    )


def _found(arguments: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Flags by name, each as it was written and with its value; of one given twice the last counts."""
    found: dict[str, tuple[str, str]] = {}
    rest = list(arguments)
    while rest:
        written = rest.pop(0)
        flag, equals, value = written.partition("=")
        name = flag.removeprefix("-").removeprefix("-")
        if not flag.startswith("-") or not name:
            raise FlagError(f"{written!r} is no flag; flags are written --pool-name=NAME")
        if name not in READERS:
            near = nearest_word(name, READERS)
            raise FlagError(
                f"{flag} is unknown{f'; {near}' if near else ''}; docs/endpoint-picker-config.md lists them"
            )
        if not equals:
            if name in _SWITCHES:
                value = "true"
            elif not rest:
                raise FlagError(f"{flag} needs a value")
            else:
                value = rest.pop(0)
        found[name] = (flag, value)
    return found


def _settings(values: Mapping[str, Any]) -> Settings:
    """All by default, but for what the flags say; ports as llm-d's, open to other machines as those are."""
    own = ServerSettings()
    admin: int | None = values.get("admin-port")
    settings = Settings(
        discovery=_discovery(values),
        server=ServerSettings(
            admin=own.admin if admin is None else f"127.0.0.1:{admin}",
            extproc=f"0.0.0.0:{values.get('grpc-port', 9002)}",
            health=f"0.0.0.0:{values.get('grpc-health-port', 9003)}",
            metrics=f"0.0.0.0:{values.get('metrics-port', 9090)}",
            body="full_duplex_streamed",
            drain_timeout=values.get("drain-timeout", own.drain_timeout),
        ),
        tls=_tls(values),
    )
    interval: Seconds | None = values.get("refresh-metrics-interval")
    if interval is None:
        return settings
    if interval < _LEAST_INTERVAL:
        raise FlagError(f"--refresh-metrics-interval must be at least 50ms (found {interval * 1000:g}ms)")
    return replace(settings, scrape=replace(ScrapeSettings(), interval=interval))


def _discovery(values: Mapping[str, Any]) -> DiscoverySettings:
    pool, selector = values.get("pool-name"), values.get("endpoint-selector")
    ports: tuple[int, ...] = values.get("endpoint-target-ports", ())
    if pool is not None and selector is not None:
        raise FlagError("--pool-name and --endpoint-selector: one of them; an InferencePool has a selector")
    if selector is not None and not ports:
        raise FlagError("--endpoint-selector needs --endpoint-target-ports, for example --endpoint-target-ports=8000")
    if ports and selector is None:
        raise FlagError("--endpoint-target-ports belongs to --endpoint-selector; an InferencePool has its own ports")
    if pool is None and selector is None:
        return DiscoverySettings()
    return DiscoverySettings(
        kubernetes=KubernetesSettings(
            pool=pool,
            selector=selector or {},
            target_ports=ports,
            namespace=values.get("pool-namespace"),
            kubeconfig=values.get("kubeconfig"),
            leader=LeaderSettings(enabled=values.get("ha-enable-leader-election", False)),
        )
    )


def _tls(values: Mapping[str, Any]) -> TlsSettings:
    secure: bool = values.get("secure-serving", True)
    folder: str | None = values.get("cert-path")
    if folder is None or not secure:
        return TlsSettings(extproc=SurfaceTls(enabled=secure))
    folder = folder.rstrip("/")
    return TlsSettings(certificate=f"{folder}/{CERTIFICATE}", key=f"{folder}/{KEY}", extproc=SurfaceTls(enabled=secure))
