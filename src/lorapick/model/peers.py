"""What one picker of a fleet tells the others: all of it, each time."""

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.arms import Mode
from lorapick.model.units import AdapterName, PodName


class ModeWord(msgspec.Struct, frozen=True, kw_only=True):
    """A mode that an operator set at one picker of a fleet, and so for all."""

    number: int
    """One more than that of the last one that the picker had heard of."""
    mode: Mode

    def beats(self, other: "ModeWord | None") -> bool:
        """Whether it is the later one; of two that were set without knowing of each other all pickers take the same."""
        return other is None or self.rank > other.rank

    @property
    def rank(self) -> tuple[int, str, str]:
        """Words in order, the same for all who know them."""
        return self.number, self.mode.text, self.mode.route or ""


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """All that a picker has now; the fields of a `PeerReported`."""

    loads: dict[PodName, tuple[AdapterName, ...]] = {}
    """Adapters on their way into slots through this picker, by request or by command."""
    in_flight: dict[PodName, int] = {}
    """Its requests; pods without any are left out."""
    pins: dict[AdapterName, PinSpec] = {}
    """Pins that operators set here, beside those of the configuration."""
    mode: ModeWord | None = None
    """The last word of an operator, at whichever picker; None: all have the mode of their files."""
