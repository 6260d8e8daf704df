"""What the gateway is told of an answer when it ends: figures of its usage, as dynamic metadata.

In: the tokens that the answer counts. Out: metadata. Not here: which message carries it (see `response`), which
expressions there are (`wire.config.epp`). A gateway takes only namespaces that its filter allows to be received.
"""

from functools import lru_cache
from math import isfinite

from google.protobuf.struct_pb2 import Struct

from lorapick.model.answers import Usage
from lorapick.model.profiles import AttributeReport
from lorapick.wire.cel import CelError, Program

USAGE = "usage"
"""The only name in expressions."""


class Reporter:
    """Some reports, their expressions read."""

    def __init__(self, reports: tuple[AttributeReport, ...]) -> None:
        self._reports = [
            (
                each,
                Program(each.expression, names=(USAGE,)),
                Program(each.condition, names=(USAGE,)) if each.condition else None,
            )
            for each in reports
        ]

    def metadata(self, usage: Usage | None) -> Struct | None:
        """Figures by namespace and key; None: there are none, since conditions do not hold or counts are missing."""
        counts = {USAGE: counts_of(usage)}
        found: dict[str, dict[str, int]] = {}
        for report, expression, condition in self._reports:
            value = _figure(expression, counts, condition=condition)
            if value is not None:
                found.setdefault(report.namespace, {})[report.name] = value
        if not found:
            return None
        metadata = Struct()
        metadata.update(found)
        return metadata


def _figure(expression: Program, counts: dict[str, dict[str, object]], *, condition: Program | None) -> int | None:
    try:
        if condition is not None and condition.value(counts) is not True:
            return None
        value = expression.value(counts)
    except CelError:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return int(value)


def counts_of(usage: Usage | None) -> dict[str, object]:
    """Counts as OpenAI's `usage` names them; what nobody counted is not there."""
    if usage is None:
        return {}
    prompt, output, cached = usage.prompt_tokens, usage.output_tokens, usage.cached_tokens
    found: dict[str, object] = {}
    if prompt is not None:
        found["prompt_tokens"] = float(prompt)
    if output is not None:
        found["completion_tokens"] = float(output)
    if prompt is not None and output is not None:
        found["total_tokens"] = float(prompt + output)
    if cached is not None:
        found["prompt_tokens_details"] = {"cached_tokens": float(cached)}
    return found


@lru_cache(maxsize=16)
def reporter(reports: tuple[AttributeReport, ...]) -> Reporter:
    """The same for the same reports: expressions are read once."""
    return Reporter(reports)
