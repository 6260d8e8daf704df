"""What changed: new adapters, and whose traffic they took, in words.

In: a picture with its shifts. Out: findings. Not here: how shifts are found (see `core.signals.shifts`).
"""

from collections.abc import Iterator

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.saying import clock, names, number, plural, share
from lorapick.model.shifts import Shift, ShiftKind

MOST_PAIRS = 10


def shifts(picture: Picture) -> Iterator[Finding]:
    """One for each group of adapters that came together."""
    for shift in picture.shifts:
        yield _TELL[shift.kind](picture, shift)


def _came(picture: Picture, shift: Shift) -> str:
    """Who came when, and with how much."""
    return (
        f"since {clock(picture, shift.since)} {plural(len(shift.new), 'adapter')} that nobody asked for before "
        f"({names(shift.new, 4)}) take {share(shift.share)} of the traffic"
    ).replace(") take", ") takes" if len(shift.new) == 1 else ") take")


def _split(picture: Picture, shift: Shift) -> Finding:
    olds = len({pair.old: None for pair in shift.pairs})
    taken = f"; of these the new ones have {share(shift.taken)} now" if shift.taken is not None else ""
    return Finding(
        check="split",
        urgency=Urgency.WARN,
        what=f"{_came(picture, shift)}; {plural(olds, 'other')} lost as much: this looks like a split of those (an A/B "
        f"test, or a rollout under way)",
        arithmetic=(
            f"gained {share(shift.share)}, lost {share(shift.lost)} of all requests{taken}",
            _evidence(shift),
            *_pairs(shift),
        ),
        remedies=(
            Remedy(action="ask who runs it; end it, or serve the variants from one adapter", price="the experiment"),
            Remedy(action="declare the new ones, so that they are placed and not on probation", price="slots for all"),
        ),
        weight=20 + 10 * shift.share,
        adapters=shift.new,
    )


def _replaced(picture: Picture, shift: Shift) -> Finding:
    olds = [*{pair.old: None for pair in shift.pairs}]
    return Finding(
        check="replaced",
        urgency=Urgency.INFO,
        what=f"{_came(picture, shift)}; they replaced {names(olds, 4)}: a rollout, or new names for the same",
        arithmetic=(f"lost {share(shift.lost)} of all requests", _evidence(shift), *_pairs(shift)),
        remedies=(Remedy(action="retire the old ones: `lorapick adapters retire NAME`", price="none"),),
        weight=shift.share,
        adapters=shift.new,
    )


def _added(picture: Picture, shift: Shift) -> Finding:
    return Finding(
        check="added",
        urgency=Urgency.INFO,
        what=f"{_came(picture, shift)}, on top of the others, who lost nothing: new traffic",
        arithmetic=(f"share of the last quarter of an hour {share(shift.share)}",),
        remedies=(Remedy(action="declare them, and see whether there are slots for them", price="their slots"),),
        weight=shift.share,
        adapters=shift.new,
    )


def _unclear(picture: Picture, shift: Shift) -> Finding:
    return Finding(
        check="new_adapters",
        urgency=Urgency.INFO,
        what=f"{_came(picture, shift)}; whether on top of the others or in their place cannot be told yet",
        arithmetic=(f"share of the last quarter of an hour {share(shift.share)}",),
        remedies=(Remedy(action="ask who knows them; look again in half an hour", price="none"),),
        weight=shift.share,
        adapters=shift.new,
    )


def _evidence(shift: Shift) -> str:
    return f"evidence {number(shift.evidence)} nats against chance and new traffic on top; 6 are asked for"


def _pairs(shift: Shift) -> tuple[str, ...]:
    told = [
        f"{pair.old} {number(pair.before)}/s before: now {number(pair.old_now)}/s, and {pair.new} "
        f"{number(pair.new_now)}/s"
        for pair in shift.pairs[:MOST_PAIRS]
    ]
    more = len(shift.pairs) - MOST_PAIRS
    return (*told, *([f"and {plural(more, 'pair')} more"] if more > 0 else []))


_TELL = {
    ShiftKind.SPLIT: _split,
    ShiftKind.REPLACED: _replaced,
    ShiftKind.ADDED: _added,
    ShiftKind.UNCLEAR: _unclear,
}
