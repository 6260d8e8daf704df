"""The dashboard as Grafana imports it.

In: thresholds of a configuration. Out: JSON, the same bytes for the same thresholds. Not here: its panels (see
`dash.boards.rows`). Positions and the schema's version are those that Grafana's builders give.
"""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import TimeZoneBrowser
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from lorapick.dash.boards.panels import FULL_WIDTH, SOURCE, Drawn
from lorapick.dash.boards.rows import rows
from lorapick.dash.rules.thresholds import Thresholds

UID = "lorapick-thrash"
TITLE = "lorapick: where adapters are, and whether that is thrash"


def dashboard_json(thresholds: Thresholds, *, note: str = "") -> str:
    """The whole dashboard; `note` is its description."""
    return JSONEncoder(indent=2, ensure_ascii=False).encode(build(thresholds, note=note).build()) + "\n"


def build(thresholds: Thresholds, *, note: str) -> dashboard.Dashboard:
    """Rows, panels and variables."""
    board = (
        dashboard.Dashboard(TITLE)
        .uid(UID)
        .description(note)
        .tags(["lorapick", "lora", "llm"])
        .refresh("30s")
        .time("now-3h", "now")
        .timezone(TimeZoneBrowser)
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_pods())
    )
    number = 0
    for row in rows(thresholds):
        _checked(row.panels)
        number += 1
        board = board.with_row(dashboard.Row(row.title).id(number))
        for drawn in row.panels:
            number += 1
            panel = drawn.builder.build()
            panel.id_val = number
            board = board.with_panel(drawn.builder)
    return board


def _pods() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable("pod")
        .label("Pod")
        .datasource(SOURCE)
        .query("label_values(lorapick_slots, pod)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(text="All", value="$__all", selected=True))
    )


def _checked(panels: list[Drawn]) -> None:
    """Rows must be full: what Grafana's builder places after a gap would begin beside it."""
    column = 0
    for drawn in panels:
        position = drawn.builder.build().grid_pos
        assert position is not None, drawn.title
        column += position.w
        assert column <= FULL_WIDTH, f"{drawn.title} does not fit into its line"
        column %= FULL_WIDTH
    assert column == 0, f"the line that ends with {panels[-1].title} is not full"
