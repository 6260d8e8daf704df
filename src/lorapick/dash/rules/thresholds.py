"""Numbers of a configuration as rules write them.

In: settings. Out: `Thresholds`. Not here: what is compared with them (see `dash.rules.alerts`).
"""

from typing import NamedTuple

from lorapick.model.settings import AlertSettings, ScrapeSettings, Settings, SloSettings
from lorapick.model.units import Seconds

RATE_WINDOW: Seconds = 120.0
"""Of rates in rules: a minute, as in the picker's own alerts, would hold too few scrapes of a page read every 30 s."""


class Thresholds(NamedTuple):
    """What rules take from a configuration."""

    alerts: AlertSettings = AlertSettings()
    slo: SloSettings = SloSettings()
    scrape: ScrapeSettings = ScrapeSettings()

    @classmethod
    def of(cls, settings: Settings) -> "Thresholds":
        """Those of one configuration."""
        return cls(settings.alerts, settings.slo, settings.scrape)

    @property
    def thrash_residency(self) -> Seconds:
        """Mean residency that is thrash whatever else is true: 30 s, or half of what pages where that is less."""
        return min(30.0, self.alerts.residency_page / 2)


def duration(seconds: Seconds) -> str:
    """As Prometheus writes it: `2m`, `90s`, `1500ms`."""
    milliseconds = round(seconds * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0 and milliseconds >= size:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def number(value: float) -> str:
    """As short as it can be written."""
    return f"{value:.12g}"


def percent(share: float) -> str:
    """A share in words: `80 %`."""
    return f"{100 * share:g} %"
