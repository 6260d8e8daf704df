"""What each pod would have cost as the one that prefills, and why others could not: the slow twin of `prefillers`.

In: the query and view of one decision (a frozen copy), how things were on the pods that prefill, what was picked. Out:
a `PrefillVerdict` per pod that prefills, best first; why the request was not split. Not here: the choice (see
`pairing`, `prefillers`).
"""

from typing import NamedTuple

from msgspec.structs import replace

from lorapick.core.columns import CODE, REASONS, TIER_BITS
from lorapick.core.picking.filters import LOADING, veto
from lorapick.core.picking.links import transfer_seconds
from lorapick.core.picking.pairing import load_costs
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.prefillers import Asked, as_leg
from lorapick.core.picking.query import FleetView, Query
from lorapick.core.picking.verdicts import SILENT, judge
from lorapick.model.disaggregation import Decide
from lorapick.model.picks import Pick, PrefillVerdict
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import PodName, Seconds, Tokens

FEW_TOKENS, UNKNOWN_LENGTH, DEARER, NOBODY = "few_tokens", "unknown_length", "dearer", "nobody_prefills"
"""Words of `Explanation.unsplit`."""


class Side(NamedTuple):
    """How things were on the pods that prefill when a decision was taken."""

    asked: Asked | None
    """None: the prompt's length was unknown, so nobody was asked."""
    joint: bool
    """Whether pairs were compared; else each pod is chosen by the policy."""


def why_unsplit(side: Side | None, query: Query, *, view: FleetView, pick: Pick) -> str | None:
    """Why no other pod prefills, as a word; None: one does, nobody decodes, or this fleet never splits."""
    if side is None or pick.pod is None or pick.prefill is not None:
        return None
    if side.asked is None:
        return UNKNOWN_LENGTH
    if _few(side, query, row=_row(view, pick.pod)):
        return FEW_TOKENS
    return DEARER if pick.pair is not None else NOBODY


def uncached_there(
    side: Side | None, query: Query, *, view: FleetView, pick: Pick
) -> tuple[float | None, Tokens | None]:
    """Prompt tokens that the pod which decodes had not cached, and from how many on another one prefills.

    None where nobody knows, and where something else decides.
    """
    if side is None or side.asked is None or pick.pod is None:
        return None, None
    found = query.uncached(_row(view, pick.pod), side.asked.tokens)
    return found, side.asked.settings.uncached_tokens if _tokens_decide(side) else None


def _tokens_decide(side: Side) -> bool:
    assert side.asked is not None
    decide = side.asked.settings.decide
    return decide is Decide.TOKENS if side.joint else decide is not Decide.ALWAYS


def _few(side: Side, query: Query, *, row: int) -> bool:
    asked = side.asked
    assert asked is not None
    return _tokens_decide(side) and query.uncached(row, asked.tokens) < asked.settings.uncached_tokens


def _row(view: FleetView, name: PodName | None) -> int:
    return next((row for row, pod in enumerate(view.pods) if pod is not None and pod.name == name), -1)


def side_verdicts(
    side: Side | None, query: Query, *, view: FleetView, now: Seconds, policy: Policy, pick: Pick
) -> tuple[PrefillVerdict, ...]:
    """Pods that may prefill, but for the one that decodes: the chosen one, then by what they would cost, then by name.

    None where nobody was asked: the fleet does not split, the length is unknown, or each is chosen by itself and the
    prompt is too short for that.
    """
    if side is None or side.asked is None:
        return ()
    decode = _row(view, pick.pod)
    if not side.joint and (decode < 0 or _few(side, query, row=decode)):
        return ()
    if side.joint:
        found = _compared(side.asked, query, view=view, now=now, decode=decode, pick=pick)
    else:
        found = _judged(side.asked, query, view=view, now=now, policy=policy, pick=pick)
    return tuple(sorted(found, key=_rank))


def _rank(verdict: PrefillVerdict) -> tuple[bool, bool, bool, float, float, PodName]:
    counted, score = verdict.counted, verdict.score
    return (
        not verdict.chosen,
        counted is None,
        score is None,
        counted if counted is not None else 0.0,
        -score if score is not None else 0.0,
        verdict.pod,
    )


# -- pairs


def _compared(
    asked: Asked, query: Query, *, view: FleetView, now: Seconds, decode: int, pick: Pick
) -> list[PrefillVerdict]:
    leg_query, found = as_leg(query), []
    for row, pod in enumerate(view.pods):
        if pod is None or view.decode_only[row] or row == decode:
            continue
        made = _costs(asked, query, view=view, row=row, decode=decode)
        reason = REASONS[veto(leg_query, view, row=row, now=now)] or _left_out(asked, query, row=row)
        if reason is not None:
            made = PrefillVerdict(pod=pod.name, chosen=False, reason=reason, tier=made.tier, paused=row in asked.paused)
        found.append(_placed(made, view, row=row))
    taken = next((verdict for verdict in found if verdict.pod == pick.prefill), None)
    return [_lost(verdict, taken) for verdict in found]


def _placed(made: PrefillVerdict, view: FleetView, *, row: int) -> PrefillVerdict:
    """The verdict, with what its pod is like."""
    return replace(made, silent=view.gate[row] == SILENT, only=bool(view.prefill_only[row]))


def _left_out(asked: Asked, query: Query, *, row: int) -> Reason | None:
    if row in asked.paused:
        return Reason.CIRCUIT_OPEN
    if not asked.may_load and query.codes is not None and query.codes[row] & TIER_BITS < LOADING:
        return Reason.HELD_FOR_LOAD
    return None


def _costs(asked: Asked, query: Query, *, view: FleetView, row: int, decode: int) -> PrefillVerdict:
    pod, other = view.pods[row], view.pods[decode] if decode >= 0 else None
    assert pod is not None
    load, besides = load_costs(query, view, row=row)
    transfer = 0.0
    if other is not None:
        moved = query.uncached(decode, asked.tokens)
        transfer = transfer_seconds(pod, other, tokens=moved, settings=asked.settings)
    return PrefillVerdict(
        pod=pod.name,
        chosen=False,
        reason=None,
        tier=_tier(query, row),
        queue=asked.per_token * asked.queued.get(row, 0),
        load=load,
        prompt=asked.per_token * query.uncached(row, asked.tokens),
        transfer=transfer,
        besides=besides,
    )


def _lost(verdict: PrefillVerdict, taken: PrefillVerdict | None) -> PrefillVerdict:
    """The verdict with why it was not taken, if another was."""
    if taken is None or verdict.reason is not None:
        return verdict
    if verdict is taken:
        return replace(verdict, chosen=True)
    ours, best = verdict.counted or 0.0, taken.counted or 0.0
    # Sums of the same parts in another order may differ in the last digits.
    tied = abs(ours - best) <= 1e-9 * max(1.0, abs(best))
    return replace(verdict, reason=Reason.LOST_TIE if tied else Reason.OUTSCORED)


# -- each by itself


def _judged(
    asked: Asked, query: Query, *, view: FleetView, now: Seconds, policy: Policy, pick: Pick
) -> list[PrefillVerdict]:
    leg_query = as_leg(query)
    leg_query.mask = bytearray(view.rows) if query.mask is None else bytearray(query.mask)
    for row in asked.paused:
        leg_query.mask[row] = leg_query.mask[row] or CODE[Reason.CIRCUIT_OPEN]
    leg_query.facts = query.facts._replace(peer=_row(view, pick.pod))
    others = judge(leg_query, view, now=now, policy=policy)
    judged = [each for each in others if not view.decode_only[each.row] and _name(view, each.row) != pick.pod]
    won = next((each.score for each in judged if _name(view, each.row) == pick.prefill), None)
    found = []
    for each in judged:
        name, score = _name(view, each.row), each.score
        chosen, reason = name == pick.prefill, each.reason
        if not chosen and reason is None and won is not None and score is not None:
            reason = Reason.LOST_TIE if score >= won else Reason.OUTSCORED
        paused = each.row in asked.paused
        tier = _tier(query, each.row)
        made = PrefillVerdict(pod=name, chosen=chosen, reason=reason, tier=tier, score=score, paused=paused)
        found.append(_placed(made, view, row=each.row))
    return found


def _name(view: FleetView, row: int) -> PodName:
    pod = view.pods[row]
    assert pod is not None
    return pod.name


def _tier(query: Query, row: int) -> Tier | None:
    return Tier(query.codes[row] & TIER_BITS) if query.codes is not None else None
