"""What one picker of a fleet tells the others: all of it, each time."""

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.units import AdapterName, PodName


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """All that a picker has now; the fields of a `PeerReported`."""

    loads: dict[PodName, tuple[AdapterName, ...]] = {}
    """Adapters on their way into slots through this picker, by request or by command."""
    in_flight: dict[PodName, int] = {}
    """Its requests; pods without any are left out."""
    pins: dict[AdapterName, PinSpec] = {}
    """Pins that operators set here, beside those of the configuration."""
