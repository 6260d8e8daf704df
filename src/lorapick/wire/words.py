"""A decision in plain sentences, for the terminal and the page alike.

In: an `ExplanationDocument`. Out: a few short sentences, the most important first: where the request went, why, what it
waited for, and what kept every other pod from it. Not here: figures in columns (see `cli.explain`), layout.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lorapick.model.disaggregation import SplitCosts
from lorapick.model.picks import OF_PREFILL, Explanation, Waited, What
from lorapick.model.reasons import Reason, status_of
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import PodName, Seconds
from lorapick.wire.api import ExplanationDocument, VerdictDocument, explanation_document
from lorapick.wire.words_reasons import KEPT_OUT, of_pod, of_request

MOST_NAMES = 3
"""Pods that one sentence names; the rest are counted."""

CHOSEN: Mapping[str, str] = {
    "score": "{pod} scored best",
    "draw": "{pod} and others scored alike, and the draw chose among them",
    "session": "{pod} served this session last and was as good a holder as any",
    "load": "{pod} was loading the adapter already, and requests that need the same load stay together",
}
"""What made the winner win, by `Explanation.chosen_by`."""

_HAD: Mapping[str, str] = {
    Tier.GPU_SERVING.word: "had the adapter in a GPU slot, in use",
    Tier.GPU_IDLE.word: "had the adapter in a GPU slot, idle",
    Tier.LOADING.word: "was loading the adapter",
    Tier.CPU.word: "had the adapter in host memory and had to load it into a slot",
    Tier.DISK.word: "had the adapter on disk only and had to load it",
    Tier.UNREGISTERED.word: "did not know the adapter",
}
_KNOWN: Mapping[Source, str] = {
    Source.REPORTED: "as the pod itself reported",
    Source.COMMANDED: "as lorapick had told it to",
    Source.INFERRED: "inferred from what was sent there",
    Source.PEER: "as another picker of the fleet said",
}
_SPOKE: Mapping[Evidence, str] = {
    Evidence.ANSWER: "a request was answered with it",
    Evidence.SCRAPE: "its scrape named it",
    Evidence.LIST: "its list of adapters was read",
    Evidence.KV_EVENT: "it stored KV blocks of it",
    Evidence.COMMAND: "it answered a command about it",
}
_BROUGHT = {
    "adapter": "having the adapter nearer at hand",
    "kv": "having more of the prompt cached",
    "queue": "a shorter queue",
    "gpu": "a less busy GPU",
}
"""What a term of the score rewards."""


def explained(explanation: Explanation) -> ExplanationDocument:
    """The explanation as the admin API shows it, with its words."""
    document = explanation_document(explanation)
    return msgspec.structs.replace(document, words=in_words(document))


def in_words(document: ExplanationDocument) -> tuple[str, ...]:
    """What happened, in plain sentences, the most important first."""
    winner = next((verdict for verdict in document.verdicts if verdict.won), None)
    sentences = [_what(document, winner)]
    if winner is not None:
        sentences += [_because(document, winner), *_where(document, winner), *_split(document, winner)]
    sentences += [*_waiting(document), *_losers(document), *_not_to_prefill(document), *_rest(document)]
    return tuple(f"{sentence}." for sentence in sentences)


def span(seconds: Seconds) -> str:
    """A time as people say it: seconds up to two minutes, then minutes, hours, days."""
    if seconds < 119.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 48 * 60 else f"{minutes // 1440} d"


def _what(document: ExplanationDocument, winner: VerdictDocument | None) -> str:
    asked = document.model
    if document.adapter is None:
        asked += " (the base model)"
    elif document.adapter != document.model:
        asked += f" (which stood for {document.adapter})"
    if document.outcome == "observed":
        return f"The request for {asked} {_would(document, winner)} by lorapick's pick; {_went(document)}"
    if winner is not None:
        return f"The request for {asked} went to {winner.pod}"
    if document.reason is None:
        return f"The request for {asked} was {document.outcome}"
    why = of_request(document.reason)
    if document.outcome == "held":
        return f"The request for {asked} waits at the picker ({document.reason}): {why}"
    status = status_of(document.reason)
    return f"The request for {asked} was refused with {status} ({document.reason}): {why}"


def _went(document: ExplanationDocument) -> str:
    """Where an observed request went."""
    went = next((came for came in reversed(document.came) if came.what is What.WENT), None)
    if went is None:
        return "it is only observed, and nobody has said where it went"
    return f"it is only observed, and went to {went.pod}{f' ({went.why})' if went.why else ''}"


def _would(document: ExplanationDocument, winner: VerdictDocument | None) -> str:
    if winner is not None:
        return f"would have gone to {winner.pod}" + (f" ({winner.tier})" if winner.tier is not None else "")
    held = document.reason is not None and document.reason.startswith("held")
    return f"would have {'waited' if held else 'been refused'} ({document.reason})"


# -- the winner


def _because(document: ExplanationDocument, winner: VerdictDocument) -> str:
    chosen = CHOSEN.get(document.chosen_by or "", "{pod} was chosen").format(pod=winner.pod)
    if document.chosen_by == "score":
        return chosen + _margin(document, winner)
    if not document.weights:
        return f"{chosen} (policy {document.policy})"
    return chosen if winner.score is None else f"{chosen} (score {winner.score:.3f})"


def _margin(document: ExplanationDocument, winner: VerdictDocument) -> str:
    """By how much it won, and what made most of that."""
    rivals = [verdict for verdict in document.verdicts if not verdict.won and verdict.score is not None]
    if not document.weights or winner.score is None:
        return f" by policy {document.policy}"
    if not rivals:
        return f" with {winner.score:.3f}: no other pod could take it"
    rival = max(rivals, key=lambda verdict: verdict.score or 0.0)
    ahead = {
        term: (part or 0.0) - (rival.contributions.get(term) or 0.0) for term, part in winner.contributions.items()
    }
    most = max(ahead, key=lambda term: ahead[term], default=None)
    made = f"; {_BROUGHT[most]} made most of the difference" if most in _BROUGHT and ahead[most] > 0 else ""
    return f" with {winner.score:.3f}, the next one, {rival.pod}, had {rival.score:.3f}{made}"


def _where(document: ExplanationDocument, winner: VerdictDocument) -> list[str]:
    """Where the adapter was on the winner, how that is known, and how old the knowledge was."""
    if document.adapter is None or winner.tier is None:
        return []
    text = f"{winner.pod} {_HAD.get(winner.tier, winner.tier)}{', pinned,' if winner.pinned else ''}"
    if winner.age_s is not None:
        text += f" for {span(winner.age_s)}"
    return [f"{text} ({'; '.join(how_known(winner))})" if how_known(winner) else text]


def how_known(verdict: VerdictDocument) -> list[str]:
    """How the place of the adapter on a pod was known at the decision, and how fresh that was."""
    known = [] if verdict.source is None else [_KNOWN[verdict.source]]
    if verdict.evidence is not None and verdict.evidence_age_s is not None:
        known.append(f"{_SPOKE[verdict.evidence]} {span(verdict.evidence_age_s)} before")
    elif known and verdict.age_s is None:
        known.append("nothing was ever heard of it there")
    return known


# -- the pod that prefills

_PREFILLS: Mapping[What | None, str] = {
    None: "To be prefilled by",
    What.PREFILLED: "Prefilled by",
    What.OVER: "Sent to be prefilled by",
    What.OVERDUE: "Sent to be prefilled by",
}
"""How it begins, by what came of the prefill; whatever else came, nobody says that it was done there."""
_UNSPLIT: Mapping[str, str] = {
    "few_tokens": "too few tokens of the prompt were not cached there (disaggregation.uncached_tokens)",
    "unknown_length": "the prompt's length is not known, and such a prompt is not split",
    "dearer": "with another pod to prefill it counted more",
    "nobody_prefills": "no other pod could",
}
_NOT_TO_PREFILL: Mapping[Reason, str] = {
    Reason.OUTSCORED: "it would have counted more",
    Reason.LOST_TIE: "it would have counted as much, and the tie went to another",
}


def _split(document: ExplanationDocument, winner: VerdictDocument) -> list[str]:
    """Who prefills, where the adapter was there, what both ways were expected to take, and what came of it."""
    pod, other, pair = winner.pod, document.prefill, document.pair
    if other is None:
        return [*_alone(pod, document), *_came(document, pod)]
    lead = _PREFILLS.get(_of_prefill(document), "Was to be prefilled by")
    had = f", which {_HAD.get(document.prefill_tier, document.prefill_tier)}" if document.prefill_tier else ""
    if pair is None:
        text = f"{lead} {other}{had}; both were chosen by themselves"
    else:
        text = (
            f"{lead} {other} (expected {span(pair.prefill)}){had}, KV in {span(pair.transfer)}, "
            f"decoded by {pod} (expected {span(pair.decode)}: the whole answer, what a load there outlasts the prefill "
            f"by, and what others wait); together {span(pair.together)}"
        )
        if pair.alone is not None:
            text += f"; {pod} alone, the prefill included, was expected to take {span(pair.alone)}"
    return [text, *_came(document, pod)]


def _alone(pod: PodName, document: ExplanationDocument) -> list[str]:
    pair, why = document.pair, _why_unsplit(document)
    because = "" if why is None else f", since {why}"
    if pair is None:
        return [] if why is None else [f"{pod} prefills by itself{because}"]
    counted = f" (counted as {span(pair.counted)}, with loads that nobody waits for)" if pair.besides else ""
    own = "unknown time" if pair.alone is None else span(pair.alone)
    best = f"with the best pod to prefill {span(pair.together)}{counted}"
    return [f"{pod} prefills by itself{because}: alone it was expected to take {own}, {best}"]


def _why_unsplit(document: ExplanationDocument) -> str | None:
    tokens, least = document.uncached_tokens, document.least_uncached_tokens
    if document.unsplit != "few_tokens" or tokens is None or least is None:
        return _UNSPLIT.get(document.unsplit or "")
    return (
        f"some {math.floor(tokens):,} tokens of the prompt were not cached there, and another pod prefills from "
        f"{least:,} on (disaggregation.uncached_tokens)"
    )


def _of_prefill(document: ExplanationDocument) -> What | None:
    return next((came.what for came in reversed(document.came) if came.what in OF_PREFILL), None)


def _came(document: ExplanationDocument, pod: PodName) -> Iterable[str]:
    """What came of it since, in order; `pod` was to decode."""
    other, pair = document.prefill or "the pod that prefills", document.pair
    beside = "" if pair is None else f" (expected {span(pair.prefill + pair.transfer)})"
    whole = [] if pair is None else [f"prefill and KV were expected in {_both(pair)}"]
    for came in document.came:
        after, told = f"After {span(max(0.0, came.t - document.t))}", f" ({came.why})" if came.why else ""
        match came.what:
            case What.PREFILLED:
                yield f"{after} the prefill on {other} had gone well{beside}"
            case What.OVER:
                known = "; ".join([*([came.why] if came.why else []), *whole])
                said = f" ({known})" if known else ""
                yield f"{after} an answer came{said}; {pod}'s sidecar, if it has one, does not say how it went"
            case What.FAILED:
                yield f"{after} {pod} said that the prefill on {other} had failed{told}; it did the prefill itself"
            case What.LOST:
                yield f"{after} {other} was lost in the middle of the prefill; {pod} does the prefill itself"
            case What.OVERDUE:
                yield f"{after} nobody had said that the prefill was over{beside}, so it counts as over on {other}"
            case What.LEFT:
                yield f"{after} the request ended{told}, before its prefill was known to be over"
            case What.MOVED:
                yield f"{after} {pod} was lost{told}; {came.pod} keeps a slot for it, as the gateway goes on to there"
            case What.NOT_MOVED:
                yield f"{after} {pod} was lost{told}; no other pod keeps a slot for it"
            case What.SERVED_BY:
                pod = came.pod or pod
                yield f"{after} the gateway said that {pod} serves it"
            case What.WENT:
                pass  # the first sentence says so


def _both(pair: SplitCosts) -> str:
    """Until the KV is there, and until the end: which of them an answer means depends on whether it is streamed."""
    return f"{span(pair.prefill + pair.transfer)}, the whole in {span(pair.together)}"


def _not_to_prefill(document: ExplanationDocument) -> list[str]:
    """One sentence for each reason, with the pods that it kept from the prefill."""
    by_reason: dict[str, list[PodName]] = {}
    told = {verdict.pod: of_pod(verdict) for verdict in document.verdicts if verdict.reason is not None}
    for verdict in document.prefill_side:
        if verdict.reason is None:
            continue
        why = _NOT_TO_PREFILL.get(verdict.reason, of_pod(verdict))
        if verdict.only or why != told.get(verdict.pod):  # else the sentence of those that decode says so
            by_reason.setdefault(why, []).append(verdict.pod)
    return [f"Not {_listed(pods)} to prefill: {why}" for why, pods in by_reason.items()]


# -- the wait


def _waiting(document: ExplanationDocument) -> list[str]:
    course, name = document.course, document.adapter or document.model
    if document.outcome == "held":
        *before, now = course or (None,)
        waits = [] if now is None else [f"It waits {_wait(now, name)}"]
        if before:
            waits.append(f"Before, it waited {_told(before, name, left_out=document.course_left_out)}")
        return waits
    if document.waited_s is None:
        return []
    text = f"It had waited at the picker for {span(document.waited_s)}"
    if course:
        text += f": {_told(course, name, left_out=document.course_left_out)}; then it was {_then(document)}"
    return [text]


def _told(course: Sequence[Waited | None], name: str, *, left_out: int) -> str:
    told = [_wait(wait, name) for wait in course if wait is not None]
    if left_out:
        told.insert(1, f"{left_out} more times")
    return ", then ".join(told)


def _wait(wait: Waited, name: str) -> str:
    most = "" if wait.until is None else f", for {span(max(0.0, wait.until - wait.t))} at most"
    if wait.follows is not None:
        return f"for the load of {name} on {wait.follows}{most}"
    why = "" if wait.because is None else f" ({KEPT_OUT[wait.because].partition(' (')[0]})"
    return f"for a place on a pod that can serve it{why}{most}"


def _then(document: ExplanationDocument) -> str:
    last = document.course[-1]
    overdue = last.until is not None and document.t >= last.until
    after = ", since its time there was up" if overdue else ""
    return ("sent" if document.outcome == "dispatched" else "refused") + after


# -- the others


def _losers(document: ExplanationDocument) -> list[str]:
    """One sentence for each reason, with the pods that it cost the request."""
    by_reason: dict[str, list[PodName]] = {}
    others = [verdict.pod for verdict in document.prefill_side if verdict.only]
    for verdict in document.verdicts:
        # Who only prefills has its own sentence, of the pods that prefill.
        if verdict.reason is not None and verdict.pod not in others:
            by_reason.setdefault(of_pod(verdict), []).append(verdict.pod)
    return [f"Not {_listed(pods)}: {why}" for why, pods in by_reason.items()]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST_NAMES])} and {more} more"


def _rest(document: ExplanationDocument) -> Iterable[str]:
    if document.fallbacks:
        pod = next((verdict.pod for verdict in document.verdicts if verdict.won), "it")
        lost = "" if document.prefill is None else ", or was lost before its answer began"
        yield f"If {pod} could not be reached{lost}, the gateway would go on to {_listed(document.fallbacks)}"
    if document.degraded:
        yield "The decision was taken in need: all reports were too old, or scoring had failed"
    if document.told is not None:
        yield f"The client was told: {document.told.rstrip('.')}"
