"""Metrics dialects: for each engine, where its pages are and how they read.

Add an engine: one file with `parse(page) -> PodReport`, one line in `DIALECTS`.
"""

from collections.abc import Callable

import msgspec

from lorapick.model.pods import Engine, PodReport
from lorapick.wire.engines import lorax, sglang, trtllm, vllm


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One engine's way to be asked."""

    parse: Callable[[bytes], PodReport]
    """Raises `ExpositionError` for a page that is not this engine's."""
    metrics_path: str = "/metrics"
    models_path: str | None = "/v1/models"
    """Where the engine lists base models and registered adapters; None: nowhere."""


DIALECTS: dict[Engine, Dialect] = {
    Engine.VLLM: Dialect(parse=vllm.parse),
    Engine.SGLANG: Dialect(parse=sglang.parse),
    Engine.TRTLLM: Dialect(parse=trtllm.parse),
    Engine.LORAX: Dialect(parse=lorax.parse, models_path=None),
}
