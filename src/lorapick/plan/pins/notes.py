"""What to know before pins are taken for a cure.

In: counted logs, advice, outcomes. Out: sentences. Not here: figures.
"""

import math
from collections.abc import Iterator, Sequence

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.pins.before_after import Outcome, removed, swap_rate
from lorapick.plan.pins.values import DAY, FREE, NEW, Advice, Pinned, PinOptions, Remark, readable
from lorapick.plan.work import shown
from lorapick.sim.metrics import METRICS

HOUR: Seconds = 3600.0
MINUTE: Seconds = 60.0
SLOWER: Ratio = 0.05
"""Rise of P95 from which on it is said that pins cost latency."""
LITTLE: Ratio = 0.1
"""Share of swaps below which pins are not worth their slots."""
DEVIATIONS = 2.0
"""Below so many standard deviations a difference of two counts may be chance; as if swaps came independently."""
LOST: Ratio = 0.01
"""Share of requests not served from which on the fleet is too small for the sample."""
_LISTED = 5


def of_logs(summary: LogSummary) -> Iterator[str]:
    """What is not counted."""
    if summary.without_adapter:
        yield f"{summary.without_adapter:,} requests for the base model are not counted: they need no slot."
    if summary.without_time:
        yield f"{summary.without_time:,} rows without a time that can be read are left out."
    if summary.too_old:
        yield f"{summary.too_old:,} rows older than the days asked for are left out."
    if summary.end - summary.start < DAY:
        hours = max(summary.end - summary.start, MINUTE) / HOUR
        length = f"{hours:.0f} h" if hours >= 2 else f"{hours * HOUR / MINUTE:.0f} min"
        yield f"The logs span {length}: their peaks are not those of a month."


def of_advice(advice: Advice, options: PinOptions) -> Iterator[str]:
    """What the advice leaves open."""
    room = sum(pod.room for pod in advice.pods)
    cover = advice.covered / advice.current if advice.current else 0.0
    if advice.needed > room:
        yield (
            f"{advice.needed:,} adapters would have to be pinned for {shown(options.cover, 'share')} of the requests, "
            f"and there is room for {room:,}: pins cover {shown(cover, 'share')}. More slots or pods help."
        )
    elif not advice.pinnable:
        yield f"Adapters that may be pinned cover {shown(cover, 'share')}, not {shown(options.cover, 'share')}."
    yield (
        f"Pins leave {shown(FREE, 'share')} of each pod's slots to everybody else, as `lorapick check` does: who is "
        "not pinned would else wait for the last slots."
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
            f"{_listed(new)}: first seen in the last {NEW / DAY:.0f} days. Pins should not hold experiments, or what "
            "is to be tried is protected from what has to work; a new version of an old adapter is none. "
            "--without-new leaves them out."
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


def of_outcome(outcome: Outcome) -> Iterator[str]:
    """What pins do not help."""
    if not outcome.measured:
        yield "The logs have no sample: nothing was simulated."
        return
    before, routed, pinned = (swap_rate(each) for each in outcome.measured)
    share = removed(routed, pinned)
    if share is None:
        yield "With lorapick's policy nothing swaps even without pins: they would only hold slots."
    elif _by_chance(*(each.swaps for each in outcome.measured[1:])):
        yield (
            f"Pins change the sample's swaps from {outcome.measured[1].swaps:,} to {outcome.measured[2].swaps:,}, "
            "which may be chance: no help that one could tell."
        )
    elif share < 0:
        yield (
            f"Pins make it worse: {pinned:.3f} swaps/s/pod instead of {routed:.3f}. What they hold, the adapters "
            "without a pin lack, and the policy sends requests to who holds the adapter anyway. Do not pin."
        )
    elif share < LITTLE:
        yield (
            f"Pins remove {shown(share, 'share')} of the swaps that are left, less than {shown(LITTLE, 'share')}: a "
            "policy that knows where adapters are keeps the popular ones by itself. What helps is more slots (see "
            "`lorapick check`), or fewer adapters."
        )
    yield from _slower(outcome)
    by_policy = removed(before, routed)
    if by_policy is not None and by_policy > (share or 0.0):
        yield f"The policy removes {shown(by_policy, 'share')} of today's swaps, before any pin."
    lost = max(METRICS["lost_share"].of(each) or 0.0 for each in outcome.measured)
    if lost > LOST:
        yield (
            f"Up to {shown(lost, 'share')} of the sample were not served: so many requests are more than this fleet "
            "bears (or are longer than its memory); compare the rows with care."
        )


def _by_chance(before: int, after: int) -> bool:
    return abs(before - after) < DEVIATIONS * math.sqrt(before + after)


def _slower(outcome: Outcome) -> Iterator[str]:
    """Fewer swaps are not all that counts."""
    free, held = (each.latency.p95 for each in outcome.measured[1:])
    if free is not None and held is not None and held > (1 + SLOWER) * free:
        yield (
            f"In the sample P95 rises from {shown(free, 's')} to {shown(held, 's')} with pins. Weigh that against the "
            "swaps before you pin."
        )


def _listed(names: Sequence[str]) -> str:
    shown_names = ", ".join(names[:_LISTED])
    return shown_names if len(names) <= _LISTED else f"{shown_names} and {len(names) - _LISTED:,} more"
