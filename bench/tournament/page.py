"""What came out, as pages: docs/tournament.md for the verdicts, docs/tournament-cells.md for every figure.

In: figures of all runs. Out: the part of each page between its marks; the words around it are written by hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, log
from pathlib import Path

from bench.tournament.cells import Cell
from bench.tournament.judge import WORST, Place, Verdict, of, served_all, verdict
from bench.tournament.play import Figures
from lorapick.sim.compare import Estimate

DOCS = Path(__file__).parent.parent.parent / "docs"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
OURS = "cost"
FIGURES = {
    "p50_ms": "P50", "p95_ms": "P95", "p99_ms": "P99", "ttft_p50_ms": "TTFT P50", "ttft_p95_ms": "TTFT P95",
    "ttft_p99_ms": "TTFT P99", "goodput": "goodput /s", "over_bound": "loads ÷ bound", "unfairness": "fairness",
}  # fmt: skip
JUDGED = ("p95_ms", "ttft_p95_ms", "p99_ms")

Played = Mapping[Cell, Mapping[str, Sequence[Figures]]]


def write(played: Played, *, command: str) -> None:
    """Put the figures of a tournament into both pages."""
    _between(
        DOCS / "tournament.md", "\n".join([f"    python -m bench.tournament {command}".rstrip(), "", *verdicts(played)])
    )
    _between(DOCS / "tournament-cells.md", "\n".join(every_figure(played)))


def _between(page: Path, text: str) -> None:
    begun = page.read_text() if page.is_file() else f"# {page.stem.capitalize()}\n\n{BEGIN}\n{END}\n"
    before, _, rest = begun.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, and an empty line."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def verdicts(played: Played) -> Iterator[str]:
    """Who was first how often, and where ours was behind."""
    for name in JUDGED:
        yield f"### By {FIGURES[name]}"
        yield ""
        yield from table(
            ["policy", "judged", "first", "tied", "behind", f"worse than {WORST:g} x", "mean ratio to the best peer"],
            [_standing(played, policy, name) for policy in _policies(played)],
        )
    yield f"### Cells in which {OURS} is behind on P95"
    yield ""
    rows = [
        [cell.name, f"{found.mean:.0f}", found.peer, f"{found.peers_mean:.0f}", f"{found.ratio:.3f}"]
        for cell, by_policy in played.items()
        if (found := verdict(by_policy, policy=OURS, name="p95_ms")) is not None and found.place is Place.BEHIND
    ]
    yield from table(["cell", f"{OURS}, ms", "best peer", "ms", "ratio"], rows) if rows else ("None.", "")
    yield "### P95 of latency in ms, by cell"
    yield ""
    policies = _policies(played)
    yield from table(
        ["cell", *policies],
        [[cell.name, *(_cell(by_policy[each], "p95_ms") for each in policies)] for cell, by_policy in played.items()],
    )


def _policies(played: Played) -> list[str]:
    return list(dict.fromkeys(policy for by_policy in played.values() for policy in by_policy))


def _standing(played: Played, policy: str, name: str) -> list[str]:
    found = [
        each for by_policy in played.values() if (each := verdict(by_policy, policy=policy, name=name)) is not None
    ]
    places = [each.place for each in found]
    beyond = sum(each.ratio > WORST for each in found)
    return [
        policy,
        str(len(found)),
        *(str(places.count(place)) for place in Place),
        str(beyond),
        f"{_mean_ratio(found):.3f}",
    ]


def _mean_ratio(found: Sequence[Verdict]) -> float:
    """Geometric: half as long here makes up for twice as long there."""
    return exp(fsum(log(each.ratio) for each in found) / len(found)) if found else float("nan")


def every_figure(played: Played) -> Iterator[str]:
    """A table for each cell."""
    for cell, by_policy in played.items():
        yield f"## {cell.name}"
        yield ""
        yield f"{cell.traffic.about}."
        yield ""
        yield from table(
            ["policy", *FIGURES.values()],
            [[policy, *(_cell(figures, name) for name in FIGURES)] for policy, figures in by_policy.items()],
        )


def _cell(figures: Sequence[Figures], name: str) -> str:
    """Mean ± half of its interval; in brackets where requests were left unserved."""
    shown = _shown(of(figures, name))
    return shown if served_all(figures) else f"({shown})"


def _shown(found: Estimate) -> str:
    if found.mean is None:
        return "-"
    digits = 0 if found.mean >= 100 else 2
    width = "" if found.half_width is None else f" ±{found.half_width:.{digits}f}"
    return f"{found.mean:.{digits}f}{width}"
