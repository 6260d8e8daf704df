"""Names of the alerts that the core raises: the same in effects, the admin API, metric labels, reports and docs."""

from enum import StrEnum


class Alert(StrEnum):
    """What somebody should look at. Each is raised and cleared in turn, and stands once at most."""

    NEW_ADAPTERS = "new_adapters"
    """Adapters that nobody declared are asked for [R2.6]."""
    CONVOY = "convoy"
    """As many pods load as may, and requests wait [R3.3]."""
    PRESSURE = "pressure"
    """Pods stay in a hard or critical pressure tier [R3.8]."""
    QUEUES = "queues"
    """What waits at the picker is near its bound, in number or in time."""
    QUARANTINE = "quarantine"
    """Pods keep failing to load an adapter."""
