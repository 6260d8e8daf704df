"""The page of an NVIDIA DCGM exporter.

In: the page, the pod that the GPU should belong to. Out: its GPU utilisation as a ratio.
Not here: when to ask for it (see `live.scrape`).
"""

from lorapick.model.units import PodName, Ratio
from lorapick.wire.engines.readings import Readings

_UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
_PERCENT = 100.0


def parse(page: bytes, *, pod: PodName) -> Ratio | None:
    """Mean utilisation of the pod's GPUs; None: the page does not tell, or the exporter marked it as unknown.

    Exporters on Kubernetes label each GPU with its `pod`; then only those of `pod` count. Elsewhere all GPUs of the
    page count: whoever gives a pod a DCGM address there means that pod's machine.

    Raises:
        ExpositionError: the page has no such family, or one of its lines is malformed.
    """
    read = Readings(page, (_UTILIZATION,))
    read.need((_UTILIZATION,), engine="a DCGM exporter")
    named = any(sample.labels().get("pod") for sample in read.samples(_UTILIZATION))
    # A GPU that nobody uses has an empty `pod` label, which is not this pod.
    return read.share(_UTILIZATION, where={"pod": pod} if named else {}, whole=_PERCENT)
