"""What the doctor looks at: one fleet at one instant, as a value that can be saved and read again.

In: nothing. Out: `Picture`. Every field has a default that means unknown; None is never 0. Not here: who fills it (see
`live.doctor`), what is made of it (see `core.doctor.diagnose`).
"""

import msgspec

from lorapick.model.pods import Role
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.shifts import Shift
from lorapick.model.signals import PodSignals, SignalPoint, Signals
from lorapick.model.units import AdapterName, Bytes, PodName, Ratio, Seconds, Tokens


class PodPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One pod."""

    name: PodName
    role: Role | None = None
    ready: bool | None = None
    reason: str | None = None
    """Why it takes no requests."""
    queue_depth: float | None = None
    max_queue: int | None = None
    running: int | None = None
    in_flight: int | None = None
    served_per_second: float | None = None
    """Requests for adapters that it served, over the last minute."""
    gpu_utilization: Ratio | None = None
    kv_usage: Ratio | None = None
    slots: int | None = None
    """GPU slots, as the pod says, or else as configured."""
    cpu_slots: int | None = None
    max_rank: int | None = None
    scrape_age: Seconds | None = None
    last_error: str | None = None
    pressure: str | None = None
    kv_blocks: int | None = None
    """KV blocks that its engine has, as scraped."""
    block_tokens: Tokens | None = None
    pinned: int | None = None
    """Adapters that are pinned to it."""
    drift: tuple[str, ...] = ()
    """Where its own flags are others than the configuration's, in words."""
    base_model: str | None = None
    unreached: int | None = None
    """How often it was named to prefill while nothing came to it; 0: something did, or that cannot be told."""
    prefills_fail: bool | None = None
    """Whether what it is named for fails again and again."""

    @property
    def kv_tokens(self) -> Tokens | None:
        """Tokens of KV that fit."""
        return None if self.kv_blocks is None or self.block_tokens is None else self.kv_blocks * self.block_tokens


class AdapterPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter: what is known of its files and where it is."""

    name: AdapterName
    declared: bool | None = None
    rank: int | None = None
    size: Bytes | None = None
    source: str | None = None
    fingerprint: str | None = None
    """Of its weights."""
    base_model: str | None = None
    """As its files name it."""
    problem: str | None = None
    """What is wrong with its files."""
    pinned: bool | None = None
    slots: int | None = None
    """Pods that have it in a slot."""
    known_to: int | None = None
    """Pods that know its name."""
    requests: int | None = None
    """Since the picker started."""


class LoadPicture(msgspec.Struct, frozen=True, kw_only=True):
    """What the last loads from one tier took. That one is over shows late, in an answer or a scrape: so bounds only."""

    tier: str
    seen: int
    """Loads whose end was seen, of the last ones."""
    at_most: Seconds
    """In the mean, until something showed that they were over."""
    quickest: Seconds | None = None
    """The least of these bounds, which is near to what a load takes. None: too few were seen."""
    requests: int = 0
    """Sent to pods that had the adapter in this tier, since the picker started."""


class AlertPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One alert that stands."""

    name: str
    since: Seconds | None = None
    facts: dict[str, str | float] = {}


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """Everything."""

    now: Seconds | None = None
    """On the driver's clock."""
    wall: Seconds | None = None
    """The same instant as Unix time."""
    watched: Seconds | None = None
    """For how long the picker has run."""
    alert_bounds: AlertSettings = AlertSettings()
    slo: SloSettings = SloSettings()
    stale_after: Seconds | None = None
    loads: tuple[LoadPicture, ...] = ()
    """By tier; those whose loads nobody saw end are left out."""
    signals: Signals | None = None
    history: tuple[SignalPoint, ...] = ()
    pods: tuple[PodPicture, ...] = ()
    adapters: tuple[AdapterPicture, ...] = ()
    alerts: tuple[AlertPicture, ...] = ()
    shifts: tuple[Shift, ...] = ()
    arrivals: int | None = None
    """Since the picker started, as the counts below."""
    refused: dict[str, int] = {}
    """Requests refused in the last minute by reason, as far as decisions are kept."""
    faults: dict[str, int] = {}
    """By kind."""
    passed: dict[str, int] = {}
    """Requests that the picker let pass without a decision, by why."""
    envoy_requests: int | None = None
    envoy_without_picker: int | None = None
    """Of these, those that went on without a picker's word."""
    pins_wanted: int | None = None
    """Pairs of a pinned adapter and a pod."""
    pins_missing: int | None = None
    pins_without_place: int | None = None
    """Pinned adapters that do not fit."""
    pin_missing_longest: Seconds | None = None
    pin_problems: dict[AdapterName, str] = {}
    splits_requests: bool | None = None
    """Whether requests are split between pods that prefill and pods that decode."""
    roles: tuple[str, ...] = ()
    """Roles of pods that cannot work, in words."""
    certificate_problem: str | None = None
    """Why the files of the picker's certificate, as they are now, cannot be used."""

    def pod(self, name: PodName) -> PodPicture | None:
        """The pod of this name."""
        return next((pod for pod in self.pods if pod.name == name), None)

    def alert(self, name: str) -> AlertPicture | None:
        """The alert of this name, if it stands."""
        return next((alert for alert in self.alerts if alert.name == name), None)

    @property
    def pod_signals(self) -> tuple[PodSignals, ...]:
        """Figures of the pods; none when unknown."""
        return self.signals.pods if self.signals is not None else ()
