"""What one decision read, kept for an explanation later.

In: the columns, an adapter. Out: a copy that nothing changes any more. Not here: explanations (see `core.explain`).
"""

from array import array
from collections.abc import Sequence
from typing import Any

from lorapick.core.columns import PodColumns
from lorapick.core.scraped import Scraped
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, PodName


class FrozenView:
    """The columns as one decision saw them, for one adapter; `reads` names what its policy reads besides.

    Same attribute names as `PodColumns`.
    """

    __slots__ = (
        "base",
        "codes",
        "decode_only",
        "free_slots",
        "fresh_until",
        "gate",
        "gpu",
        "gpu_source",
        "kept",
        "leg_turn",
        "load",
        "load_price",
        "max_queue",
        "max_rank",
        "members",
        "pods",
        "prefill_only",
        "pressure",
        "queue",
        "rows",
        "scraped",
        "slots_left",
        "turn",
        "version",
    )  # fmt: skip

    load: "array[float]"
    load_price: "array[float]"
    members: tuple[PodName | None, ...]
    scraped: list[Scraped]

    def __init__(self, columns: PodColumns, adapter: AdapterName | None, *, reads: Sequence[str]) -> None:
        rows = self.rows = columns.rows
        self.turn = columns.turn
        self.leg_turn = columns.leg_turn
        self.version = columns.version
        self.pods: list[Pod | None] = columns.pods[:]
        self.gpu_source = columns.gpu_source[:]
        codes = columns.adapters.get(adapter) if adapter is not None else None
        self.codes = codes[:rows] if codes is not None else None
        self.fresh_until = columns.fresh_until[:rows]
        self.queue = columns.queue[:rows]
        self.max_queue = columns.max_queue[:rows]
        self.gpu = columns.gpu[:rows]
        self.max_rank = columns.max_rank[:rows]
        self.free_slots = columns.free_slots[:rows]
        self.slots_left = columns.slots_left[:rows]
        self.kept = columns.kept[:rows]
        self.gate = columns.gate[:rows]
        self.pressure = columns.pressure[:rows]
        self.base = columns.base[:rows]
        self.prefill_only = columns.prefill_only[:rows]
        self.decode_only = columns.decode_only[:rows]
        for name in reads:
            setattr(self, name, getattr(columns, name)[:rows])

    @property
    def room(self) -> list[float]:
        """As in the columns."""
        pairs = zip(self.queue, self.max_queue, strict=True)
        return [1.0 - queue / most if most else 0.0 for queue, most in pairs]

    @property
    def idle(self) -> list[float]:
        """As in the columns."""
        return [1.0 - gpu for gpu in self.gpu]

    def vectors(self) -> Any:
        """Not needed: explanations go row by row."""
        raise TypeError("a frozen view is read row by row")
