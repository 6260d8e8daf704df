"""From the flags of `lorapick up`, and perhaps a configuration, to a plan.

In: flags by name. Out: an `UpPlan`, or an error that says what would be right. Not here: running it (`cli.up`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lorapick.cli.loading import load
from lorapick.core.picking.policies import POLICIES
from lorapick.live.stack_options import MOST_ADAPTERS, StackOptions
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import ServerSettings, Settings
from lorapick.model.units import Seconds
from lorapick.pod.values import SPEEDS, SwapMode
from lorapick.wire.config import one_per_key, verbatim
from lorapick.wire.config.epp import is_endpoint_picker, parse_endpoint_picker
from lorapick.wire.podsfile import parse_pods

_EVERYWHERE = frozenset({"0.0.0.0", "[::]"})  # noqa: S104 - compared with, not listened on
SAMPLE_EVENT = "document.uploaded"
SAMPLE_PROMISE: Seconds = 2.0
"""P95 that users of the emulated fleet are promised, in model time: it serves within a second while adapters fit."""
EMULATED_MODEL = "llama-3.1-8b"
"""What emulated pods are calibrated to (`pod.values`): by its shape the doctor knows what a slot costs."""
MOST_SLOTS = 1_000
_RATES = (0.001, 10_000.0)
"""Requests per second of the sample traffic."""


class UpError(ValueError):
    """Flags that cannot be obeyed; the text says why and what would be right."""


class UpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `lorapick up` will do."""

    options: StackOptions
    listens: tuple[tuple[str, str], ...]
    """Addresses that must be free, each with what to do when it is not."""
    rate: float | None
    """Requests per second of the sample traffic; None: no traffic."""
    traffic_adapters: tuple[str, ...]
    pods_file: Path | None = None
    """The operator's own list of pods, to be followed; None: the pods stay as they are."""
    settings: Settings = Settings()
    """The operator's configuration, adapters of its catalogue included; defaults without one."""
    later: tuple[str, ...] = ()
    """Its keys that no part acts on yet, a line each."""
    useless_roles: tuple[str, ...] = ()
    """Its pods whose role leaves them, or their model, without requests, a line each."""


def plan_of(flags: Mapping[str, Any]) -> UpPlan:
    """Put flags and configuration together; flags win.

    Raises:
        UpError: a flag's value cannot be.
        ConfigError: the configuration, its pods file or its catalogue is wrong.
    """
    _check(flags)
    plan = _emulated(flags) if flags["config"] is None else _configured(flags, flags["config"])
    _check_apart(plan.listens)
    return plan


def _check(flags: Mapping[str, Any]) -> None:
    _one_of("--mode", flags["mode"], [mode.value for mode in SwapMode])
    _one_of("--policy", flags["policy"] or "weighted", list(POLICIES))
    _one_of("--body", flags["body"] or "buffered", ["buffered", "full_duplex_streamed"])
    for name, least in (("pods", 1), ("slots", 1), ("adapters", 0), ("pickers", 1), ("concurrency", 1)):
        if flags[name] < least:
            raise UpError(f"--{name} is {flags[name]}; it must be {least} or more")
    if not 0 <= flags["prefill"] < flags["pods"]:
        raise UpError(f"--prefill is {flags['prefill']}; it must be 0 to {flags['pods'] - 1}: some pod must decode")
    for name, most in (("adapters", MOST_ADAPTERS), ("slots", MOST_SLOTS), ("seed", 2**31 - 1)):
        if not 0 <= flags[name] <= most:
            raise UpError(f"--{name} is {flags[name]}; it must be 0 to {most}")
    for name, (low, high) in (("rate", _RATES), ("speed", SPEEDS)):
        if not low <= flags[name] <= high:
            raise UpError(f"--{name} is {flags[name]:g}; it must be above 0: {low:g} to {high:g}")
    for name in ("port", "admin_port", "metrics_port", "health_port"):
        if flags[name] is not None and not 0 < flags[name] < 65_536:
            raise UpError(f"--{name.replace('_', '-')} is {flags[name]}; ports go from 1 to 65535")
    last = flags["pod_port"] + flags["pods"] - 1
    if flags["pod_port"] < 0 or last > 65_535:
        raise UpError(
            f"--pod-port is {flags['pod_port']}; {flags['pods']} pods need ports up to {last}, the end is 65535"
        )


def _check_apart(listens: Sequence[tuple[str, str]]) -> None:
    """No two parts may have one address; Envoy would say so only after everything else has started."""
    for at, (address, remedy) in enumerate(listens):
        for other, _ in listens[:at]:
            if _clash(address, other):
                raise UpError(f"two parts would listen on {address}; {remedy}")


def _clash(one: str, other: str) -> bool:
    (host, _, port), (other_host, _, other_port) = one.rpartition(":"), other.rpartition(":")
    return int(port) == int(other_port) and (host == other_host or not _EVERYWHERE.isdisjoint((host, other_host)))


def _one_of(flag: str, value: str, known: list[str]) -> None:
    if value not in known:
        raise UpError(f"{flag} is {value!r}; it must be one of {', '.join(known)}")


def _common(flags: Mapping[str, Any], server: ServerSettings) -> dict[str, Any]:
    """Options that flags and configuration both may set."""
    return {
        "body": flags["body"] or server.body,
        "observe": server.observe,
        "max_body": server.max_body,
        "pickers": flags["pickers"],
        "event_log": flags["event_log"],
        "concurrency": flags["concurrency"],
        "run_dir": flags["run_dir"],
        "endpoint": _with_port(server.endpoint, flags["port"]),
        "admin": _with_port(server.admin, flags["admin_port"]),
        "metrics": _with_port(server.metrics, flags["metrics_port"]),
        "health": _with_port(server.health, flags["health_port"]),
        "restart_pods": 1.0,
    }


def _with_port(address: str, port: int | None) -> str:
    return address if port is None else f"{address.rpartition(':')[0]}:{port}"


def _emulated(flags: Mapping[str, Any]) -> UpPlan:
    options = StackOptions(
        **_common(flags, ServerSettings()),
        pods=flags["pods"],
        prefill=flags["prefill"],
        adapters=flags["adapters"],
        policy=flags["policy"] or "weighted",
        mode=flags["mode"],
        limits=_limits(flags["slots"]),
        base_model=EMULATED_MODEL,
        pod_port=flags["pod_port"],
        speed=flags["speed"],
        seed=flags["seed"],
    )
    options = msgspec.structs.replace(options, configuration=sample_configuration(options))
    ports = range(options.pod_port, options.pod_port + options.pods) if options.pod_port else ()
    listens = _listens(options) + tuple((f"127.0.0.1:{port}", "choose another --pod-port") for port in ports)
    rate = flags["rate"] if flags["traffic"] and options.adapter_names else None
    return UpPlan(options=options, listens=listens, rate=rate, traffic_adapters=options.adapter_names)


def _limits(slots: int) -> PodLimits:
    """Of each emulated pod; an engine's host memory holds at least what its slots hold."""
    limits = PodLimits(max_loras=slots)
    return msgspec.structs.replace(limits, max_cpu_loras=max(limits.max_cpu_loras, slots))


def sample_configuration(options: StackOptions) -> dict[str, Any]:
    """A promise to users, one pin and one trigger, of the two adapters that the sample of traffic asks for least."""
    names = options.adapter_names
    promised = {"slo": {"latency_p95": f"{1000 * SAMPLE_PROMISE / options.speed:.3f}ms"}}
    if len(names) < 3:
        return promised
    pinned, loaded = names[-1], names[-2]
    pin = {"name": pinned, "pin": {"replicas": min(2, options.pods)}}
    return {
        **promised,
        "adapters": {"list": [*({"name": name} for name in names[:-1]), pin]},
        "triggers": [{"event": SAMPLE_EVENT, "preload": loaded, "for": "10m"}],
    }


def _configured(flags: Mapping[str, Any], path: Path) -> UpPlan:
    loaded = load(path)
    settings = loaded.settings
    _some(loaded.pods, loaded.pods_file or path)
    options = StackOptions(
        **_common(flags, settings.server),
        pods=0,
        adapters=(),
        policy=flags["policy"] or settings.picking.policy,
        longest_hold=settings.admission.max_wait,
        fallbacks=settings.picking.fallbacks,
        pass_encoders=settings.disaggregation.pass_encoders,
        external=loaded.pods,
        configuration=_overlay(loaded.content, flags, config=path.absolute()),
        seed=settings.seed,
    )
    names = tuple(adapter.name for adapter in settings.adapters)
    return UpPlan(
        options=options,
        listens=_listens(options),
        # Sample traffic is for emulated pods; a fleet of the operator's own has users.
        rate=None,
        traffic_adapters=names,
        pods_file=loaded.pods_file,
        settings=settings,
        later=one_per_key(loaded.later),
        useless_roles=loaded.useless_roles,
    )


def _naming(content: bytes, *, config: str) -> dict[str, Any]:
    """A lorapick.yaml that says what an `EndpointPickerConfig` by itself does."""
    picker = parse_endpoint_picker(content, file=config)
    pods = {"discovery": {"file": picker.endpoints}} if picker.endpoints is not None else {}
    return {"picking": {"endpoint_picker_config": config}, **pods}


def _overlay(content: bytes, flags: Mapping[str, Any], *, config: Path) -> dict[str, Any]:
    """The operator's configuration but for what the flags and `up` itself say; it will lie in another directory."""
    beside = config.parent
    document = verbatim.read(content) if not is_endpoint_picker(content) else _naming(content, config=config.name)
    picker = (document.get("picking") or {}).get("endpoint_picker_config")
    if picker:
        document["picking"] = {**document["picking"], "endpoint_picker_config": str(beside / picker)}
    discovery = document.pop("discovery", {})
    if "file" in discovery:
        document["discovery"] = {"file": str(beside / discovery["file"])}
    adapters = dict(document.get("adapters") or {})
    if "catalogue" in adapters:
        adapters["catalogue"] = str(beside / adapters["catalogue"])
    if "list" in adapters:
        adapters["list"] = [_whole_source(each, beside=beside) for each in adapters["list"] or ()]
    if adapters:
        document["adapters"] = adapters
    placement = dict(document.get("placement") or {})
    placement.update({key: str(beside / placement[key]) for key in ("history", "store") if placement.get(key)})
    if placement.get("sources"):
        placement["sources"] = [_whole(each, beside=beside) for each in placement["sources"]]
    if placement:
        document["placement"] = placement
    ledger = document.get("ledger") or {}
    if ledger.get("path"):
        document["ledger"] = {**ledger, "path": str(beside / ledger["path"])}
    if flags["policy"] is not None:
        picking = {key: value for key, value in document.get("picking", {}).items() if key != "endpoint_picker_config"}
        document["picking"] = {**picking, "policy": flags["policy"]}
    if flags["body"] is not None:
        document["server"] = {**document.get("server", {}), "body": flags["body"]}
    _place_secrets(document, beside=beside)
    return document


def _place_secrets(document: dict[str, Any], *, beside: Path) -> None:
    """Certificates and tokens, which lie beside the configuration. Our own Envoy asks by a socket, so never by TLS."""
    if document.get("tls"):
        tls = {key: value for key, value in document["tls"].items() if key != "extproc"}
        tls.update({key: str(beside / tls[key]) for key in ("folder", "certificate", "key") if key in tls})
        for name in ("metrics", "admin"):
            if "client_ca" in (tls.get(name) or {}):
                tls[name] = {**tls[name], "client_ca": str(beside / tls[name]["client_ca"])}
        document["tls"] = tls
    server = document.get("server") or {}
    files = {key: str(beside / server[key]) for key in ("admin_token_file", "metrics_token_file") if server.get(key)}
    if files:
        document["server"] = {**server, **files}


def _whole_source(adapter: Any, *, beside: Path) -> Any:
    source = adapter.get("source") if isinstance(adapter, Mapping) else None
    return adapter if source is None else {**adapter, "source": _whole(source, beside=beside, parent=True)}


def _whole(place: str, *, beside: Path, parent: bool = False) -> str:
    """A place beside the configuration as a whole path: one that is there, or (`parent`) whose folder is.

    Anything else is a URL, a repository, or a path of the pods alone, and means the same from everywhere.
    """
    path = beside / place
    return str(path) if ":" not in place and (path.parent if parent else path).is_dir() else place


def read_pods(path: Path, settings: Settings) -> tuple[Pod, ...]:
    """Read a list of pods.

    Raises:
        OSError: it cannot be read.
        ConfigError: it is wrong.
    """
    return parse_pods(path.read_bytes(), file=str(path), settings=settings)


def _some(pods: tuple[Pod, ...], path: Path) -> tuple[Pod, ...]:
    if not pods:
        raise UpError(f"{path} has no pods; add at least one {{name: ..., address: ip:port}}")
    return pods


def _listens(options: StackOptions) -> tuple[tuple[str, str], ...]:
    asked = (
        (options.endpoint, "--port"),
        (options.admin, "--admin-port"),
        (options.metrics, "--metrics-port"),
        (options.health, "--health-port"),
    )
    return tuple((address, f"choose another {flag}") for address, flag in asked if address is not None)
