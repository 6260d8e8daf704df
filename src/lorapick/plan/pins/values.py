"""What advice on pins starts from, and what it says.

In: nothing. Out: values. Not here: request logs (see `plan.logs`), how one follows from the other (see `advice`).
"""

from enum import StrEnum

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.core.placement.replicas import DEFAULT_RULES
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds, Tokens
from lorapick.plan.logs.values import LogAdapter
from lorapick.sim.hardware import PRESETS

DAY: Seconds = 86_400.0
FREE: Ratio = 0.5
"""Share of each pod's slots that pins leave to others: everybody who is not pinned is served from these."""
NEW: Seconds = 3 * DAY
"""Who came first later than so long before the end of the logs may be an experiment."""
GONE: Seconds = 8 * DAY
"""Who has not come for so long is gone; longer than a week, since some come on one day of it only."""
ROUND_ROBIN = "round-robin"


class PinFleet(msgspec.Struct, frozen=True, kw_only=True):
    """Where pins would be."""

    pods: tuple[Pod, ...]
    """At least one."""
    named: bool
    """Whether pods have names that a configuration may use; else they stand for any alike."""
    base_model: str = "base"
    """That of adapters which name none."""
    declared: tuple[Adapter, ...] = ()
    """Adapters of the configuration, some of them with pins."""
    aliases: tuple[str, ...] = ()
    """Names that stand for adapters."""

    @property
    def slots(self) -> int:
        """Of all pods."""
        return sum(pod.limits.max_loras for pod in self.pods)


class PinOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What else is asked for, or assumed.

    Raises:
        ValueError: a number that cannot be.
    """

    cover: Ratio = 0.7
    """Share of requests that pins should answer."""
    service: Seconds | None = None
    """How long a request is on its pod; None: from its tokens."""
    target: float = DEFAULT_RULES.target
    """Requests of one adapter that one pod runs at once."""
    with_new: bool = False
    """Whether who came first in the last days may be pinned too; pins should not hold experiments."""
    base: tuple[str, ...] = ()
    """Names that meant the base model when the logs were read."""
    policy_now: str = ROUND_ROBIN
    """How requests are sent today."""
    seed: int = 1
    prompt: Tokens = 1155
    output: Tokens = 211
    """Of requests whose tokens the logs do not tell. Means of Azure's conversations of 2023 (19,366 requests)."""
    hardware: str = "h100-llama8b"
    """Name of a preset of `sim.hardware`."""

    def __post_init__(self) -> None:
        if not 0 < self.cover <= 1:
            raise ValueError(f"--cover {self.cover:g}: a share above 0 and at most 1, such as 0.7 or 70%")
        if self.service is not None and not 0 < self.service <= 3600:
            raise ValueError(f"--service {self.service:g} s: above 0 and at most 1h")
        if not 0 < self.target <= 10_000:
            raise ValueError(f"--target {self.target:g}: above 0 and at most 10,000 requests at once")
        if self.policy_now not in POLICIES:
            raise ValueError(f"--policy-now {self.policy_now}: there are {', '.join(POLICIES)}")
        if self.hardware not in PRESETS:
            raise ValueError(f"--hardware {self.hardware}: there are {', '.join(PRESETS)}")
        for name, value in (("--prompt", self.prompt), ("--output", self.output)):
            if not 1 <= value <= 10_000_000:
                raise ValueError(f"{name} {value}: 1 to 10,000,000 tokens")


class Remark(StrEnum):
    """What to know of an adapter before it is pinned."""

    NEW = "new"
    """First seen in the last days: perhaps an experiment, which pins should not hold."""


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter that should be pinned."""

    log: LogAdapter
    share: Ratio
    """Of the requests of all adapters."""
    service: Seconds
    load: float
    """Requests of it in the system in its busiest minute: `peak / 60 s × service`."""
    wanted: int
    """Replicas that its busiest minute asks for."""
    asked: int
    """Of them, those for which pods and room were looked for."""
    pods: tuple[PodName, ...]
    """Where the solver puts them; fewer than `asked`: no room, or no pod that may serve it."""
    remark: Remark | None = None

    @property
    def adapter(self) -> AdapterName:
        """Its name."""
        return self.log.adapter


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter with enough requests for a pin that gets none."""

    adapter: AdapterName
    share: Ratio
    why: str


class PodPins(msgspec.Struct, frozen=True, kw_only=True):
    """One pod and its pins."""

    pod: PodName
    slots: int
    own: int
    """Slots of pins that the configuration has already."""
    room: int
    """Further ones that pins may take."""
    pins: tuple[AdapterName, ...]
    """New ones."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Who should be pinned where."""

    pins: tuple[Pinned, ...]
    """Most requests first; each is on one pod at least."""
    left_out: tuple[LeftOut, ...]
    pods: tuple[PodPins, ...]
    own: tuple[AdapterName, ...]
    """Adapters that the configuration pins already, with a place."""
    current: int
    """Requests of adapters that are not gone."""
    covered: int
    """Of them, those for adapters with a pin."""
    needed: int
    """Adapters without a pin so far that it takes to cover what was asked for; more than the pins: no room."""
    pinnable: bool
    """Whether adapters that may be pinned have requests enough for the cover that was asked for."""

    @property
    def copies(self) -> int:
        """Slots that new pins take."""
        return sum(len(each.pods) for each in self.pins)


def counted(count: int, what: str) -> str:
    """`1 adapter`, `2 adapters`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def readable(name: AdapterName) -> str:
    """A name from logs as a terminal may be shown it: control characters are escaped."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()
