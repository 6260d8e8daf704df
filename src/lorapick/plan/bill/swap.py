"""What one swap costs: five phases, from nothing to wait for to the worst, and what it is beside a longer queue.

In: assumptions. Out: a report. Not here: how often swaps happen (see `waste`), what a batch in flight makes of a drain.

Phases and defaults are those of the pod model where it has them, so plan and simulation start from the same numbers.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lorapick.model.units import Bytes, Seconds
from lorapick.plan.work import Assumptions, Chart, Curve, Figure, Report, Table, assumed, shown, tabled
from lorapick.pod.values import SwapCosts

_POD = SwapCosts()
_SECTION_3 = "article, section 03"
DEFAULTS = (
    assumed("adapter", 50_000_000, unit="B", what="bytes of the usual adapter", source=f"{_SECTION_3}: rank 16"),
    assumed("large", 200_000_000, unit="B", what="bytes of the largest adapter", source=f"{_SECTION_3}: rank 64"),
    assumed(
        "host",
        _POD.cpu_bandwidth,
        unit="B/s",
        what="from host memory, as observed",
        source=f"{_SECTION_3}: 50 MB in 3 ms",
    ),
    assumed("nvme", _POD.disk_bandwidth, unit="B/s", what="from NVMe", source=f"{_SECTION_3}: 50 MB in 10 ms"),
    assumed(
        "remote", 0.25e9, unit="B/s", what="from network or object store", source="article, section 07: cold, 200 ms"
    ),
    assumed("pcie5", 64e9, unit="B/s", what="peak of PCIe Gen5 x16", source=f"article, section 02; {_SECTION_3}"),
    assumed("pcie4", 32e9, unit="B/s", what="peak of PCIe Gen4 x16", source="PCI-SIG: half of Gen5"),
    assumed("drain", 0.5, unit="s", what="longest wait for the batch", source=f"{_SECTION_3}: 0-500 ms"),
    assumed("typical-drain", 0.25, unit="s", what="usual wait for the batch", source="middle of 0-500 ms, our choice"),
    assumed("deallocation", _POD.deallocation, unit="s", what="of the leaving adapter", source=f"{_SECTION_3}: ~5 ms"),
    assumed(
        "fragmentation",
        _POD.fragmentation,
        unit="s",
        what="more of it when sizes differ",
        source=f"{_SECTION_3}: 2-10 ms; as the pod model has it",
    ),
    assumed("worst-fragmentation", 0.01, unit="s", what="the most of that", source=f"{_SECTION_3}: 2-10 ms"),
    assumed("initialisation", _POD.initialisation, unit="s", what="weights, kernels", source=f"{_SECTION_3}: ~20 ms"),
    assumed("best-warm-up", 0.05, unit="s", what="the least", source=f"{_SECTION_3}: 50-100 ms"),
    assumed("warm-up", _POD.warm_up, unit="s", what="usual", source=f"{_SECTION_3}: middle of 50-100 ms"),
    assumed("worst-warm-up", 0.1, unit="s", what="the most", source=f"{_SECTION_3}: 50-100 ms"),
    assumed(
        "short-queue", 2, unit="requests", what="queue of the pod without the adapter", source="article, section 04"
    ),
    assumed("long-queue", 6, unit="requests", what="queue of the pod that has it", source="article, section 04"),
    assumed(
        "least-per-queued",
        0.0125,
        unit="s",
        what="delay by each queued request, at least",
        source="article, section 04: 50-100 ms for 6 beside 2",
    ),
    assumed(
        "most-per-queued",
        0.025,
        unit="s",
        what="delay by each queued request, at most",
        source="article, section 04: 50-100 ms for 6 beside 2",
    ),
)


class Phases(NamedTuple):
    """One swap, in seconds; in the order in which they happen."""

    drain: Seconds
    deallocation: Seconds
    transfer: Seconds
    initialisation: Seconds
    warm_up: Seconds

    @property
    def total(self) -> Seconds:
        """All of it."""
        return sum(self)

    def formula(self) -> str:
        """The sum, in milliseconds."""
        return " + ".join(f"{each * 1e3:.4g}" for each in self) + " ms"


def cases(assume: Mapping[str, float]) -> dict[str, Phases]:
    """Swaps by name: the cheapest, the usual, the dearest, and those whose adapter is not on the machine."""

    def worst(size: str, tier: str) -> Phases:
        freeing = assume["deallocation"] + assume["worst-fragmentation"]
        transfer = assume[size] / assume[tier]
        return Phases(assume["drain"], freeing, transfer, assume["initialisation"], assume["worst-warm-up"])

    moved = assume["adapter"] / assume["host"]
    return {
        "best": Phases(0.0, assume["deallocation"], moved, assume["initialisation"], assume["best-warm-up"]),
        "typical": Phases(
            assume["typical-drain"],
            assume["deallocation"] + assume["fragmentation"],
            moved,
            assume["initialisation"],
            assume["warm-up"],
        ),
        "worst": worst("large", "nvme"),
        "remote": worst("adapter", "remote"),
        "remote, large": worst("large", "remote"),
    }


_MEANS = {
    "best": ("host memory, nothing runs", "~85 ms"),
    "typical": ("host memory, part of a batch to wait for", None),
    "worst": ("large, from NVMe, the longest drain", "~670 ms"),
    "remote": ("not on the machine, the longest drain", "800 ms on average"),
    "remote, large": ("large and not on the machine, the longest drain", "1.2 s, first query"),
}
"""By case: what it is, and the article's figure beside it."""
_TIERS = ("host", "pcie5", "pcie4", "nvme", "remote")


def swap_report(given: Mapping[str, float | None]) -> Report:
    """Reckon.

    Raises:
        ValueError: a number that cannot be.
    """
    assume = Assumptions(DEFAULTS, given)
    assume.above_zero("adapter", "large", *_TIERS, "least-per-queued", "most-per-queued")
    if assume["long-queue"] <= assume["short-queue"]:
        raise ValueError(f"long-queue {assume['long-queue']:g}: it must be above short-queue {assume['short-queue']:g}")
    swaps = cases(assume)
    phases = "drain + deallocation + transfer + initialisation + warm-up"
    totals = [
        Figure(name, swap.total, "s", f"{phases} = {swap.formula()}", _MEANS[name][0], _MEANS[name][1], True)
        for name, swap in swaps.items()
    ]
    sizes = sorted({int(assume["adapter"]), int(assume["large"]), 65_536_000, 356_515_840})
    return Report(
        "cost of an adapter swap",
        (*totals, *_article_sums(), *_peaks(assume), *_queues(assume, swaps)),
        notes=_NOTES,
        assumptions=assume.figures,
        tables=(_phase_table(swaps), _transfer_table(assume, sizes)),
        charts=(_chart(assume),),
    )


_NOTES = (
    "The article's own phases add up to 78-85 and 675 ms; it prints ~85 and ~670.",
    "Its average of 800 ms and first queries of 1.2 s exceed its worst case; remote fetches and queues explain them.",
    "Its 50-fold is not what one request pays: it takes several that wait for the same drain to get there.",
)


def _article_sums() -> tuple[Figure, ...]:
    source = f"{_SECTION_3}: its rows, added"
    return (
        Figure("article's rows, best", 0.085, "s", "0 + 5 + 10 + 20 + 50 ms", source, "~85 ms"),
        Figure("article's rows, worst", 0.675, "s", "500 + 5 + 50 + 20 + 100 ms", source, "~670 ms"),
    )


def _peaks(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    """Exact adapters at the peak of the bus."""
    made = (("r=16 q,v of a 70B", 65_536_000, "about 1 ms"), ("r=64 q,k,v of a 70B", 356_515_840, "5.6 ms"))
    return tuple(
        Figure(
            f"{name} at PCIe Gen5's peak",
            size / assume["pcie5"],
            "s",
            f"{shown(size, 'B')} / {shown(assume['pcie5'], 'B/s')}",
            "article, section 02; sizes exact",
            article,
        )
        for name, size, article in made
    )


def _queues(assume: Mapping[str, float], swaps: Mapping[str, Phases]) -> tuple[Figure, ...]:
    """A longer queue beside a swap."""
    more = assume["long-queue"] - assume["short-queue"]
    least, most = more * assume["least-per-queued"], more * assume["most-per-queued"]
    middle = (least + most) / 2
    source = "article, section 04: weight of the affinity"
    pairs = (("best", most, None), ("typical", middle, "2-10×"), ("worst", least, "50×"))
    worst = swaps["worst"].total
    return (
        Figure(
            "longer queue, least", least, "s", f"{more:g} × {assume['least-per-queued'] * 1e3:g} ms", source, "50 ms"
        ),
        Figure("longer queue, most", most, "s", f"{more:g} × {assume['most-per-queued'] * 1e3:g} ms", source, "100 ms"),
        *(
            Figure(
                f"{name} swap to longer queue",
                swaps[name].total / delay,
                "times",
                f"{swaps[name].total * 1e3:.4g} ms / {delay * 1e3:.4g} ms",
                source,
                article,
            )
            for name, delay, article in pairs
        ),
        Figure(
            "requests held up for 50×",
            50 * least / worst,
            "requests",
            f"50 × {least * 1e3:g} ms / {worst * 1e3:.4g} ms",
            "each waits for the whole of the worst swap",
        ),
    )


def _phase_table(swaps: Mapping[str, Phases]) -> Table:
    names = [name.replace("_", "-") for name in Phases._fields]
    rows: list[tuple[str | float, ...]] = [
        (name, *(swap[number] for swap in swaps.values())) for number, name in enumerate(names)
    ]
    rows.append(("total", *(swap.total for swap in swaps.values())))
    return tabled(
        "phases",
        (("", ""), *((name, "s") for name in swaps)),
        values=rows,
        formula="total = sum of the phases; transfer = bytes / bandwidth; "
        + "; ".join(f"{name}: {words}" for name, (words, _) in _MEANS.items()),
        source=f"{_SECTION_3}; the pod model's phases",
        rounded=True,
    )


def _transfer_table(assume: Mapping[str, float], sizes: Sequence[Bytes]) -> Table:
    heads = tuple(f"{tier}, {shown(assume[tier], 'B/s')}" for tier in _TIERS)
    return tabled(
        "transfer = bytes / bandwidth",
        (("adapter", "B"), *((head, "s") for head in heads)),
        values=((size, *(size / assume[tier] for tier in _TIERS)) for size in sizes),
        formula="bytes of the adapter / bytes per second of where it comes from",
        source="sizes: as given, and exact ones of r=16 q,v and r=64 q,k,v of a 70B; bandwidths: as assumed",
    )


def _chart(assume: Mapping[str, float]) -> Chart:
    sizes = tuple(float(size) for size in range(10, 410, 10))
    return Chart(
        title="Transfer, ms, logarithmic",
        x="MB of the adapter",
        xs=sizes,
        curves=tuple(Curve(tier, tuple(1e9 * size / assume[tier] for size in sizes)) for tier in _TIERS),
        log=True,
    )
