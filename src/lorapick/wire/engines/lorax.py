"""LoRAX's metrics page (0.12).

In: the page. Out: a `PodReport`. Not here: adapters; LoRAX says nothing about them in its metrics.

LoRAX sets its gauges only while it has a batch, so a page without them is that of an idle pod that never had work.
"""

from lorapick.model.pods import PodReport
from lorapick.wire.engines.readings import Readings
from lorapick.wire.exposition import ExpositionError

_BATCH = "lorax_batch_current_size"
_QUEUE = "lorax_queue_size"
_ANY = b"lorax_"


def parse(page: bytes) -> PodReport:
    """Read one page.

    Raises:
        ExpositionError: the page is not LoRAX's, or a line that matters is malformed.
    """
    read = Readings(page, (_BATCH, _QUEUE))
    if page.strip() and _ANY not in page:
        raise ExpositionError(
            f"nothing named {_ANY.decode()}* in a page of {len(page)} bytes: not the metrics of LoRAX"
        )
    return PodReport(waiting=read.count(_QUEUE), running=read.count(_BATCH), doubts=read.doubts)
