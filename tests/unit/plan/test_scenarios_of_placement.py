"""The scenarios of loading on purpose, in small: with it and without."""

from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.metrics import METRICS
from lorapick.sim.run import Options, run

WITH, WITHOUT = ({"settings.placement.enabled": word} for word in ("true", "false"))


def played(name, overrides, *, check_every=200):
    scenario = load_scenario(name, overrides=overrides)
    return run(scenario, options=Options(bounds=False, check_every=check_every))


def value(name, measures):
    return METRICS[name].of(measures)


MORNING = {
    "run": '{date: "2026-03-03", timezone: America/New_York, from: "06:50", for: 80m, warm_up: 5m, window: 30s}',
    "arrivals": "[{name: legal, adapters: {top: 12}, rate: 0.5/s, start: 70m, sessions: {turns: 12, think: 40s},"
    " tokens: {prompt: [150, 350], output: [20, 60]}}]",
    "phases": "[]",
    "periods": "[]",
    "in_periods": "[swaps]",
    "expect": "[]",
}


def test_the_first_queries_of_a_day_find_their_adapters():
    """[R3.5] Without the night: pods that have just begun have no legal adapter either."""
    cold, warm = (played("legal-12", MORNING | each).whole for each in (WITHOUT, WITH))
    assert 10 <= cold.first_ttft.count == warm.first_ttft.count
    assert 1.0 < cold.first_ttft.mean < 1.3
    assert warm.first_ttft.most < 0.180
    assert warm.commanded == {"schedule": 12} and not cold.commanded
    assert value("cold_starts", warm) == 0 < value("cold_starts", cold)


def test_no_day_off_is_preloaded():
    saturday = {**MORNING, "run": MORNING["run"].replace("03-03", "03-07")}
    assert played("legal-12", saturday | WITH).whole.commanded == {}


def test_the_first_call_of_a_pipeline_preloads_the_followers():
    """[R3.7]"""
    brief = {"run": "{for: 80m, warm_up: 5m, window: 5m}"}
    without, grouped = (played("pipeline", brief | each) for each in (WITHOUT, WITH))
    before, after = (next(row for row in each.parts if row.part == "extractors") for each in (without, grouped))
    assert before.arrivals == after.arrivals > 10
    assert after.cold < before.cold / 3
    assert after.ttft.p50 < before.ttft.p50
    assert grouped.whole.commanded.keys() == {"group"}


def test_a_rolling_upgrade_keeps_the_hit_ratio_and_loses_nothing():
    brief = {
        "run": "{for: 5m30s, warm_up: 50s, window: 5s}",
        "phases": "[{at: 70s, change: {upgrade: {every: 30s, down: 15s, drain: 10s}}}]",
        "periods": "[{name: before, from: 50s, to: 70s}, {name: upgrade, from: 70s, to: 310s}]",
        "arrivals.rate": "12/s",
    }
    report = played("rolling-upgrade", brief | WITH)
    before, during = report.periods["before"], report.periods["upgrade"]
    assert value("hit_ratio", during) > value("hit_ratio", before) - 0.05
    assert value("lost_share", report.whole) == 0
    # All eight were away in turn.
    assert 8 * 15.0 <= report.whole.gpu.down <= 8 * 16.0
    assert all(row.gpu.down >= 15.0 for row in report.pods)


PINNED = {
    "run": "{for: 150s, warm_up: 30s, window: 5s}",
    "periods": "[]",
    "in_periods": "[swaps]",
    "expect": "[]",
    "arrivals.rate": "8/s",
}


def test_pins_come_back_after_a_restart():
    """[R3.4] And no popular adapter waits for a load."""
    restart = {"phases": "[{at: 60s, change: {restart: {pod: pod-03, down: 10s}}}]"}
    report = played("pins", PINNED | restart | WITH)
    popular = report.parts[0]
    assert (popular.part, popular.cold) == ("popular", 0) and popular.served > 400
    assert report.whole.commanded["pin"] == 8
    # At the begin eight pins on each of four pods, of which two may load at a time.
    assert report.pins_missing < 4 * 8 / 2 * 2.2


def test_pins_are_reached_though_loads_fail():
    """30 % of all loads fail: a pin is away for as many attempts as it needs."""
    failing = {"phases": "[{at: 0s, change: {fail_loads: {share: 0.3}}}]"}
    report = played("pins", PINNED | failing | WITH)
    assert report.failed_loads > 10
    assert report.pins_missing < 60.0
