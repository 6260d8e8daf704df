"""What swapping costs in GPU time and dollars, before and after, and how much of it pins take away.

In: assumptions. Out: a report. Not here: how often a fleet swaps (see `lorapick check`), what one swap takes (`swap`).

Pins are reckoned twice. If every request is as likely to swap, as when hardly any finds its adapter, swaps are shared
out as requests are, and pinning the most wanted removes their share. With slots that keep the most recent, the wanted
ones rarely swap even without a pin, and the pins take slots from the others: less is gained.
"""

from collections.abc import Mapping

from lorapick.plan.bill.popularity import lru_misses, zipf
from lorapick.plan.work import Assumptions, Chart, Curve, Figure, Report, Table, assumed, shown, tabled

_SECTION_13 = "article, section 13"
DEFAULTS = (
    assumed("requests", 50_000, unit="requests", what="of a day", source=_SECTION_13),
    assumed("penalty", 0.8, unit="s", what="GPU time of a swap, on average", source=_SECTION_13),
    assumed("before", 0.65, unit="share", what="of requests that swap today", source=f"{_SECTION_13}: round-robin"),
    assumed("after", 0.08, unit="share", what="of requests that swap with routing", source=f"{_SECTION_13}: EPP"),
    assumed("price", 2.5, unit="USD/h", what="of a GPU and hour", source=_SECTION_13),
    assumed("adapters", 50, unit="adapters", what="how many there are", source="article, section 10: SaaS"),
    assumed("skew", 1.0, unit="", what="Zipf exponent of their popularity", source="our choice; 0 is even"),
    assumed("pins", 5, unit="adapters", what="most wanted ones that are pinned", source="article, section 05"),
    assumed("slots", 8, unit="slots", what="of a pod", source="article, section 10: SaaS"),
)
_MOST_ADAPTERS = 10_000


def waste_report(given: Mapping[str, float | None]) -> Report:
    """Reckon.

    Raises:
        ValueError: a number that cannot be.
    """
    assume = Assumptions(DEFAULTS, given)
    assume.above_zero("adapters")
    for name in ("before", "after"):
        if assume[name] > 1:
            raise ValueError(f"{name} {assume[name]:g}: a share is at most 1, or 100 %")
    if assume["adapters"] > _MOST_ADAPTERS:
        raise ValueError(f"adapters {assume['adapters']:g}: at most {_MOST_ADAPTERS:,}")
    return Report(
        "GPU time and money that swaps take",
        (*_wasted(assume), *_saved(assume), *_rounded(assume), *_pinned(assume)),
        notes=(*_more(assume), *_NOTES),
        assumptions=assume.figures,
        tables=(_pin_table(assume),),
        charts=(_chart(assume),),
    )


_NOTES = (
    "The article rounds on the way: 7.2 - 0.9 = 6.3 GPU-h, $15.75 a day, about $5,750 a year; exactly it is $5,779.",
    "Its 50-70 % by pinning five: so says the first reckoning, of 15 to 50 adapters; recency does much of it already.",
)


def _hours(assume: Mapping[str, float], when: str) -> float:
    """GPU hours of a day."""
    return assume["requests"] * assume[when] * assume["penalty"] / 3600


def _wasted(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    figures: list[Figure] = []
    for when, hours, seconds in (("before", "7.2", "26,000"), ("after", "0.9", "3,200")):
        factors = f"{assume['requests']:,.0f} × {assume[when]:g} × {assume['penalty']:g} s"
        wasted = _hours(assume, when)
        figures += [
            Figure(f"{when}: GPU seconds a day", 3600 * wasted, "GPU-s", factors, _SECTION_13, seconds),
            Figure(f"{when}: GPU hours a day", wasted, "GPU-h", f"{factors} / 3600", _SECTION_13, hours),
        ]
    return tuple(figures)


def _saved(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    hours = _hours(assume, "before") - _hours(assume, "after")
    price = shown(assume["price"], "USD")
    return (
        Figure("saved a day", hours, "GPU-h", "before - after", _SECTION_13, "6.3"),
        Figure("saved a day, money", hours * assume["price"], "USD", f"{hours:.4f} × {price}", _SECTION_13, "$15.75"),
        Figure(
            "saved a year",
            365 * hours * assume["price"],
            "USD",
            f"365 × {hours:.4f} × {price}",
            _SECTION_13,
            "about $5,750",
        ),
    )


def _more(assume: Mapping[str, float]) -> tuple[str, ...]:
    """Where nothing is saved, words for what is lost."""
    hours = _hours(assume, "after") - _hours(assume, "before")
    if hours <= 0:
        return ()
    money = shown(365 * hours * assume["price"], "USD")
    words = (
        f"More requests swap after than before, {shown(assume['after'], 'share')} against "
        f"{shown(assume['before'], 'share')}: nothing is saved. It takes "
        f"{hours:.4g} GPU-h a day more, {money} a year more."
    )
    return (words,)


def _rounded(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    """The same, rounded on the way as the article does."""
    before, after = (round(_hours(assume, when), 1) for when in ("before", "after"))
    hours = round(before - after, 1)
    day = hours * assume["price"]
    return (
        Figure(
            "rounded on the way: a day",
            day,
            "USD",
            f"({before:g} - {after:g}) × {assume['price']:g}",
            _SECTION_13,
            "$15.75",
        ),
        Figure("rounded on the way: a year", 365 * day, "USD", f"365 × {day:g}", _SECTION_13, "about $5,750"),
    )


def by_share(adapters: int, pins: int, *, skew: float) -> float:
    """Share of swaps that pinning the most wanted removes, when each request is as likely to swap."""
    return sum(zipf(adapters, skew)[:pins])


def by_slots(adapters: int, pins: int, *, skew: float, slots: int) -> float | None:
    """The same of a pod that keeps the most recent in its slots; None: it never swaps.

    Below 0: the pins take more from the others than they give.
    """
    popularity = zipf(adapters, skew)
    before = sum(lru_misses(popularity, slots))
    if not before:
        return None
    kept = min(pins, slots)
    return 1 - sum(lru_misses(popularity[kept:], slots - kept)) / before


def _pinned(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    adapters, pins, slots = (int(assume[name]) for name in ("adapters", "pins", "slots"))
    skew = assume["skew"]
    law = f"Zipf({skew:g}) of {adapters}"
    return (
        Figure(
            f"swaps that pinning {pins} removes",
            by_share(adapters, pins, skew=skew),
            "share",
            f"share of requests of the first {pins}, {law}",
            "swaps shared out as requests are",
            "50-70 %",
        ),
        Figure(
            "the same, slots keep the recent",
            by_slots(adapters, pins, skew=skew, slots=slots),
            "share",
            f"1 - misses of the rest in {max(0, slots - pins)} slots / misses of all in {slots}, {law}",
            "Che's approximation of LRU, random routing",
        ),
    )


def _pin_table(assume: Mapping[str, float]) -> Table:
    pins, slots = int(assume["pins"]), int(assume["slots"])
    skews = (0.7, 1.0, 1.3)
    heads = (*(f"Zipf({skew:g})" for skew in skews), *(f"Zipf({skew:g}), {slots} slots" for skew in skews))
    return tabled(
        f"share of swaps that pinning {pins} removes",
        (("adapters", ""), *((head, "share") for head in heads)),
        values=(
            (
                adapters,
                *(by_share(adapters, pins, skew=skew) for skew in skews),
                *(by_slots(adapters, pins, skew=skew, slots=slots) for skew in skews),
            )
            for adapters in (12, 15, 20, 40, 50, 100)
        ),
        formula=(
            f"Zipf(s): share of requests of the first {pins}, popularity 1/rank^s; with slots: "
            f"1 - misses of the rest in {max(0, slots - pins)} slots / misses of all in {slots}"
        ),
        source="swaps shared out as requests are; Che's approximation of LRU, random routing",
    )


def _chart(assume: Mapping[str, float]) -> Chart:
    adapters, slots, skew = int(assume["adapters"]), int(assume["slots"]), assume["skew"]
    counts = range(max(2, min(adapters, 20)) + 1)
    kept = [by_slots(adapters, pins, skew=skew, slots=slots) for pins in counts]
    return Chart(
        title="Swaps removed by pins, %",
        x="pinned adapters, most wanted first",
        xs=tuple(float(pins) for pins in counts),
        curves=(
            Curve(
                "each request as likely to swap", tuple(100 * by_share(adapters, pins, skew=skew) for pins in counts)
            ),
            Curve(
                f"{slots} slots keep the recent",
                tuple(None if each is None or each < 0 else 100 * each for each in kept),
            ),
        ),
    )
