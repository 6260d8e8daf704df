"""Bounds of alerts and promises: what contradicts itself, holds always or never, or is not measured is refused."""

import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError, parse_settings

HEAD = "discovery: {pods: []}\n"
WARNS = "what pages is worse than what warns"
TARGET = "the target is better than what warns"
ACTIVE = "it is 0.8 by default"
BUSY = "drains and loads at times, so the alert would never end"
STAYS = "adapters stay for less time where it pages than where it warns"


def settings(text: str) -> Settings:
    return parse_settings(HEAD + text, file="l.yaml", policies=tuple(POLICIES))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{swap_rate: 2}",
            f"21: swap_rate: must be at most swap_rate_broken, which is 1 by default (found 2); {WARNS}",
        ),
        (
            "{swap_rate_broken: 0.2}",
            f"28: swap_rate_broken: must be at least swap_rate, which is 0.5 by default (found 0.2); {WARNS}",
        ),
        (
            "{residency: 30s, residency_page: 1m}",
            f'42: residency_page: must be at most residency, which is 30s (found "1m"); {STAYS}',
        ),
        (
            "{residency: 30s}",
            f'21: residency: must be at least residency_page, which is 60s by default (found "30s"); {STAYS}',
        ),
        (
            "{hit_ratio: 0.95}",
            f"21: hit_ratio: must be at most hit_ratio_target, which is 0.9 by default (found 0.95); {TARGET}",
        ),
        (
            "{swap_rate: 0}",
            "21: swap_rate: must be above 0 (found 0); a pod without swaps would raise the alert; healthy is below 0.1",
        ),
        (
            "{swap_rate_broken: 0}",
            "28: swap_rate_broken: must be above 0 (found 0); a pod without swaps would page; it is 1 by default",
        ),
        (
            "{error_ratio: 0}",
            "23: error_ratio: must be above 0 (found 0); one failure of a million would page; it is 0.01 by default",
        ),
        (
            "{active_per_slot: 0}",
            f"27: active_per_slot: must be above 0 (found 0); the first request would raise the alert; {ACTIVE}",
        ),
        (
            "{useful_share: 1.0}",
            f"24: useful_share: must be a share below 1 (found 1.0); every pod {BUSY}",
        ),
    ],
)
def test_bounds_that_make_no_sense_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(f"alerts: {text}")
    column, rest = problem.split(": ", 1)
    assert [str(each) for each in raised.value.problems] == [f"l.yaml:2:{column}: alerts.{rest}"]


def test_bounds_may_be_equal() -> None:
    alerts = settings("alerts: {swap_rate: 1, residency: 60s, hit_ratio: 0.9}").alerts
    assert (alerts.swap_rate, alerts.residency, alerts.hit_ratio) == (1.0, 60.0, 0.9)


@pytest.mark.parametrize("promise", ["0s", "2h"])
def test_promises_that_nothing_measures_are_refused(promise: str) -> None:
    with pytest.raises(ConfigError, match=r"l\.yaml:2:20: slo\.latency_p95: must be .*between"):
        settings(f"slo: {{latency_p95: {promise}}}")


def test_first_tokens_are_promised_only_where_they_are_looked_at() -> None:
    with pytest.raises(ConfigError, match=r"l\.yaml:2:17: slo\.ttft_p95: is not measured while server\.observe is he"):
        settings("slo: {ttft_p95: 1s}")
    assert settings("slo: {ttft_p95: 1s}\nserver: {observe: bodies}").slo.ttft_p95 == 1.0
