"""Metrics dialects: for each engine, where its pages are and how they read.

Add an engine: one file with `parse(page) -> PodReport`, one entry in `DIALECTS`.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from lorapick.model.pods import Engine, PodReport
from lorapick.model.units import Seconds
from lorapick.wire import models_list
from lorapick.wire.engines import lorax, sglang, sglang_info, triton, trtllm, vllm
from lorapick.wire.engines.listing import EngineSettings
from lorapick.wire.models_list import ModelsList


class Parse(Protocol):
    """Reads one metrics page."""

    def __call__(self, page: bytes, /, *, used_since: Seconds | None = None) -> PodReport:
        """Read it; `used_since`: `used_until` of the report before, None for the first.

        Raises:
            ExpositionError: the page is not this engine's.
        """
        ...


def _without_record(parse: Callable[[bytes], PodReport]) -> Parse:
    """The parser of an engine that keeps no record of which adapters it ran."""

    def read(page: bytes, /, *, used_since: Seconds | None = None) -> PodReport:
        del used_since
        return parse(page)

    return read


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One engine's way to be asked."""

    parse: Parse
    metrics_path: str = "/metrics"
    models_path: str | None = "/v1/models"
    """Where the engine lists base models and registered adapters; None: nowhere."""
    parse_models: Callable[[bytes], ModelsList] = models_list.parse
    models_are_memory: bool = False
    """Whether that list is the one of adapters in memory."""
    models_have_adapters: bool = True
    """Whether adapters are in that list at all; else it says nothing of what the engine would accept."""
    settings_paths: tuple[str, ...] = ()
    """Where the engine tells its own settings, newest name first."""
    parse_settings: Callable[[bytes], EngineSettings] | None = None


DIALECTS: dict[Engine, Dialect] = {
    Engine.VLLM: Dialect(parse=vllm.parse),
    Engine.SGLANG: Dialect(
        parse=_without_record(sglang.parse),
        models_are_memory=True,
        settings_paths=("/server_info", "/get_server_info"),
        parse_settings=sglang_info.parse,
    ),
    Engine.TRTLLM: Dialect(
        parse=_without_record(trtllm.parse), metrics_path="/prometheus/metrics", models_have_adapters=False
    ),
    Engine.TRITON: Dialect(parse=_without_record(triton.parse), parse_models=triton.parse_models),
    Engine.LORAX: Dialect(parse=_without_record(lorax.parse), models_path=None),
}
