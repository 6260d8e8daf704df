"""Trying the picker beside what was before: its mode, the two arms, and how they fare.

Times are seconds, shares in [0, 1]. None: unknown.
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import Ratio, Seconds


class ModeKind(StrEnum):
    """What picks are in force for."""

    ENFORCE = "enforce"
    """Every request."""
    OBSERVE = "observe"
    """None: they are computed, explained and counted, and requests are routed as before."""
    PERCENT = "percent"
    """A share of the requests; the others are as with `observe`."""


GATEWAY = "gateway"
"""Route of the observed arm on which no pod is named, so that the gateway's own balancing chooses."""
ROUND_ROBIN = "round-robin"
"""Route of the observed arm where the gateway needs a pod named, and nobody said by which policy."""


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests picks are in force for, and how the others are routed."""

    kind: ModeKind = ModeKind.ENFORCE
    percent: float = 100.0
    """Of the requests, with `percent`: those that picks are in force for; 0 to 100."""
    route: str | None = None
    """Of the others: `gateway`, or a picking policy. None: `gateway`, but `round-robin` for pods of an InferencePool,
    whose gateways may refuse a request without a pod."""

    @property
    def enforced(self) -> Ratio:
        """Share of the requests that picks are in force for."""
        if self.kind is ModeKind.PERCENT:
            return self.percent / 100.0
        return 1.0 if self.kind is ModeKind.ENFORCE else 0.0

    @property
    def text(self) -> str:
        """As one writes it: `enforce`, `observe`, `percent 25`."""
        return f"percent {self.percent:g}" if self.kind is ModeKind.PERCENT else self.kind.value


class Arm(StrEnum):
    """Which of two ways a request is routed."""

    __hash__ = str.__hash__

    ENFORCED = "enforced"
    """As lorapick decides."""
    OBSERVED = "observed"
    """As before; lorapick only says what it would have done."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A figure, with the bounds between which the true one lies 95 times of 100. Unknown bounds: too few requests."""

    value: float
    low: float | None = None
    high: float | None = None


class ArmFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How one arm fared. `requests` = the outcomes, together."""

    arm: Arm
    requests: int = 0
    """That left."""
    outcomes: dict[str, int] = {}
    errors: int = 0
    """Failed, or refused for want of capacity (429, 5xx)."""
    by_tier: dict[str, int] = {}
    """Requests that a pod had, by the tier of their adapter there as believed when they came; `base`, `unknown` where
    nobody said which pod it was."""
    hits: int = 0
    """Of those served, requests whose adapter was in a GPU slot."""
    adapter_requests: int = 0
    """Of those served, requests for an adapter on a known pod: what `hits` is a share of."""
    loads: int = 0
    """Requests that made their pod load an adapter."""
    swap_seconds: Seconds = 0.0
    """What those loads took, as learnt of this fleet's loads."""
    hit_ratio: Interval | None = None
    loads_per_1000: Interval | None = None
    error_ratio: Interval | None = None
    ttft: dict[str, Interval] = {}
    """`p50`, `p95`, `p99` of the time to the first byte, where bodies are looked at (`server.observe: bodies`)."""
    latency: dict[str, Interval] = {}
    """The same from arrival to the end of the answer, of those served."""


class WouldBe(msgspec.Struct, frozen=True, kw_only=True):
    """What would have become of the observed arm, request by request, at pods as they were then."""

    decisions: int = 0
    by_result: dict[str, int] = {}
    """Decisions by what they came to: a tier's word (dispatched), `held_for_load`, `held_for_slot`, `rejected`,
    `base`."""
    hits: int = 0
    """Would have found their adapter in a GPU slot."""
    adapter_requests: int = 0
    hit_ratio: Interval | None = None
    compared: int = 0
    """Decisions for a pod, of requests of which one knows which pod had them."""
    agreed: int = 0
    """Of these, the ones for the pod that had them."""
    agreement: Ratio | None = None


class ArmVerdict(StrEnum):
    """What the comparison comes to."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    MIXED = "mixed"
    """Better in one respect, worse in another."""
    TOO_FEW = "too few to tell"
    NOTHING = "nothing to compare"


class ArmFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of the enforced arm with the observed one."""

    what: str
    """`hits`, `loads`, `errors`, `ttft p95`, `latency p95`, and so on."""
    enforced: Interval | None = None
    observed: Interval | None = None
    verdict: ArmVerdict = ArmVerdict.TOO_FEW


class ArmsReport(msgspec.Struct, frozen=True, kw_only=True):
    """Both arms side by side."""

    mode: str
    """As of now, or as in most of the rows."""
    route: str | None = None
    """How the observed arm is routed; None: nobody says."""
    source: str = "picker"
    """`picker` (since the mode was set) or `ledger`."""
    seconds: Seconds = 0.0
    """That the figures are of."""
    apart: bool = False
    """The arms are of different times, one after the other."""
    arms: tuple[ArmFigures, ...] = ()
    would: WouldBe = WouldBe()
    findings: tuple[ArmFinding, ...] = ()
    verdict: ArmVerdict = ArmVerdict.NOTHING
    sentence: str = ""
