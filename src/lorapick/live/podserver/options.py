"""What an emulated pod is told at its start, as one value.

In: numbers and names from flags or from code.
Out: `PodServerOptions`, or `OptionsError` with the value, the limit and the remedy.
Not here: files of adapters (see `adapters_file`), flags (see `cli.pod`), behaviour.
"""

import msgspec

from lorapick.live.admin_token import is_loopback
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Engine, PodLimits, Role
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.pod.values import SPEEDS, AdapterSpec, PodConfig
from lorapick.wire.kv_transfer import KvTransferError, read_address

CATALOGUE_ROOT = "/adapters/"
"""Paths below it exist on the emulated disk when the last part is a known adapter's name."""
MAX_ADAPTERS = 100_000
LONGEST: Seconds = 86_400.0
EMULATED = (Engine.VLLM, Engine.SGLANG, Engine.TRTLLM, Engine.TRITON)
"""Engines that a pod can be made to look like."""


_LINKS = DisaggregationSettings()


class OptionsError(ValueError):
    """A setting describes no pod."""


class HandoverOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Prefill on one pod and decode on another, as far as this pod has a part in it."""

    sidecar: bool | None = None
    """Heed `x-prefiller-host-port`, as a pod behind llm-d's routing sidecar does. None: unless the role is prefill."""
    prefillers: tuple[str, ...] | None = None
    """`ip:port` of the pods that may be asked to prefill, and that KV may be pulled from. None: any on this machine if
    this pod listens there alone, else nobody: a request's header may name any address that the pod reaches."""
    prefill_timeout: Seconds = 60.0
    """Real seconds that a prefiller has for its answer; then the prompt is computed here. (llm-d's sidecar waits.)"""
    kv_bandwidth: float = _LINKS.links.same_zone
    """Bytes of KV per model second from a pod that prefilled to this one."""
    kv_latency: Seconds = _LINKS.link_latency
    """Model seconds of one transfer, whatever its size."""
    reserve: bool = False
    """Bring the adapter in when a request arrives at the sidecar, and let it leave memory last until the request ends.
    vLLM does not: its engine learns of the request when the prefill is over, and one that waits for KV has no slot."""


class PodServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One emulated pod behind HTTP."""

    name: PodName = "pod-0"
    host: str = "127.0.0.1"
    port: int = 8000
    """0: any free port; the ready line and `Served.url` tell which."""
    base_model: str = "base"
    config: PodConfig = PodConfig()
    adapters: tuple[AdapterSpec, ...] = ()
    """Registered at the start (`--lora-modules`), not in memory."""
    catalogue: tuple[AdapterSpec, ...] = ()
    """On the emulated disk only: `/v1/load_lora_adapter` finds them at `/adapters/<name>`."""
    engine: Engine = Engine.VLLM
    """Whose metrics page, adapter routes, list of models, errors, and way to name an adapter in a request. All else is
    vLLM's. SGLang's unload frees if `config.unload_frees`. LoRAX is not emulated."""
    max_loaded_loras: int | None = None
    """Of SGLang: adapters in memory at most. None: no limit."""
    speed: float = 1.0
    """Model seconds per real second. Everything the pod reports is in real seconds."""
    runtime_lora: bool = True
    """False: the load and unload routes do not exist, as without VLLM_ALLOW_RUNTIME_LORA_UPDATING."""
    report_loaded: bool = False
    """Show the residency families of vLLM's open pull request 54830."""
    seed: int = 0
    """For load failures; texts depend on adapter and prompt only."""
    metrics_lag: Seconds = 0.0
    """Oldest age of the statistics that a scrape may get."""
    metrics_fault: str = "ok"
    """`ok`, `garbage`, `hang` or `error`; can be changed at run time."""
    kv_events_port: int | None = None
    """Where KV events are published over ZMQ; 0: any free port. None: nowhere."""
    drain_timeout: Seconds = 10.0
    """Real seconds that requests in flight get after SIGTERM."""
    role: Role = Role.BOTH
    """What a fleet uses it for. As with vLLM's `kv_role` and NIXL, a pod of any role does whatever it is asked to."""
    handover: HandoverOptions = HandoverOptions()

    @property
    def labels(self) -> dict[str, str]:
        """As Kubernetes would have them: llm-d finds the role of a pod here."""
        return {"llm-d.ai/role": self.role.value}

    @property
    def has_sidecar(self) -> bool:
        """Whether requests may name a prefiller."""
        wanted = self.handover.sidecar
        return self.role is not Role.PREFILL if wanted is None else wanted

    def may_ask(self, prefiller: str) -> bool:
        """Whether the pod at `ip:port` may be asked to prefill, and KV be pulled from it."""
        allowed = self.handover.prefillers
        if allowed is not None:
            return prefiller in allowed
        return is_loopback(self.host) and is_loopback(prefiller.rpartition(":")[0].strip("[]"))

    def __post_init__(self) -> None:
        slowest, fastest = SPEEDS
        _require(
            slowest <= self.speed <= fastest,
            f"speed is {self.speed}; it must be {slowest:g} to {fastest:g} (1.0 is real time)",
        )
        _require(0 <= self.port <= 65_535, f"port is {self.port}; ports go from 0 (any free one) to 65535")
        _require(self.engine in EMULATED, f"engine is {self.engine}; emulated are {', '.join(EMULATED)}")
        most = self.max_loaded_loras
        _require(most is None or most >= 1, f"max_loaded_loras is {most}; it must be 1 or more, or absent: no limit")
        events = self.kv_events_port or 0
        _require(0 <= events <= 65_535, f"kv_events_port is {events}; ports go from 0 (any free one) to 65535")
        _require(bool(self.name), "name is empty; name the pod, for example pod-0")
        _require(bool(self.base_model), "base_model is empty; name it as clients will ask for it")
        for what in ("metrics_lag", "drain_timeout"):
            value = getattr(self, what)
            _require(0 <= value <= LONGEST, f"{what} is {value} s; it must be 0 or more and at most {LONGEST:g}")
        _check_handover(self.handover)
        _check_limits(self.config.limits)
        _check_names([*self.adapters, *self.catalogue], self.base_model)


def numbered_adapters(count: int, *, rank: int = 16) -> tuple[AdapterSpec, ...]:
    """`adapter-000`, `adapter-001`, ...: the adapters that a bare count stands for.

    Raises:
        OptionsError: the count is negative or above 100,000.
    """
    _require(0 <= count <= MAX_ADAPTERS, f"{count} adapters; ask for 0 to {MAX_ADAPTERS}")
    return tuple(adapter_spec(f"adapter-{number:03d}", rank=rank) for number in range(count))


def adapter_spec(name: AdapterName, *, rank: int = 16, size: int | None = None) -> AdapterSpec:
    """An adapter; its size in bytes follows from the rank (q and v of Llama-3.1-70B in FP16) unless given."""
    return AdapterSpec(name=name, rank=rank, size=rank * 4_096_000 if size is None else size)


def _require(good: bool, message: str) -> None:
    if not good:
        raise OptionsError(message)


def _check_handover(handover: HandoverOptions) -> None:
    for what in ("prefill_timeout", "kv_latency"):
        value = getattr(handover, what)
        _require(0 <= value <= LONGEST, f"{what} is {value} s; it must be 0 or more and at most {LONGEST:g}")
    bandwidth = handover.kv_bandwidth
    _require(bandwidth > 0, f"kv_bandwidth is {bandwidth} bytes/s; it must be above 0 (inf: transfers take no time)")
    for address in handover.prefillers or ():
        try:
            known = read_address(address)
        except KvTransferError as error:
            raise OptionsError(f"prefillers: {error}") from None
        _require(known == address, f"prefillers: write {address} as {known}")


def _check_limits(limits: PodLimits) -> None:
    for field in ("max_loras", "max_cpu_loras", "max_lora_rank", "max_num_seqs"):
        value = getattr(limits, field)
        _require(value >= 1, f"{field} is {value}; it must be 1 or more")
    slots, host = limits.max_loras, limits.max_cpu_loras
    _require(
        host >= slots,
        f"max_cpu_loras is {host}, below max_loras {slots}; adapters on the GPU are in the host level too: raise it",
    )


def _check_names(adapters: list[AdapterSpec], base_model: str) -> None:
    seen: dict[AdapterName, None] = {}
    for adapter in adapters:
        name = adapter.name
        _require(bool(name), "an adapter has an empty name")
        _require("," not in name, f"adapter {name!r} has a comma, which vLLM uses to join names: rename it")
        _require(name != base_model, f"adapter {name!r} has the base model's name: rename one of them")
        _require(name not in seen, f"adapter {name!r} is listed twice: list it once")
        _require(adapter.rank >= 1, f"adapter {name!r} has rank {adapter.rank}; it must be 1 or more")
        seen[name] = None
