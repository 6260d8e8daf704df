"""Do pins help? In a few words, from what was played.

In: advice, outcomes. Out: a `Verdict`. Not here: what else is to know (see `notes`).
"""

import math
from typing import NamedTuple

from lorapick.model.units import Ratio
from lorapick.plan.pins.before_after import Outcome, rate_shown, removed, swap_rate
from lorapick.plan.pins.values import Advice
from lorapick.plan.work import Figure, shown

SLOWER: Ratio = 0.05
"""Rise of P95 from which on it is said that pins cost latency."""
LITTLE: Ratio = 0.1
"""Share of swaps below which pins are not worth their slots."""
DEVIATIONS = 2.0
"""Below so many standard deviations a difference of two counts may be chance; as if swaps came independently."""


class Verdict(NamedTuple):
    """What comes first in every form of the answer."""

    words: str
    """Short: what to do."""
    why: str
    """A sentence."""

    @property
    def figure(self) -> Figure:
        """The first one of the report."""
        return Figure("verdict", self.words, "", self.why, "simulation of the sample")


def verdict(advice: Advice, outcome: Outcome) -> Verdict:
    """What the sample says of the pins."""
    if not advice.pins:
        return Verdict("nothing to pin", "No adapter gets a new pin; what keeps them from it is told below.")
    if not outcome.measured:
        return Verdict("not known", "The logs have no sample: nothing was simulated.")
    _, free, held = outcome.measured
    routed, pinned = swap_rate(free), swap_rate(held)
    share = removed(routed, pinned)
    if free.swaps == held.swaps == 0:
        return Verdict(
            "no pins needed", "With lorapick's policy nothing swaps even without pins: they would only hold slots."
        )
    if abs(free.swaps - held.swaps) < DEVIATIONS * math.sqrt(free.swaps + held.swaps):
        return Verdict(
            "no help that one could tell",
            f"Pins change the sample's swaps from {free.swaps:,} to {held.swaps:,}, which may be chance.",
        )
    if share is None or share < 0:
        return Verdict(
            "do not pin",
            f"Pins make it worse: {rate_shown(pinned)} swaps/s/pod instead of {rate_shown(routed)}. What they hold, "
            "the adapters without a pin lack, and the policy sends requests to who holds the adapter anyway.",
        )
    if share < LITTLE:
        return Verdict(
            "hardly worth it",
            f"Pins remove {shown(share, 'share')} of the swaps that are left, less than {shown(LITTLE, 'share')}: a "
            "policy that knows where adapters are keeps the popular ones by itself. What helps is more slots (see "
            "`lorapick check`), or fewer adapters.",
        )
    why = f"Pins remove {shown(share, 'share')} of the swaps that the policy leaves"
    return Verdict("weigh it", f"{why}. {late}") if (late := slower(outcome)) else Verdict("pin", f"{why}.")


def slower(outcome: Outcome) -> str | None:
    """Words for a P95 that rises with pins: fewer swaps are not all that counts. None: it does not."""
    free, held = (each.latency.p95 for each in outcome.measured[1:])
    if free is None or held is None or held <= (1 + SLOWER) * free:
        return None
    return (
        f"In the sample P95 rises from {shown(free, 's')} to {shown(held, 's')} with pins. Weigh that against the "
        "swaps before you pin."
    )
