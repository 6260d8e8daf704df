"""The arms of a trial: which one a request is in, and how the requests of each fare.

In: the mode, requests as they come and leave. Out: `Trial`s, counts. Not here: how an observed request is routed (see
`core.arms_routing`), what the counts come to (see `core.arms_report`).

While every request is decided for in force, and always was, nothing is drawn and nothing counted: that costs one look
at `Arms.on` per request.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lorapick.core.arms_tally import BASE, UNKNOWN, ArmTally, WouldTally
from lorapick.core.draw import draw_for
from lorapick.core.picking.policies import make_policy
from lorapick.core.picking.policy import Policy
from lorapick.model.arms import GATEWAY, ROUND_ROBIN, Arm, Mode, ModeKind
from lorapick.model.picks import Pick
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.model.units import PodName, Seconds

ENFORCED, OBSERVED = Arm.ENFORCED, Arm.OBSERVED
_SERVED, _FAILED = Outcome.SERVED, Outcome.FAILED
TOO_MANY_REQUESTS = 429


class Trial:
    """One request's part in a trial."""

    __slots__ = ("arm", "codes", "passed", "pods", "tier", "would")

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.would: Pick | None = None
        """What would have been decided; None: that is in force."""
        self.codes: Sequence[int] = ()
        """Residency codes of its adapter by row when it came, of a request that the gateway places."""
        self.pods: Sequence[PodName | None] = ()
        """Whose rows those are."""
        self.passed = False
        """Whether the gateway chooses its pod, and has not said yet which it is."""
        self.tier: Tier | None = None
        """Of its adapter where it is, as believed when it came. None: base model, or unknown."""


class Period(NamedTuple):
    """Counts as they were when a mode was set."""

    mode: Mode
    since: Seconds
    arms: dict[Arm, ArmTally]
    would: WouldTally


class Arms:
    """Both arms of one fleet."""

    __slots__ = ("before", "begun", "mode", "on", "policy", "seed", "tallies", "turn", "would")

    def __init__(self, settings: Settings, *, seed: int) -> None:
        self.seed = seed
        self.on = False
        """Whether requests are drawn and counted: once some were, it stays so, for the arms to be compared."""
        self.policy: Policy | None = None
        """Routes the observed arm; None: the gateway does."""
        self.turn = 0
        """Row that is the next of the observed arm, for policies that go round."""
        self.tallies: dict[Arm, ArmTally] = {ENFORCED: ArmTally(), OBSERVED: ArmTally()}
        self.would = WouldTally()
        self.mode = Mode()
        self.begun = self.before = Period(self.mode, 0.0, self._copies(), self.would.copy())
        """The counts when the mode, and the one before it, was set."""
        self.configure(settings, now=None)

    def configure(self, settings: Settings, *, now: Seconds | None) -> None:
        """Take over the mode; at the begin (`now` is None) no time is known yet.

        Raises:
            ValueError: its route is no policy; nothing is changed then.
        """
        mode, route = settings.mode, route_of(settings)
        self.policy = None if route == GATEWAY else make_policy(replace(settings.picking, policy=route, profiles=None))
        if mode == self.mode:
            return
        self.before, self.mode = self.begun, mode
        self.begun = Period(mode, now if now is not None else 0.0, self._copies(), self.would.copy())
        self.on = self.on or mode.kind is not ModeKind.ENFORCE

    def _copies(self) -> dict[Arm, ArmTally]:
        return {arm: tally.copy() for arm, tally in self.tallies.items()}

    @property
    def commands(self) -> bool:
        """Whether pods may be told anything: not as long as a request is routed as before.

        A load holds up whoever is on its pod, in whichever arm: a share of the requests would not bound what a trial
        does to the others, and both arms would have what one of them is to be compared with.
        """
        return self.mode.enforced >= 1.0

    def begin(self, request: Request) -> Trial:
        """A request came: it is in the arm of its session, else in one of its own."""
        self.tallies[arm := self.arm_of(request)].arrivals += 1
        return Trial(arm)

    def arm_of(self, request: Request) -> Arm:
        """The same at each call, and for all requests of one session; a share that grows takes nobody back.

        A fairness id is no session: gateways give one to a whole tenant, and all of its traffic would be in one arm.
        """
        share = self.mode.enforced
        if share >= 1.0 or share <= 0.0:
            return ENFORCED if share else OBSERVED
        key = f"s{request.session}" if request.session is not None else f"r{request.id}"
        return ENFORCED if draw_for(self.seed, key, purpose="arm:") < share else OBSERVED

    # -- what became of them

    def first_byte(self, trial: Trial, seconds: Seconds) -> None:
        """The first bytes of an answer came."""
        self.tallies[trial.arm].ttft.add(seconds)

    def refused(self, trial: Trial, status: int) -> None:
        """We answered it ourselves."""
        tally = self.tallies[trial.arm]
        tally.outcomes[Outcome.REJECTED] += 1
        tally.errors += status >= 500 or status == TOO_MANY_REQUESTS

    def left(self, trial: Trial, outcome: Outcome, *, status: int | None, seconds: Seconds) -> None:
        """It left a pod, or us by itself."""
        tally = self.tallies[trial.arm]
        tally.outcomes[outcome] += 1
        if outcome is _SERVED:
            tally.latency.add(seconds)
        elif outcome is _FAILED:
            tally.errors += status is None or status >= 500 or status == TOO_MANY_REQUESTS

    def placed(self, trial: Trial, tier: Tier | None, *, pod: PodName | None, took: Seconds, served: bool) -> None:
        """Where it was in the end (None: nobody knows); `tier` None: base model; `took`: a load from there."""
        tally = self.tallies[trial.arm]
        if pod is None:
            tally.by_tier[UNKNOWN] += 1
            return
        tally.by_tier[tier.word if tier is not None else BASE] += 1
        if trial.would is not None and trial.would.pod is not None:
            self.would.compared += 1
            self.would.agreed += trial.would.pod == pod
        if tier is None:
            return
        if tier < Tier.LOADING:
            tally.loads += 1
            tally.swap_seconds += took
        if served:
            tally.adapter_requests += 1
            tally.hits += tier.on_gpu

    def would_be(self, pick: Pick, *, adapter: bool) -> None:
        """What would have been decided."""
        would = self.would
        if pick.pod is not None:
            would.by_result[pick.tier.word if pick.tier is not None else BASE] += 1
        else:
            held = pick.reason is not None and pick.reason.value.startswith("held")
            would.by_result[pick.reason.value if held and pick.reason is not None else "rejected"] += 1
        if adapter:
            would.adapter_requests += 1
            would.hits += pick.pod is not None and pick.tier is not None and pick.tier.on_gpu


def route_of(settings: Settings) -> str:
    """How the observed arm is routed."""
    if settings.mode.route is not None:
        return settings.mode.route
    return GATEWAY if settings.discovery.kubernetes is None else ROUND_ROBIN
