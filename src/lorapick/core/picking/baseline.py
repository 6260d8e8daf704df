"""What the policies that exist for comparison share: they weigh no terms and know nothing of sessions and loads.

Not here: any preference.
"""

from lorapick.core.picking.query import FleetView, Query
from lorapick.model.settings import PickingSettings

BEHIND = 1e6
"""What pods outside a policy's choice lose: they rank behind those inside and still serve as fallbacks."""


class Baseline:
    """Defaults of `Policy`, for policies that have no settings."""

    coalesces = False
    """None of the systems that these policies stand for lets requests follow a load under way."""
    waits = False
    keeps_sessions = False
    reads: tuple[str, ...] = ()
    counts_in_flight = False
    narrows = False

    def __init__(self, settings: PickingSettings) -> None:
        del settings

    def narrow(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """All of them."""
        del query, view
        return rows

    def terms(self, query: Query, view: FleetView, *, row: int) -> None:
        """No parts."""
        del query, view, row

    def weights(self) -> dict[str, float]:
        """No parts."""
        return {}
