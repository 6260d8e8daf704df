"""Names of the alerts that the core raises: the same in effects, the admin API, metrics, rules, runbooks and docs."""

from enum import StrEnum


class Severity(StrEnum):
    """What an alert asks of whom it reaches."""

    WARN = "warn"
    """Look at it in working hours."""
    PAGE = "page"
    """Users are harmed: look now."""


class Alert(StrEnum):
    """What somebody should look at. Each is raised and cleared in turn, and stands once at most."""

    NEW_ADAPTERS = "new_adapters"
    """Adapters that nobody declared, or that nobody asked for before, take traffic [R2.6, R5.1]."""
    CONVOY = "convoy"
    """As many pods load as may, and requests wait [R3.3]."""
    PRESSURE = "pressure"
    """Pods stay in a hard or critical pressure tier [R3.8]."""
    QUEUES = "queues"
    """What waits at the picker is near its bound, in number or in time."""
    QUARANTINE = "quarantine"
    """Pods keep failing to load an adapter."""
    PEERS_DOWN = "peers_down"
    """The store that pickers of one fleet agree through is out of reach, so each goes on alone."""
    NO_PREFILL = "no_prefill"
    """Pods that only prefill do not: all are down or fail, or nothing comes of it when one is named [R4.1]."""
    ACTIVE_ADAPTERS = "active_adapters"
    """Nearly as many adapters are in use as the fleet has slots, or more [R5.1]."""
    SWAP_RATE = "swap_rate"
    """Some pod swaps adapters too often [R5.1]."""
    RESIDENCY = "residency"
    """Adapters leave their slots soon after they came [R5.1]."""
    HIT_RATIO = "hit_ratio"
    """Too many requests come to a pod that lacks their adapter [R5.1]."""
    SWAP_QUEUE = "swap_queue"
    """Requests wait for loads all the time [R5.1]."""
    USEFUL_TIME = "useful_time"
    """Pods are busy with something else than inference [R5.1]."""
    LATENCY = "latency"
    """P95 is over what users were promised [R5.1]."""
    ERROR_RATE = "error_rate"
    """Requests fail or are refused [R5.1]."""
    CRITICAL_QUEUES = "critical_queues"
    """On several pods as many requests wait as may [R5.1]."""
    THRASH = "thrash"
    """Swaps and residency are those of thrash, and users are harmed [R5.1]."""

    @property
    def severity(self) -> Severity:
        """What it asks for."""
        return Severity.PAGE if self in _PAGES else Severity.WARN


_PAGES = (Alert.LATENCY, Alert.ERROR_RATE, Alert.CRITICAL_QUEUES, Alert.THRASH)
