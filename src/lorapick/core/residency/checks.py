"""What must hold between the parts of the residency table.

In: the table. Out: nothing, or an AssertionError that says what differs. Not here: columns (see `core.invariants`).
"""

from lorapick.core.residency.table import Residency
from lorapick.model.tiers import Tier


def check(residency: Residency) -> None:
    """Loads under way and adapters in use are those that cells say."""
    said = {
        (name, home.row) for home in residency.homes() for name, cell in home.cells.items() if cell.tier is Tier.LOADING
    }
    listed = {(name, row) for row, name, _ in residency.loads()}
    assert said == listed, f"cells say {sorted(said)} load, the list says {sorted(listed)}"
    due = min((cell.expected for _, _, cell in residency.loads()), default=float("inf"))
    assert residency.next_due <= due, f"a load ends at {due}, nobody looks before {residency.next_due}"
    for home in residency.homes():
        loads = sum(cell.tier is Tier.LOADING for cell in home.cells.values())
        assert home.loading == loads, f"{home.name}: counts {home.loading} loads, cells say {loads}"
        used = {name for name, cell in home.cells.items() if cell.in_use}
        assert set(home.in_use) == used, f"{home.name}: {sorted(home.in_use)} are in use, cells say {sorted(used)}"
        absent = {name for name in home.reserved if home.cells[name].tier < Tier.LOADING}
        assert set(home.absent) == absent, f"{home.name}: {sorted(home.absent)} are absent, cells say {sorted(absent)}"
        assert (home.row in residency.rows_absent) == bool(absent), f"{home.name}: absent are {sorted(absent)}"
    rows = sum(home.loading > 0 for home in residency.homes())
    assert residency.rows_loading == rows, f"counts {residency.rows_loading} pods that load, cells say {rows}"
    residency.registry.check()
