"""What a whole installation on one machine consists of, and the files that say so to its parts.

In: `StackOptions`. Out: addresses, `lorapick.yaml` and `pods.yaml` as documents, command lines.
Not here: starting anything (see `live.stack`).
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from lorapick.live.addresses import free_ports
from lorapick.model.pods import Pod, PodLimits, Role
from lorapick.model.units import AdapterName, Bytes, Seconds

LORAPICK = (sys.executable, "-m", "lorapick.cli.main")
"""Our own command, without relying on the search path."""


LEDGER = "ledger.sqlite"
"""The first picker's ledger, in the run directory."""
MOST_ADAPTERS = 10_000
"""Adapters of emulated pods; what one pod may list is bounded."""


class StackOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One Envoy, its pickers and pods. Addresses that are None get a free port on 127.0.0.1."""

    pods: int = 8
    """Emulated pods; 0 with `external`."""
    prefill: int = 0
    """Of these, how many prefill for the others, which decode then; 0: all do both."""
    adapters: int | tuple[AdapterName, ...] = 40
    """Names, or how many of `adapter-000`, `adapter-001`, ..."""
    policy: str = "weighted"
    mode: str = "inline"
    """Swap mode of the emulated pods: `inline` or `drain`."""
    body: str = "buffered"
    observe: str = "headers"
    max_body: Bytes = 10 * 1024 * 1024
    longest_hold: Seconds = 30.0
    fallbacks: int = 2
    """Pods that a pick names beside the first, as the picker's configuration says."""
    pass_encoders: bool = False
    limits: PodLimits = PodLimits()
    speed: float = 1.0
    """Model seconds per real second of the emulated pods."""
    pickers: int = 1
    event_log: bool = False
    """Whether each picker keeps an event log, beside its configuration."""
    concurrency: int = 1
    """Envoy's worker threads."""
    seed: int = 0
    run_dir: Path | None = None
    """Files, sockets and logs; None: a temporary directory that goes with the stack."""
    endpoint: str | None = None
    admin: str | None = None
    metrics: str | None = None
    health: str | None = None
    pod_port: int = 0
    """Port of the first emulated pod, the others follow; 0: free ports."""
    base_model: str = "base"
    """Name of the emulated pods' base model; by a known one's name the doctor knows what a slot costs."""
    restart_pods: Seconds | None = None
    """Seconds after which a dead pod comes back, as Kubernetes would; None: only when asked to."""
    pod_arguments: tuple[str, ...] = ()
    """Further flags of `lorapick pod`."""
    external: tuple[Pod, ...] = ()
    """Pods that run already; then none are emulated."""
    configuration: Mapping[str, Any] = {}
    """Laid over the generated `lorapick.yaml`, mapping by mapping."""
    pod_command: Callable[[Pod, "StackOptions"], tuple[str, ...]] | None = None
    picker_command: Callable[[Path, str], tuple[str, ...]] | None = None
    """Another picker: from its configuration file and its ext_proc address to a command line."""

    def __post_init__(self) -> None:
        _at_least("pods", self.pods, 0 if self.external else 1)
        _at_least("prefill", self.prefill, 0)
        if 0 < self.pods <= self.prefill:
            raise ValueError(f"prefill is {self.prefill} of {self.pods} pods; at least one must decode")
        _at_least("pickers", self.pickers, 1)
        _at_least("concurrency", self.concurrency, 1)
        _at_least("adapters", len(self.adapter_names), 0)

    @property
    def adapter_names(self) -> tuple[AdapterName, ...]:
        """The adapters by name."""
        if isinstance(self.adapters, tuple):
            return self.adapters
        return tuple(f"adapter-{number:03d}" for number in range(self.adapters))


class PickerPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where one picker listens."""

    extproc: str
    health: str
    metrics: str
    admin: str
    configuration: Path
    envoy_admin: str | None = None
    """Envoy's admin API, which the picker reads; None: it does not."""
    number: int = 0

    @property
    def event_log(self) -> Path:
        """Where its event log is, if it keeps one."""
        return self.configuration.with_suffix(".events.jsonl")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} is {value}; it must be {least} or more")


def emulated_pods(options: StackOptions) -> tuple[Pod, ...]:
    """Return the pods that the stack starts itself, `pod-0` first; ports are chosen now."""
    count = 0 if options.external else options.pods
    ports = range(options.pod_port, options.pod_port + count) if options.pod_port else free_ports(count)
    return tuple(
        Pod(
            name=f"pod-{number}",
            address=f"127.0.0.1:{port}",
            role=Role.BOTH if not options.prefill else Role.PREFILL if number < options.prefill else Role.DECODE,
            base_model=options.base_model,
            limits=options.limits,
            # Their KV goes from one to the other as fast as in one zone (`HandoverOptions.kv_bandwidth`).
            zone="local" if options.prefill else None,
        )
        for number, port in enumerate(ports)
    )


def pods_document(pods: tuple[Pod, ...]) -> list[dict[str, Any]]:
    """Return the content of `pods.yaml`: all that is known of each pod, limits beside the rest."""
    rows = [msgspec.to_builtins(pod) for pod in pods]
    return [
        {key: value for key, value in (row | row["limits"]).items() if key != "limits" and value is not None}
        for row in rows
    ]


def configuration(options: StackOptions, place: PickerPlace, *, pods_file: Path) -> dict[str, Any]:
    """Return the content of `lorapick.yaml` for one picker."""
    generated = {
        "discovery": {"file": str(pods_file)},
        "defaults": msgspec.to_builtins(options.limits),
        "adapters": {"list": [{"name": name} for name in options.adapter_names]},
        "picking": {"policy": options.policy},
        "server": {"body": options.body, "observe": options.observe},
        "ledger": {"path": LEDGER},
        "seed": options.seed,
    }
    if not options.external:
        generated["base_model"] = options.base_model  # what adapters are for, too
    places = {
        "server": {
            "extproc": place.extproc,
            "health": place.health,
            "metrics": place.metrics,
            "admin": place.admin,
        }
    }
    if place.envoy_admin is not None:
        places["server"]["envoy_admin"] = place.envoy_admin
    if place.number:
        # A file has one picker: two would write over each other's counts.
        history = options.configuration.get("placement", {}).get("history")
        if history is not None:
            places["placement"] = {"history": f"{history}.{place.number}"}
        ledger = options.configuration.get("ledger", {}).get("path", LEDGER)
        places["ledger"] = {"path": f"{ledger}.{place.number}"}
    return _laid_over(_laid_over(generated, options.configuration), places)


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = _laid_over(old, value)
        else:
            result[key] = value
    return result


def adapters_document(options: StackOptions) -> list[str]:
    """Return the content of the file that the emulated pods read their adapters from."""
    return list(options.adapter_names)


def pod_command(pod: Pod, options: StackOptions, *, adapters_file: Path) -> tuple[str, ...]:
    """Return the command line of one emulated pod."""
    if options.pod_command is not None:
        return options.pod_command(pod, options)
    limits = pod.limits
    return (
        *LORAPICK,
        "pod",
        *("--name", pod.name),
        *("--host", pod.address.rpartition(":")[0]),
        *("--port", pod.address.rpartition(":")[2]),
        *("--base-model", pod.base_model),
        *("--adapters", str(adapters_file)),
        *("--max-loras", str(limits.max_loras)),
        *("--max-cpu-loras", str(limits.max_cpu_loras)),
        *("--max-lora-rank", str(limits.max_lora_rank)),
        *("--max-num-seqs", str(limits.max_num_seqs)),
        *("--mode", options.mode),
        *(() if pod.role is Role.BOTH else ("--role", pod.role.value)),
        *("--speed", str(options.speed)),
        *options.pod_arguments,
    )


def picker_command(options: StackOptions, place: PickerPlace) -> tuple[str, ...]:
    """Return the command line of one picker."""
    if options.picker_command is not None:
        return options.picker_command(place.configuration, place.extproc)
    recording = ("--event-log", str(place.event_log)) if options.event_log else ()
    return (*LORAPICK, "serve", "--config", str(place.configuration), *recording)
