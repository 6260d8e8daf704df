"""Which adapters to pin: the fewest that cover a share of the requests.

In: counted logs, what is pinned already, room. Out: adapters, most requests first. Not here: how many copies of each,
and where (see `assigning`).

The adapters with most requests are the fewest that cover any share. Left out are those that are gone, and names that a
configuration cannot have; the cover is of the requests for adapters that are not gone.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from lorapick.model.units import AdapterName, Ratio
from lorapick.plan.logs.values import LogAdapter, LogSummary
from lorapick.plan.pins.values import DAY, GONE, NEW, LeftOut, PinFleet, PinOptions, Remark

LONGEST = 4096
"""Characters of a name that a configuration may have."""
_ROUNDING = 1e-9
_NEWCOMER = (
    f"first seen in the last {NEW / DAY:.0f} days, so perhaps experiments, which pins should not hold (--with-new pins "
    "them too)"
)


class Chosen(NamedTuple):
    """Who should be pinned if there is room."""

    adapters: tuple[LogAdapter, ...]
    left_out: tuple[LeftOut, ...]
    current: int
    """Requests of adapters that are not gone."""
    before: int
    """Of them, those for adapters that are pinned already."""
    enough: bool
    """Whether these cover what was asked for."""


def count_for(adapters: Sequence[LogAdapter], share: Ratio) -> int:
    """The fewest adapters that have this share of all requests; `adapters` have most requests first."""
    wanted, have = share * sum(each.requests for each in adapters), 0
    for count, each in enumerate(adapters):
        if have >= wanted - _ROUNDING * wanted:
            return count
        have += each.requests
    return len(adapters)


def choose(summary: LogSummary, fleet: PinFleet, *, options: PinOptions, own: Collection[AdapterName]) -> Chosen:
    """The fewest adapters that cover the share together with those that are pinned already (`own`)."""
    current = [each for each in summary.adapters if not gone(each, summary)]
    total = sum(each.requests for each in current)
    have = before = sum(each.requests for each in current if each.adapter in own)
    wanted = options.cover * total
    chosen, left_out = [], []
    for each in summary.adapters:
        if have >= wanted - _ROUNDING * wanted:
            break
        if each.adapter in own:
            continue
        why = _unfit(each, summary, fleet=fleet) or (
            None if options.with_new or remark_of(each, summary) is None else _NEWCOMER
        )
        if why is None:
            chosen.append(each)
            have += each.requests
        else:
            left_out.append(LeftOut(adapter=each.adapter, share=each.requests / summary.requests, why=why))
    enough = have >= wanted - _ROUNDING * wanted
    return Chosen(tuple(chosen), tuple(left_out), total, before, enough)


def gone(adapter: LogAdapter, summary: LogSummary) -> bool:
    """Whether nobody has asked for it for long."""
    return adapter.last < summary.end - GONE


def remark_of(adapter: LogAdapter, summary: LogSummary) -> Remark | None:
    """What to know of it. Logs that are short themselves do not tell who is new."""
    is_new = adapter.first > summary.end - NEW and summary.end - summary.start >= 2 * NEW
    return Remark.NEW if is_new else None


def _unfit(adapter: LogAdapter, summary: LogSummary, *, fleet: PinFleet) -> str | None:
    """Why it cannot, or should not, be pinned."""
    name = adapter.adapter
    if gone(adapter, summary):
        return f"gone: last asked for {(summary.end - adapter.last) / DAY:.0f} days before the end of the logs"
    if any(each.name == name and each.pin is not None for each in fleet.declared):
        return "the configuration pins it, and no pod has a slot for that"
    if name in fleet.aliases:
        return "an alias; pin the adapters that it leads to: count the column that names them (--adapter-column)"
    if name == fleet.base_model or name in [pod.base_model for pod in fleet.pods]:
        return "the base model; say so with --base"
    if not fit_name(name):
        return "no name that a configuration may have: no comma, no blank, printable"
    return None


def fit_name(name: AdapterName) -> bool:
    """Whether a configuration may have it: as `wire.config.readers.adapter_name` reads names; a test compares them."""
    return 0 < len(name) <= LONGEST and name.isprintable() and not any(each == "," or each.isspace() for each in name)
