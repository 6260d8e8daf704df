"""Rates of the logs' adapters, as `lorapick check --today` reads them.

In: counted logs. Out: the text of a list. Not here: reading it (see `plan.gate.reading`).

The rates are of the busiest time: each adapter's share of all requests, times the requests per second of the sample.
"""

import json
from collections.abc import Iterator

from lorapick.model.units import Seconds
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.pins.choosing import fit_name, gone
from lorapick.plan.pins.predicting import length_of
from lorapick.plan.pins.values import counted

DOCUMENTS = (".yaml", ".yml", ".json")
"""Names of files that `lorapick check` takes for documents; others hold a line for each adapter."""
_SHORTEST: Seconds = 1.0
"""Of a sample that tells a rate."""
_SIGNS = ("+", "-")
"""Begin a line of a difference."""


def busiest_rate(summary: LogSummary) -> float:
    """Requests per second of the sample; without one, or of a moment, the mean of all logs."""
    times = [each.at for each in summary.sample.arrivals]
    # Of the requests themselves: the stretch may be an hour of which logs have five minutes.
    if len(times) > 1 and times[-1] - times[0] >= _SHORTEST:
        return len(times) / (times[-1] - times[0])
    return summary.requests / length_of(summary)


def today_list(summary: LogSummary, *, suffix: str) -> str:
    """Names with requests per second, most first, without adapters that are gone.

    Args:
        summary: the logs.
        suffix: of the file's name: JSON, which is YAML too, for `DOCUMENTS`, else a line for each adapter.

    Raises:
        ValueError: nobody is left.
    """
    rates, unfit = dict[str, float](), 0
    for each in summary.adapters:
        if gone(each, summary):
            continue
        if not fit_name(each.adapter) or (suffix not in DOCUMENTS and not _fits_a_line(each.adapter)):
            unfit += 1
        else:
            rates[each.adapter] = busiest_rate(summary) * each.requests / summary.requests
    if not rates:
        raise ValueError("--today: no adapter of the logs has a name that a list can hold")
    return "\n".join(_document(rates) if suffix in DOCUMENTS else _lines(rates, unfit=unfit)) + "\n"


def _fits_a_line(name: str) -> bool:
    return not name.startswith(_SIGNS) and "#" not in name


def _document(rates: dict[str, float]) -> Iterator[str]:
    yield "["
    listed = [json.dumps({"name": name, "rate": float(f"{rate:.6g}")}) for name, rate in rates.items()]
    yield ",\n".join(f"  {each}" for each in listed)
    yield "]"


def _lines(rates: dict[str, float], *, unfit: int) -> Iterator[str]:
    yield "# requests per second: shares of all logs, at the rate of their busiest time"
    if unfit:
        yield f"# {counted(unfit, 'adapter')} left out, with names that a list cannot hold"
    yield from (f"{name} {rate:.6g}" for name, rate in rates.items())
