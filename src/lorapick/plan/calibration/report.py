"""A calibration as Markdown: the generated part of `docs/calibration.md`.

In: a calibration. Out: text between two markers, or a page with that text exchanged. Not here: figures (`aims`), the
words around the generated part (they are the page's own).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from lorapick.plan.calibration.aims import Score, score
from lorapick.plan.calibration.coefficients import Coefficients
from lorapick.plan.calibration.held_out import Calibration
from lorapick.plan.calibration.runs import Run
from lorapick.plan.calibration.scoring import Outcome, Spread

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def page_with(page: str, figures: str) -> str:
    """The page with other figures between its markers; an empty one becomes figures only.

    Raises:
        ValueError: it has text and no markers.
    """
    if not page.strip():
        return f"{figures}\n"
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page needs one line {BEGIN} and below it one line {END}; figures go between them")
    before, after = page[: page.index(BEGIN)], page[page.index(END) + len(END) :]
    return before + figures + after


def figures_of(found: Calibration, *, file: Path) -> str:
    """All figures, with their markers."""
    scored = score(found.outcomes)
    parts = [
        BEGIN,
        _head(found, scored, file=file),
        "### Aims\n" + _aims(scored),
        "### Groups that the fit had not seen\n" + _groups(found, scored),
        "### Coefficients\n" + _coefficients(found),
        "### TTFT\n" + _bands(scored),
        "### Slot knees\n" + _knees(scored),
        "### Throughput in overload\n" + _peaks(scored),
        "### Rank\n" + _rank_pairs(scored),
        "### Every run\n" + _runs(found.outcomes),
        END,
    ]
    return "\n\n".join(parts)


def _head(found: Calibration, scored: Score, *, file: Path) -> str:
    played = sum(each.played for each in found.outcomes) / 3600.0
    return (
        f"`{file.name}`: {len(found.outcomes)} runs, {played:.1f} hours played, each with coefficients that were fitted"
        f" without its group; {scored.compared} of them long enough to be compared."
    )


def _aims(scored: Score) -> str:
    verdicts = {True: "met", False: "**missed**", None: ""}
    rows = [(aim.words, aim.limit, aim.reached or "nothing to compare", verdicts[aim.met]) for aim in scored.aims]
    return _table(("aim", "limit", "reached", ""), rows)


def _groups(found: Calibration, scored: Score) -> str:
    fitted = {fold.group: fold.fitted for fold in found.folds}
    rows = [
        (
            " ".join(each.group),
            fitted[each.group],
            each.tpot.runs,
            *_errors(each.tpot),
            *_errors(each.served)[:2],
            *_errors(each.served_overloaded)[:2],
        )
        for each in scored.groups
    ]
    header = (
        "held out",
        "fitted on",
        "runs",
        "TPOT mean",
        "worst",
        "bias",
        "req/s mean",
        "worst",
        "overloaded",
        "worst",
    )
    return _table(header, rows)


def _errors(spread: Spread) -> tuple[str, str, str]:
    return _share(spread.mean), _share(spread.worst), _signed(spread.bias)


def _coefficients(found: Calibration) -> str:
    columns = [("all: frozen", found.coefficients)]
    columns += [("without " + " ".join(fold.group), fold.coefficients) for fold in found.folds]
    rows = [
        (f"`{name}`", *(f"{getattr(coefficients, name) * 1e3:.4g}" for _, coefficients in columns))
        for name in Coefficients.__struct_fields__
    ]
    return _table(("ms", *(name for name, _ in columns)), rows)


def _bands(scored: Score) -> str:
    rows = [
        (
            f"{band.least:g} s and more" if band.below is None else f"{band.least:g} to {band.below:g} s",
            band.ttft.runs,
            _share(band.ttft.mean),
            _signed(band.ttft.middle),
            _share(band.ttft.worst),
        )
        for band in scored.bands
    ]
    return _table(("measured mean", "runs", "mean error", "median, signed", "worst"), rows)


def _knees(scored: Score) -> str:
    rows = [
        (knee.name, _slots(knee.over, "-"), _slots(knee.within, "none"), _slots(knee.ours, "none"), knee.verdict.value)
        for knee in scored.knees
        if knee.closed or knee.verdict.value != "right"
    ]
    return _table(("traffic", "too few", "enough", "enough, ours", ""), rows)


def _slots(slots: int | None, otherwise: str) -> str:
    return otherwise if slots is None else str(slots)


def _peaks(scored: Score) -> str:
    rows = [
        (peak.name, ", ".join(map(str, peak.slots)), peak.measured, peak.ours, peak.verdict.value)
        for peak in scored.peaks
    ]
    return _table(("traffic", "slots", "most served at", "ours", "in the middle"), rows)


def _rank_pairs(scored: Score) -> str:
    rows = [
        (
            pair.name,
            f"{pair.ranks[0]} -> {pair.ranks[1]}",
            f"{pair.measured:.2f}",
            "-" if pair.ours is None else f"{pair.ours:.2f}",
        )
        for pair in scored.rank_pairs
    ]
    return _table(("slots/adapters", "rank", "TTFT times, measured", "ours"), rows)


def _runs(outcomes: Sequence[Outcome]) -> str:
    rows = [_run(each) for each in outcomes]
    header = ("run", "TPOT ms", "ours", "error", "req/s", "ours", "error", "TTFT s", "ours", "ours / measured")
    return _table(header, rows)


def _run(each: Outcome) -> tuple[str, ...]:
    run, ours = each.run, each.ours
    factor = None if ours.ttft is None else ours.ttft / run.ttft
    return (
        _mark(each) + run.name,
        f"{run.tpot * 1e3:.1f}",
        "-" if ours.tpot is None else f"{ours.tpot * 1e3:.1f}",
        _signed(each.tpot_error),
        f"{run.served:.2f}",
        f"{ours.served:.2f}",
        _signed(each.served_error),
        f"{run.ttft:.3g}",
        "-" if ours.ttft is None else f"{ours.ttft:.3g}",
        "-" if factor is None else f"{factor:.2f}",
    )


def _mark(each: Outcome) -> str:
    return "(overloaded) " if each.run.overloaded else ""


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def document_of(found: Calibration) -> dict[str, object]:
    """All of it for JSON: what was fitted, run by run, and what it comes to."""
    return {
        "coefficients": msgspec.to_builtins(found.coefficients),
        "folds": [
            {
                "held_out": list(fold.group),
                "fitted_runs": fold.fitted,
                "coefficients": msgspec.to_builtins(fold.coefficients),
            }
            for fold in found.folds
        ],
        "runs": [_run_document(each) for each in found.outcomes],
        "score": msgspec.to_builtins(score(found.outcomes)),
    }


def _run_document(each: Outcome) -> dict[str, object]:
    return {
        "name": each.run.name,
        "overloaded": each.run.overloaded,
        "comparable": each.comparable,
        "played_seconds": each.played,
        "measured": _measured(each.run),
        "ours": msgspec.to_builtins(each.ours),
        "errors": {"tpot": each.tpot_error, "served": each.served_error, "ttft": each.ttft_error},
    }


def _measured(run: Run) -> dict[str, float]:
    return {
        "served": run.served,
        "output_rate": run.output_rate,
        "ttft": run.ttft,
        "ttft_p99": run.ttft_p99,
        "tpot": run.tpot,
    }
