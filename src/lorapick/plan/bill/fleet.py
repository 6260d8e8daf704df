"""A GPU per adapter, or one fleet that shares the base: GPUs, dollars, and from how many adapters sharing pays.

In: assumptions. Out: a report with the break-even curve. Not here: whether the adapters fit the slots in use (see
`slots`, and `lorapick check`).

Spares are what makes N+1: one for every six separate instances (the article's 12 + 2), two pods of the shared fleet.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from lorapick.plan.work import Assumptions, Chart, Curve, Figure, Report, Table, assumed, shown, tabled

_SECTION_12 = "article, section 12"
DEFAULTS = (
    assumed("adapters", 12, unit="adapters", what="how many there are", source=_SECTION_12),
    assumed("rate", 200.0, unit="req/min", what="requests of each adapter", source=_SECTION_12),
    assumed(
        "single", 600.0, unit="req/min", what="one GPU with one adapter", source=f"{_SECTION_12}: 70B, batches of 32"
    ),
    assumed("mixed", 800.0, unit="req/min", what="one GPU with mixed batches", source=f"{_SECTION_12}: 30 % better"),
    assumed("per-spare", 6, unit="GPUs", what="separate GPUs per spare one", source=f"{_SECTION_12}: 12 + 2"),
    assumed("spares", 2, unit="pods", what="spare pods of the shared fleet", source=f"{_SECTION_12}: 3, with spares 5"),
    assumed("slots", 8, unit="slots", what="adapter slots of a shared pod", source=_SECTION_12),
    assumed("price", 3.5, unit="USD/h", what="of a GPU and hour", source=f"{_SECTION_12}: H100 on demand"),
    assumed("base", 35_000_000_000, unit="B", what="base model's weights", source=f"{_SECTION_12}: 70B in INT4"),
    assumed("single-kv", 25_000_000_000, unit="B", what="KV cache of a separate GPU", source=_SECTION_12),
    assumed("shared-kv", 30_000_000_000, unit="B", what="KV cache of a shared pod", source=_SECTION_12),
    assumed("slot", 65_536_000, unit="B", what="of an adapter's slot", source="own bytes; reserved: `plan slots`"),
    assumed("workspace", 5_000_000_000, unit="B", what="activations, buffers, graphs", source=_SECTION_12),
    assumed("hbm", 80_000_000_000, unit="B", what="memory of a GPU", source=f"{_SECTION_12}: H100"),
    assumed("hours", 730.0, unit="h", what="of a month", source=f"{_SECTION_12}: 8,760 h / 12"),
)
BANDS = ((1, 2, "none"), (3, 5, "30-40 %"), (6, 15, "50-65 %"), (16, 50, "70-85 %"), (51, None, "impossible apart"))
"""The article's savings by number of adapters: from, to (None: no end), its words."""
_BAND_EDGES = {"30-40 %": (30.0, 40.0), "50-65 %": (50.0, 65.0), "70-85 %": (70.0, 85.0)}
_SHOWN = (1, 2, 3, 5, 6, 12, 15, 16, 30, 50, 100)


class Fleets(NamedTuple):
    """GPUs for the same traffic, both ways."""

    apart: int
    """Instances that the traffic needs, one adapter each."""
    apart_spares: int
    shared: int
    shared_spares: int

    @property
    def saved(self) -> float:
        """Share of the separate GPUs that the shared fleet does without; below 0 when it needs more."""
        return 1 - (self.shared + self.shared_spares) / (self.apart + self.apart_spares)


def fleets(adapters: int, assume: Mapping[str, float]) -> Fleets:
    """GPUs for so many adapters."""
    apart = adapters * _up(assume["rate"] / assume["single"])
    shared = _up(adapters * assume["rate"] / assume["mixed"])
    return Fleets(apart, _up(apart / assume["per-spare"]), shared, int(assume["spares"]))


def highest_saving(assume: Mapping[str, float]) -> float:
    """What the saving comes near with ever more adapters."""
    apart = _up(assume["rate"] / assume["single"]) * (1 + 1 / assume["per-spare"])
    return 1 - assume["rate"] / assume["mixed"] / apart


def band(adapters: int) -> str:
    """The article's words for so many adapters."""
    return next(words for low, high, words in BANDS if low <= adapters and (high is None or adapters <= high))


def fleet_report(given: Mapping[str, float | None]) -> Report:
    """Reckon.

    Raises:
        ValueError: a number that cannot be.
    """
    assume = Assumptions(DEFAULTS, given)
    assume.above_zero("adapters", "rate", "single", "mixed", "per-spare", "hours", "slots")
    count = int(assume["adapters"])
    found = fleets(count, assume)
    return Report(
        f"separate instances beside one shared fleet, {count} adapters",
        (*_gpus(found, assume), *_money(found, assume), *_room(found, assume), *_memory(assume)),
        notes=_NOTES,
        assumptions=assume.figures,
        tables=(_table(assume),),
        charts=(_curve(assume, min(200, max(60, count))),),
    )


_NOTES = (
    "The curve follows from the assumptions alone. The article's reach each of its bands later than the band begins.",
    "Savings are on GPUs only. Swaps cost some of them back: see `lorapick plan bill`.",
)


def _up(value: float) -> int:
    """Rounded up, with room for what floating point adds."""
    return math.ceil(value - 1e-9)


def _gpus(found: Fleets, assume: Mapping[str, float]) -> tuple[Figure, ...]:
    count, rate = int(assume["adapters"]), assume["rate"]
    per = _up(rate / assume["single"])
    return (
        Figure(
            "apart: GPUs",
            found.apart + found.apart_spares,
            "GPUs",
            f"{count} × ceil({rate:g} / {assume['single']:g}) = {count} × {per}; "
            f"+ ceil({found.apart} / {assume['per-spare']:g}) = {found.apart_spares} spare",
            _SECTION_12,
            "14 GPUs",
        ),
        Figure(
            "shared: GPUs",
            found.shared + found.shared_spares,
            "GPUs",
            f"ceil({count} × {rate:g} / {assume['mixed']:g}) = {found.shared}; + {found.shared_spares} spare",
            _SECTION_12,
            "5 GPUs",
        ),
    )


def _money(found: Fleets, assume: Mapping[str, float]) -> tuple[Figure, ...]:
    price, hours = assume["price"], assume["hours"]

    def month(name: str, gpus: int, *, article: str) -> Figure:
        formula = f"{gpus} GPUs × {shown(price, 'USD')} × {hours:g} h"
        return Figure(f"{name}: a month", gpus * price * hours, "USD", formula, _SECTION_12, article)

    one, other = found.apart + found.apart_spares, found.shared + found.shared_spares
    year = 12 * (one - other) * price * hours
    return (
        month("apart", one, article="$35,770"),
        month("shared", other, article="$12,775"),
        Figure("saved", found.saved, "share", f"1 - {other} / {one}", _SECTION_12, "64 %"),
        Figure(
            "saved in a year",
            year,
            "USD",
            f"12 × ({one} - {other}) GPUs × {shown(price, 'USD')} × {hours:g} h",
            _SECTION_12,
            "$275,940",
        ),
        Figure(
            "saved with ever more adapters",
            highest_saving(assume),
            "share",
            f"1 - ({assume['rate']:g} / {assume['mixed']:g}) / (1 + 1 / {assume['per-spare']:g})",
            "limit of the curve",
        ),
        Figure("shared pays from", _break_even(assume), "adapters", "least number that saves", "the curve", "3"),
    )


def _break_even(assume: Mapping[str, float]) -> int | None:
    return next((count for count in range(1, 10_001) if fleets(count, assume).saved > 0), None)


def _room(found: Fleets, assume: Mapping[str, float]) -> tuple[Figure, ...]:
    pods, slots = found.shared + found.shared_spares, int(assume["slots"])
    spare = pods * slots - int(assume["adapters"])
    formula = f"{pods} × {slots} - {assume['adapters']:g}"
    return (Figure("slots to spare", spare, "slots", formula, "below 0: adapters take turns, and swap", "28"),)


def _memory(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    """Of one GPU, both ways.

    Raises:
        ValueError: it needs more than there is.
    """
    kinds = (("apart", "single-kv", 1, "~65 GB"), ("shared", "shared-kv", int(assume["slots"]), "~70.5 GB"))
    figures = []
    for name, cache, slots, article in kinds:
        total = assume["base"] + assume[cache] + slots * assume["slot"] + assume["workspace"]
        sizes = (shown(assume[each], "B") for each in ("base", cache, "slot", "workspace"))
        formula = "{} + {} + {slots} × {} + {}".format(*sizes, slots=slots)
        if total > assume["hbm"]:
            most = shown(assume["hbm"], "B")
            raise ValueError(f"{name}: {formula} = {shown(total, 'B')} exceed hbm {most}; shrink {cache} or the base")
        figures.append(Figure(f"{name}: memory of a GPU", total, "B", formula, _SECTION_12, article))
    return tuple(figures)


def _table(assume: Mapping[str, float]) -> Table:
    rate = assume["rate"]
    return tabled(
        "by number of adapters",
        (("adapters", ""), ("apart", ""), ("shared", ""), ("saved", "share"), ("article", "")),
        values=(_row(number, fleets(number, assume)) for number in sorted({*_SHOWN, int(assume["adapters"])})),
        formula=(
            f"apart = n × ceil({rate:g} / {assume['single']:g}), and ceil(of it / {assume['per-spare']:g}) spare; "
            f"shared = ceil(n × {rate:g} / {assume['mixed']:g}) + {assume['spares']:g} spare; "
            "saved = 1 - shared / apart"
        ),
        source=f"{_SECTION_12}; its bands of savings",
    )


def _row(adapters: int, found: Fleets) -> tuple[float | str, ...]:
    apart, shared = found.apart + found.apart_spares, found.shared + found.shared_spares
    return (adapters, apart, shared, found.saved, band(adapters))


def _curve(assume: Mapping[str, float], most: int) -> Chart:
    counts = range(1, most + 1)
    edges = [_BAND_EDGES.get(band(count)) for count in counts]
    return Chart(
        title="GPUs saved by sharing, %",
        x="adapters",
        xs=tuple(float(count) for count in counts),
        curves=(
            Curve("saved", tuple(max(0.0, 100 * fleets(count, assume).saved) for count in counts)),
            Curve("article, low", tuple(None if each is None else each[0] for each in edges)),
            Curve("article, high", tuple(None if each is None else each[1] for each in edges)),
            Curve("limit", tuple(100 * highest_saving(assume) for _ in counts)),
        ),
    )
