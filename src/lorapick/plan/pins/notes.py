"""What to know before pins are taken for a cure.

In: counted logs, advice, outcomes. Out: sentences. Not here: figures; whether pins help (see `verdict`).
"""

from collections.abc import Iterator, Sequence

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.logs.names import MODEL, guess
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.pins.before_after import Outcome, removed, swap_rate
from lorapick.plan.pins.values import DAY, FREE, NEW, Advice, Pinned, PinOptions, Remark, counted, readable
from lorapick.plan.pins.verdict import Verdict, slower
from lorapick.plan.work import shown
from lorapick.sim.metrics import METRICS

HOUR: Seconds = 3600.0
MINUTE: Seconds = 60.0
LOST: Ratio = 0.01
"""Share of requests not served from which on the fleet is too small for the sample."""
_LISTED = 5
_ROLES = {
    "adapter": "adapter",
    "time": "time",
    "prompt_tokens": "tokens of prompts",
    "output_tokens": "tokens of answers",
}


def of_logs(summary: LogSummary, options: PinOptions) -> Iterator[str]:
    """What was read as what, and what is not counted."""
    yield from _columns(summary, options)
    if summary.without_adapter:
        yield f"Not counted: {counted(summary.without_adapter, 'request')} for the base model, which needs no slot."
    for rows, what, words in (
        (summary.damaged, "line", "damaged (--skip-damaged)"),
        (summary.without_time, "row", "without a time that can be read"),
        (summary.too_old, "row", "older than the days asked for (--days)"),
    ):
        if rows:
            yield f"Left out: {counted(rows, what)} {words}."
    if summary.skipped:
        names = _listed([readable(each) for each in summary.skipped])
        yield (
            f"Left out, at least in part, since damaged (--skip-damaged): {counted(len(summary.skipped), 'file')}: "
            f"{names}. How many requests that were is not known."
        )
    if summary.end - summary.start < DAY:
        hours = max(summary.end - summary.start, MINUTE) / HOUR
        length = f"{hours:.0f} h" if hours >= 2 else f"{hours * HOUR / MINUTE:.0f} min"
        yield f"The logs span {length}: their peaks are not those of a month."


def _columns(summary: LogSummary, options: PinOptions) -> Iterator[str]:
    """Every column that was found, and whether the base model may be among the adapters."""
    if not summary.columns:
        return
    taken = "; ".join(
        f"{words}: {readable(summary.columns[role])}" if role in summary.columns else f"{words}: none"
        for role, words in _ROLES.items()
    )
    yield f"Columns taken for {taken}."
    name = summary.columns.get("adapter", "")
    of_models = any(guess([part], MODEL) is not None for part in name.split(", "))
    if not of_models or (options.base and summary.without_adapter):
        return
    begin = f"Column `{readable(name)}` was taken for the adapter, and it may name the base model too, "
    if options.base:
        yield f"{begin}yet no row names {_listed(options.base)}: if logs call it otherwise, say so with --base."
    else:
        yield f"{begin}which would count as an adapter and be pinned: name the base model with --base."


def of_advice(advice: Advice, options: PinOptions) -> Iterator[str]:
    """What the advice leaves open."""
    room = sum(pod.room for pod in advice.pods)
    cover = advice.covered / advice.current if advice.current else 0.0
    if advice.needed > room:
        yield (
            f"{counted(advice.needed, 'adapter')} would have to be pinned for {shown(options.cover, 'share')} of the "
            f"requests, and there is room for {room:,}: pins cover {shown(cover, 'share')}. More slots or pods help."
        )
    elif not advice.pinnable:
        yield f"Adapters that may be pinned cover {shown(cover, 'share')}, not {shown(options.cover, 'share')}."
    yield (
        f"Pins leave at least {shown(FREE, 'share')} of each pod's slots free for everybody else, as `lorapick check` "
        "wants it. With fewer, adapters without a pin would wait for one another in the few that are left."
    )
    yield from _short(advice.pins)
    for why in dict.fromkeys(each.why for each in advice.left_out):
        left_out = [each for each in advice.left_out if each.why == why]
        share = shown(sum(each.share for each in left_out), "share")
        names = _listed([readable(each.adapter) for each in left_out])
        yield f"Not pinned, with {share} of the requests: {names}: {why}."
    new = [each.adapter for each in advice.pins if each.remark is Remark.NEW]
    if new:
        yield (
            f"{_listed(new)}: first seen in the last {NEW / DAY:.0f} days, and pinned for --with-new. Pins should not "
            "hold experiments, or what is to be tried is protected from what has to work; a new version of an old "
            "adapter is none."
        )


def of_newcomers(summary: LogSummary) -> Iterator[str]:
    """Why nobody is left out as new."""
    length = summary.end - summary.start
    if length < 2 * NEW:
        yield (
            f"Who is new cannot be told: logs of {2 * NEW / DAY:.0f} days or more are needed for that, and these have "
            f"{length / DAY:.3g}. Experiments may be among the pins; take them out by hand."
        )


def _short(pins: Sequence[Pinned]) -> Iterator[str]:
    short = [each for each in pins if len(each.pods) < each.wanted]
    for each in short[:_LISTED]:
        yield (
            f"{each.adapter}: its busiest minute asks for {each.wanted:,} copies and {len(each.pods):,} fit (one per "
            "pod, in the slots that pins may take); requests beyond them go to slots that are free."
        )
    if len(short) > _LISTED:
        yield f"So it is for {len(short) - _LISTED:,} more."


def of_outcome(found: Verdict, outcome: Outcome) -> Iterator[str]:
    """What pins do, and what they do not help."""
    yield f"Verdict: {found.words}. {found.why}"
    if not outcome.measured:
        return
    late = slower(outcome)
    if late is not None and late not in found.why:
        yield late
    before, routed, pinned = (swap_rate(each) for each in outcome.measured)
    by_policy = removed(before, routed)
    if by_policy is not None and by_policy > (removed(routed, pinned) or 0.0):
        yield f"The policy removes {shown(by_policy, 'share')} of today's swaps, before any pin."
    lost = max(METRICS["lost_share"].of(each) or 0.0 for each in outcome.measured)
    if lost > LOST:
        yield (
            f"Up to {shown(lost, 'share')} of the sample were not served: so many requests are more than this fleet "
            "bears (or are longer than its memory); compare the rows with care."
        )


def _listed(names: Sequence[str]) -> str:
    shown_names = ", ".join(names[:_LISTED])
    return shown_names if len(names) <= _LISTED else f"{shown_names} and {len(names) - _LISTED:,} more"
