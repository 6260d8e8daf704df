"""Panels as rows are made of them: what to ask, in which unit, what is good and what is bad.

In: titles, queries, thresholds. Out: the builders of grafana-foundation-sdk. Not here: which panels there are (see
`dash.boards.rows`).
"""

from typing import NamedTuple

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    FieldColorModeId,
    Panel,
    SpecialValueMap,
    SpecialValueMatch,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
GOOD, WARN, BAD = "#0b7a6b", "#b9821b", "#c0362c"
"""Told apart by those who see red and green alike; every state says its word or number too."""
FULL_WIDTH = 24
"""Columns of Grafana's grid."""


class Ask(NamedTuple):
    """One query of a panel."""

    expr: str
    legend: str = ""
    """What a line is called; may name labels, as `{{pod}}`."""
    optional: bool = False
    """Whether it may well find nothing: series of others than lorapick."""


class Look(NamedTuple):
    """How values are drawn."""

    unit: str = "short"
    """Grafana's word: `s`, `percentunit`, `reqps`, `ops`, `short`."""
    least: float | None = None
    most: float | None = None
    steps: tuple[tuple[float, str], ...] = ()
    """From which value on which colour; below the first it is good, unless `falling`."""
    falling: bool = False
    """Whether less is worse: below the first step it is bad."""
    height: int = 8
    width: int = 12


class Drawn(NamedTuple):
    """A panel and what it asks, so that tests can ask the same."""

    builder: Builder[Panel]
    title: str
    asks: tuple[Ask, ...]


def _targets(asks: tuple[Ask, ...], *, instant: bool = False) -> list[prometheus.Dataquery]:
    targets = []
    for number, ask in enumerate(asks):
        query = prometheus.Dataquery().expr(ask.expr).legend_format(ask.legend or "__auto")
        query = query.ref_id(chr(ord("A") + number)).datasource(SOURCE)
        targets.append(query.instant() if instant else query.range())
    return targets


def _thresholds(look: Look) -> dashboard.ThresholdsConfig:
    first = Threshold(value=None, color=BAD if look.falling else GOOD)
    steps = [first, *(Threshold(value=value, color=color) for value, color in look.steps)]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def lines(title: str, text: str, *, asks: tuple[Ask, ...], look: Look) -> Drawn:
    """Lines over time, with the values now and at their most in the legend."""
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.TABLE)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull", "max"])
    )
    panel = timeseries.Panel().title(title).description(text).datasource(SOURCE).unit(look.unit).legend(legend)
    panel = panel.targets([*_targets(asks)]).height(look.height).span(look.width).fill_opacity(8).line_width(1)
    if look.steps:
        style = common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds(_thresholds(look)).thresholds_style(style)
    if look.least is not None:
        panel = panel.min(look.least)
    if look.most is not None:
        panel = panel.max(look.most)
    return Drawn(panel, title, asks)


def figure(title: str, text: str, *, ask: Ask, look: Look) -> Drawn:
    """One number, in the colour of its threshold."""
    options = common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    color = dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS)
    panel = (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(look.unit)
        .decimals(2)
        .no_value("–")
        .mappings([_nothing()])
        .reduce_options(options)
        .color_scheme(color)
        .thresholds(_thresholds(look))
        .targets([*_targets((ask,))])
        .height(look.height)
        .span(look.width)
    )
    return Drawn(panel, title, (ask,))


def bars(title: str, text: str, *, ask: Ask, look: Look) -> Drawn:
    """One bar for each series, now."""
    options = common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    panel = (
        bargauge.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(look.unit)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(options)
        .thresholds(_thresholds(look))
        .targets([*_targets((ask,), instant=True)])
        .height(look.height)
        .span(look.width)
    )
    if look.least is not None:
        panel = panel.min(look.least)
    return Drawn(panel, title, (ask,))


def states(title: str, text: str, *, ask: Ask, words: tuple[str, ...], look: Look) -> Drawn:
    """A strip for each series, in words by its number: 0 is the first."""
    colors = (GOOD, WARN, BAD, BAD) if len(words) > 2 else (GOOD, BAD)
    options = {
        str(number): ValueMappingResult(text=word, color=colors[number], index=number)
        for number, word in enumerate(words)
    }
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .mappings([ValueMap(options=options)])
        .targets([*_targets((ask,))])
        .height(look.height)
        .span(look.width)
    )
    return Drawn(panel, title, (ask,))


def _nothing() -> ValueMapping:
    """No division by zero in big letters: nothing happened, so nothing is known."""
    return SpecialValueMap(
        options=dashboard.DashboardSpecialValueMapOptions()
        .match(SpecialValueMatch.NULL_AND_NAN)
        .result(ValueMappingResult(text="–"))
        .build()
    )
