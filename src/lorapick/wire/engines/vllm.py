"""vLLM's metrics page, 0.6 to 0.32 and the residency families of its open pull requests 51433 and 54830.

In: the page. Out: a `PodReport`. Not here: what the report does to beliefs.

Facts of vLLM that shape this file (read in 0.32.0):
- `lora_requests_info` has one series for each combination of names ever in flight together and removes none; its value
  is the unix time of the last step with that combination, so only the newest series is current. It is absent before the
  first adapter request: such a pod is empty, not full.
- Both of its labels carry the same names: whoever has a request in flight that reached the engine. It is activity and
  says nothing about residency.
- With data parallelism every engine has its own series, told apart by the label `engine`.
"""

from collections.abc import Sequence

from lorapick.model.pods import GpuSource, LoadedAdapter, PodReport
from lorapick.model.units import AdapterName, Seconds
from lorapick.wire.engines.readings import MOST_NAMES, PROCESS_START, Readings
from lorapick.wire.exposition import ExpositionError, Sample

_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_BY_REASON = "vllm:num_requests_waiting_by_reason"
_KV = "vllm:kv_cache_usage_perc"
_KV_BEFORE_0_10 = "vllm:gpu_cache_usage_perc"
_PREEMPTIONS = "vllm:num_preemptions_total"
_PROMPT_TOKENS = "vllm:prompt_tokens_total"
_IN_FLIGHT = "vllm:lora_requests_info"
_IN_FLIGHT_LABELS = ("running_lora_adapters", "waiting_lora_adapters")
_CACHE = "vllm:cache_config_info"
_LOADED = "vllm:lora_adapter_loaded"
_SLOTS = "vllm:max_gpu_lora_adapters"
_FAMILIES = (
    PROCESS_START,
    _RUNNING,
    _WAITING,
    _BY_REASON,
    _KV,
    _PREEMPTIONS,
    _PROMPT_TOKENS,
    _IN_FLIGHT,
    _CACHE,
    _LOADED,
)
"""In the order of vLLM's page, which makes reading it one pass."""

_MOST_SETS = 512
"""Series of activity whose names are read for the record of use, the newest ones: what is older was evicted since."""
_MOST_DIGITS = 6
"""Of a number of slots; a label may hold anything."""


def parse(page: bytes, /, *, used_since: Seconds | None = None) -> PodReport:
    """Read one page; `used_since`: the last one's `used_until`.

    Raises:
        ExpositionError: the page is not vLLM's, or a line that matters is malformed.
    """
    read = Readings(page, _FAMILIES)
    read.need((_RUNNING, _WAITING), engine="vLLM")
    if not read.samples(_KV):
        read.also([_KV_BEFORE_0_10])
    activity = read.samples(_IN_FLIGHT)
    newest = _newest(activity)
    running, waiting = (_names(newest, label) for label in _IN_FLIGHT_LABELS)
    apart = running != waiting
    gpu, memory = read.emulated()
    return PodReport(
        waiting=read.count(_WAITING, _BY_REASON),
        running=read.count(_RUNNING),
        deferred=read.count(_BY_REASON, where={"reason": "deferred"}),
        kv_usage=read.share(_KV, _KV_BEFORE_0_10),
        gpu_utilization=gpu,
        gpu_source=GpuSource.UNKNOWN if gpu is None else GpuSource.POD,
        memory_pressure=memory,
        preemptions=read.count(_PREEMPTIONS),
        prompt_tokens=read.count(_PROMPT_TOKENS),
        in_flight_adapters=_names(newest, *_IN_FLIGHT_LABELS) if apart else running,
        running_adapters=running if apart else None,
        waiting_adapters=waiting if apart else None,
        used=_used(activity, since=used_since),
        used_until=newest[0].value if newest else None,
        loaded=_loaded(read),
        max_loras=_slots(read, newest),
        block_size=read.label_number(_CACHE, "block_size", total=False),
        gpu_blocks=read.label_number(_CACHE, "num_gpu_blocks", total=True),
        process_start=read.process_start(),
        doubts=read.doubts,
    )


def _newest(samples: Sequence[Sample]) -> list[Sample]:
    """The current series: the one with the largest value; several engines may write in the same instant."""
    latest = max((sample.value for sample in samples), default=None)
    newest = [sample for sample in samples if sample.value == latest]
    if len(newest) > MOST_NAMES:
        raise ExpositionError(f"{len(newest)} series of {_IN_FLIGHT} are current; the limit is {MOST_NAMES}")
    return newest


def _used(activity: Sequence[Sample], *, since: Seconds | None) -> tuple[AdapterName, ...]:
    """Adapters in the order of the last step that each was in flight at, oldest first; those of steps after `since`.

    No set of names is ever removed from the page, so its times are a record of use since the process began.
    """
    later = sorted((s for s in activity if since is None or s.value > since), key=lambda sample: sample.value)
    order: dict[AdapterName, None] = {}
    for sample in later[-_MOST_SETS:]:
        for name in _names([sample], _IN_FLIGHT_LABELS[0]) or ():
            order.pop(name, None)
            order[name] = None
    return tuple(order)[-MOST_NAMES:]


def _names(newest: Sequence[Sample], *under: str) -> tuple[AdapterName, ...] | None:
    """Adapters in flight, those named under some labels; None: no series yet."""
    if not newest:
        return None
    names: dict[AdapterName, None] = {}
    for sample in newest:
        labels = sample.labels()
        for label in under:
            # Some emulators put a space after the comma.
            names.update(dict.fromkeys(name.strip() for name in _split(labels.get(label, ""), label)))
            _check_count(len(names), label)
    names.pop("", None)
    return tuple(names)


def _split(text: str, label: str) -> list[str]:
    names = text.split(",", MOST_NAMES + 1)
    _check_count(len(names), label)
    return names


def _check_count(names: int, label: str) -> None:
    if names > MOST_NAMES + 1:  # an empty name among them is none
        raise ExpositionError(f"{label} of {_IN_FLIGHT} names more adapters than {MOST_NAMES}; that is the limit")


def _slots(read: Readings, newest: Sequence[Sample]) -> int | None:
    """GPU slots: of the residency families, else the label of the activity series."""
    if read.declared(_LOADED):
        read.also([_SLOTS])
        if (slots := read.count(_SLOTS)) is not None:
            return slots
    limits = [sample.labels().get("max_lora", "") for sample in newest]
    usable = [int(limit) for limit in limits if limit.isascii() and limit.isdigit() and len(limit) <= _MOST_DIGITS]
    return max(usable, default=None)


def _loaded(read: Readings) -> tuple[LoadedAdapter, ...] | None:
    """The engine's own residency report; empty when the family is declared and has no series."""
    if not read.declared(_LOADED):
        return None
    loaded: dict[AdapterName, LoadedAdapter] = {}
    for sample in read.labelled(_LOADED):
        labels = sample.labels()
        name = labels.get("adapter_name", "")
        if sample.value <= 0 or not name:
            continue
        rank, before = labels.get("rank", ""), loaded.get(name)
        loaded[name] = LoadedAdapter(
            name=name,
            on_gpu=labels.get("level") == "gpu" or (before is not None and before.on_gpu),
            pinned=labels.get("pinned", "").lower() in ("true", "1") or (before is not None and before.pinned),
            rank=int(rank) if rank.isascii() and rank.isdigit() else before.rank if before is not None else None,
        )
    return tuple(loaded.values())
