"""A pods file: a YAML list of pods, or llm-d's list of endpoints, to `Pod` values.

In: the text, and what the configuration says about every pod. Out: the pods in the file's order; or `ConfigError` with
every problem. Not here: reading the file, and noticing that it changed (see `live.discovery`).
"""

import contextlib

from lorapick.model.pods import Engine, Pod
from lorapick.model.settings import Settings
from lorapick.wire.config.document import Refused, Report, parse_document
from lorapick.wire.config.epp.endpoints import are_endpoints, endpoints
from lorapick.wire.config.pods import PodDefaults, pods


def parse_pods(content: bytes | str, *, file: str, settings: Settings) -> tuple[Pod, ...]:
    """Read a pods file. An empty list (`[]`) is a fleet without pods; an empty file is an error.

    Args:
        content: the YAML text.
        file: what messages call it.
        settings: gives engine, base model and limits of pods that do not say.

    Raises:
        ConfigError: every problem of the file.
    """
    report = Report(file)
    defaults = PodDefaults(
        engine=Engine(settings.default_engine), base_model=settings.base_model, limits=settings.defaults
    )
    found: tuple[Pod, ...] = ()
    root = parse_document(content, report)
    with contextlib.suppress(Refused):
        found = (endpoints if are_endpoints(root) else pods)(defaults)(root)
    report.raise_if_any()
    return found
