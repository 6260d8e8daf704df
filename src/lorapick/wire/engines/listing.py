"""What an engine's rarely asked pages add to a report: its list of models, and what it says of its own settings.

In: the report of a metrics page, the list, the settings. Out: the report with names, and with adapters in memory where
the list is that. Not here: asking (see `live.slow_pages`).
"""

import msgspec

from lorapick.model.pods import LoadedAdapter, PodReport
from lorapick.model.units import AdapterName
from lorapick.wire.models_list import ModelsList


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says of how it was started. None: it does not say."""

    max_loras: int | None = None
    """GPU slots for adapters."""
    max_cpu_loras: int | None = None
    """Adapters in host memory at most, those on the GPU included."""
    pinned: tuple[AdapterName, ...] = ()
    """Adapters that it never evicts."""


def with_lists(
    report: PodReport, models: ModelsList, *, settings: EngineSettings | None, in_memory: bool, known: ModelsList | None
) -> PodReport:
    """The report with what the lists add.

    `in_memory`: the list of models is that of the adapters in memory (SGLang), so an adapter that the engine evicted is
    missing from it and is served all the same. Those of the list before (`known`) are taken to be such while the list
    is as long as it may be; else somebody unloaded them.
    """
    registered = models.registered
    loaded = report.loaded
    settings = settings if settings is not None else EngineSettings()
    most = settings.max_cpu_loras
    if in_memory:
        pinned = dict.fromkeys(settings.pinned)
        loaded = tuple(LoadedAdapter(name=name, on_gpu=None, pinned=name in pinned) for name in registered)
        if known is not None and most is not None and len(registered) >= most:
            registered = tuple(dict.fromkeys([*registered, *known.registered]))
    return msgspec.structs.replace(
        report,
        registered=registered,
        base_models=models.base_models,
        loaded=loaded,
        max_loras=report.max_loras if report.max_loras is not None else settings.max_loras,
        max_cpu_loras=most,
    )
