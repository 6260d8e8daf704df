"""Merging an adapter into the weights beside adding it at every step: GPU time of both, and where they cross.

In: assumptions. Out: a report. Not here: what the pod model makes of merging (`docs/engine-variants.md`).

A merged model computes like the base and serves one adapter only: changing it means taking one out and putting another
in, and each touches all the weights. An added adapter costs a few per cent of every step, and many share a batch.
"""

from collections.abc import Mapping

from lorapick.plan.work import Assumptions, Chart, Curve, Figure, Report, Table, assumed, shown, tabled

_SECTION_2 = "article, section 02"
DEFAULTS = (
    assumed("weights", 140_000_000_000, unit="B", what="of the base model", source=f"{_SECTION_2}: 70B in FP16"),
    assumed("bandwidth", 3.35e12, unit="B/s", what="of GPU memory", source="H100 SXM, data sheet"),
    assumed("bus", 64e9, unit="B/s", what="host to GPU", source=f"{_SECTION_2}: PCIe Gen5"),
    assumed("gpus", 1, unit="GPUs", what="that share the weights", source="one; each touches its part at once"),
    assumed(
        "passes", 1, unit="", what="times that a merge moves each byte", source="reading only; 2 with writing back"
    ),
    assumed("least-overhead", 0.03, unit="share", what="of a step, by adding", source=f"{_SECTION_2}: 3-5 %"),
    assumed("most-overhead", 0.05, unit="share", what="of a step, by adding", source=f"{_SECTION_2}: 3-5 %"),
    assumed("adapter", 65_536_000, unit="B", what="of an adapter", source="exact: r=16 on q,v of Llama-3.1-70B"),
    assumed("rate", 480.0, unit="req/min", what="requests of a pod", source="article, section 12: 2,400 on 5 pods"),
    assumed("adapters", 12, unit="adapters", what="asked for alike, in any order", source="article, section 12"),
)


def merged_report(given: Mapping[str, float | None]) -> Report:
    """Reckon.

    Raises:
        ValueError: a number that cannot be.
    """
    assume = Assumptions(DEFAULTS, given)
    assume.above_zero("weights", "bandwidth", "bus", "gpus", "least-overhead", "most-overhead", "adapter")
    assume.above_zero("rate", "adapters", "passes")
    return Report(
        "merged weights beside added adapters",
        (*_touching(assume), *_crossing(assume), *_traffic(assume)),
        notes=_NOTES,
        assumptions=assume.figures,
        tables=(_table(assume),),
        charts=(_chart(assume),),
    )


_NOTES = (
    "Merged weights serve one adapter at a time: requests of others wait, whatever the merge takes.",
    "A base in INT4 or INT8 takes FP16 adapters by adding; merging needs FP16 weights, or quantizing at every change.",
)


def merge_seconds(assume: Mapping[str, float]) -> float:
    """One merge, or one unmerge."""
    return assume["passes"] * assume["weights"] / (assume["bandwidth"] * assume["gpus"])


def lost_merged(assume: Mapping[str, float], every: float) -> float:
    """Share of GPU time that changing adapters takes, one change after each `every` seconds of work."""
    change = 2 * merge_seconds(assume)
    return change / (change + every)


def lost_added(overhead: float) -> float:
    """Share of GPU time that adding takes, when it makes a step longer by `overhead`."""
    return overhead / (1 + overhead)


def _touching(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    once = merge_seconds(assume)
    weights = shown(assume["weights"], "B")
    through = f"{shown(assume['bandwidth'], 'B/s')} × {assume['gpus']:g} GPUs"
    source = f"{_SECTION_2}: it touches all the weights"
    return (
        Figure("bytes that a re-merge touches", assume["weights"], "B", "all the weights", source, "140 GB"),
        Figure("one merge", once, "s", f"{assume['passes']:g} × {weights} / ({through})", source),
        Figure("one change of adapter", 2 * once, "s", "unmerge + merge", source),
        Figure(
            "loading merged weights instead",
            assume["weights"] / (assume["bus"] * assume["gpus"]),
            "s",
            f"{weights} / ({shown(assume['bus'], 'B/s')} × {assume['gpus']:g} GPUs)",
            "a merged copy in host memory",
        ),
        Figure(
            "weights to adapter",
            assume["weights"] / assume["adapter"],
            "times",
            f"{weights} / {shown(assume['adapter'], 'B')}",
            "bytes of a re-merge beside those of a swap",
        ),
    )


def _crossing(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    change = 2 * merge_seconds(assume)
    return tuple(
        Figure(
            f"merging pays above, at {shown(assume[name], 'share')}",
            change / assume[name],
            "s",
            f"{shown(change, 's')} / {assume[name]:g}: seconds of one adapter's work between changes",
            "both lose the same share there",
        )
        for name in ("least-overhead", "most-overhead")
    )


def changes_per_second(assume: Mapping[str, float]) -> float:
    """How often the next request is of another adapter, in the order of arrival."""
    return assume["rate"] / 60 * (1 - 1 / assume["adapters"])


def _traffic(assume: Mapping[str, float]) -> tuple[Figure, ...]:
    changes = changes_per_second(assume)
    busy = changes * 2 * merge_seconds(assume)
    source = "requests in order of arrival, one adapter at a time"
    return (
        Figure(
            "changes in mixed traffic",
            changes,
            "changes/s",
            f"{assume['rate']:g} / 60 × (1 - 1 / {assume['adapters']:g})",
            source,
        ),
        Figure("GPU time they need", busy, "share", f"{changes:.3g} × {shown(2 * merge_seconds(assume), 's')}", source),
        *(
            Figure(
                f"GPU time that adding takes, at {shown(assume[name], 'share')}",
                lost_added(assume[name]),
                "share",
                f"{assume[name]:g} / (1 + {assume[name]:g})",
                f"{_SECTION_2}: per forward pass",
                words,
            )
            for name, words in (("least-overhead", "3 %"), ("most-overhead", "5 %"))
        ),
    )


def _table(assume: Mapping[str, float]) -> Table:
    least, most = lost_added(assume["least-overhead"]), lost_added(assume["most-overhead"])
    return tabled(
        "GPU time lost",
        (("one adapter's work", "s"), ("merged", "share"), ("added, least", "share"), ("added, most", "share")),
        values=((every, lost_merged(assume, every), least, most) for every in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)),
        formula=(
            f"merged = change / (change + work), change = {shown(2 * merge_seconds(assume), 's')}; "
            f"added = overhead / (1 + overhead), {assume['least-overhead']:g} and {assume['most-overhead']:g}"
        ),
        source=f"{_SECTION_2}: a merge touches all the weights, adding makes each step longer",
    )


def _chart(assume: Mapping[str, float]) -> Chart:
    lengths = tuple(each / 10 for each in range(1, 101))
    return Chart(
        title="GPU time lost, %, logarithmic",
        x="seconds of one adapter's work between changes",
        xs=lengths,
        curves=(
            Curve("merged", tuple(100 * lost_merged(assume, every) for every in lengths)),
            Curve("added, least", tuple(100 * lost_added(assume["least-overhead"]) for _ in lengths)),
            Curve("added, most", tuple(100 * lost_added(assume["most-overhead"]) for _ in lengths)),
        ),
        log=True,
    )
