"""Triton's metrics page with the `tensorrtllm` backend (0.9 to 1.2), and its list of models with adapters.

In: the page, the list that its OpenAI frontend answers. Out: a `PodReport`, names. Not here: which adapters are in its
two caches, of which Triton says nothing.

Older backends count no waiting requests and no share of the KV cache; both follow from what they count.
"""

from collections.abc import Mapping

from lorapick.model.pods import GpuSource, PodReport
from lorapick.model.units import AdapterName, Ratio
from lorapick.wire import models_list
from lorapick.wire.asking import SEPARATOR
from lorapick.wire.engines.readings import Readings
from lorapick.wire.exposition import ExpositionError
from lorapick.wire.models_list import ModelsList

_REQUESTS = "nv_trt_llm_request_metrics"
_KV = "nv_trt_llm_kv_cache_block_metrics"
_GPU = "nv_gpu_utilization"
_FAMILIES = (_GPU, _REQUESTS, _KV)
_ANY = b"nv_"
_TYPE = "request_type"
_KIND = "kv_cache_block_type"


def is_page(page: bytes) -> bool:
    """Whether it is a page of this backend."""
    return _REQUESTS.encode() in page


def parse(page: bytes) -> PodReport:
    """Read one page.

    Raises:
        ExpositionError: the page is not Triton's, or a line that matters is malformed.
    """
    if _ANY not in page:
        start = page[:60].decode(errors="backslashreplace")
        raise ExpositionError(
            f"nothing named {_ANY.decode()}* in a page of {len(page)} bytes that begins with {start!r}: not the "
            "metrics of Triton"
        )
    read = Readings(page, _FAMILIES)
    gpu: Ratio | None = read.share(_GPU)
    own_gpu, memory = read.emulated()
    gpu = own_gpu if gpu is None else gpu
    return PodReport(
        waiting=_waiting(read),
        running=read.count(_REQUESTS, where={_TYPE: "scheduled"}),
        kv_usage=_kv_usage(read),
        gpu_utilization=gpu,
        gpu_source=GpuSource.UNKNOWN if gpu is None else GpuSource.POD,
        memory_pressure=memory,
        block_size=read.largest(_KV, where={_KIND: "tokens_per"}),
        gpu_blocks=read.count(_KV, where={_KIND: "max"}),
        doubts=read.doubts,
    )


def _waiting(read: Readings) -> int | None:
    counted = read.count(_REQUESTS, where={_TYPE: "waiting"})
    if counted is not None:
        return counted
    active, scheduled = (read.count(_REQUESTS, where={_TYPE: kind}) for kind in ("active", "scheduled"))
    return None if active is None or scheduled is None else max(0, active - scheduled)


def _kv_usage(read: Readings) -> Ratio | None:
    share = read.share(_KV, where={_KIND: "fraction"})
    if share is not None:
        return share
    used, most = (read.count(_KV, where={_KIND: kind}) for kind in ("used", "max"))
    return None if used is None or not most else min(1.0, used / most)


def parse_models(body: bytes) -> ModelsList:
    """Read the frontend's list, in which an adapter is `MODEL_lora_NAME` beside its `MODEL`.

    Raises:
        ModelsListError: as `models_list.parse`.
    """
    listed = models_list.parse(body)
    names = dict.fromkeys((*listed.base_models, *listed.registered))
    adapters = {name: _adapter(name, names) for name in names}
    bases = tuple(name for name, adapter in adapters.items() if adapter is None)
    return ModelsList(base_models=bases, registered=tuple(dict.fromkeys(filter(None, adapters.values()))))


def _adapter(name: str, names: Mapping[str, None]) -> AdapterName | None:
    """The adapter of a listed name: what stands behind the name of a model and the separator. None: it is a model."""
    at = name.find(SEPARATOR)
    while at != -1:
        if name[:at] in names and name[at + len(SEPARATOR) :]:
            return name[at + len(SEPARATOR) :]
        at = name.find(SEPARATOR, at + 1)
    return None
