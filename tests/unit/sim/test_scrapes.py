"""What a scrape of a simulated pod says."""

import pytest
from sim_helpers import config

from lorapick.model.pods import LoadedAdapter
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, PodRequest, SwapMode
from lorapick.sim.scrapes import Scrape


def made(*, reports_loaded=False):
    engine = PodEngine(config(slots=2), [AdapterSpec(name=name, size=100_000_000) for name in "xy"], now=0.0)
    return engine, Scrape(started=0.0, registered=("x", "y"), slots=2, reports_loaded=reports_loaded)


def submit(engine, name, adapter, *, now, output=10):
    engine.submit(PodRequest(id=name, adapter=adapter, prompt_tokens=4, output_tokens=output), now)


def test_a_fresh_pod_has_no_series_of_adapters():
    engine, scrape = made()
    report = scrape.report(engine, 0.0)
    assert (report.waiting, report.running, report.in_flight_adapters, report.max_loras) == (0, 0, None, None)
    assert (report.loaded, report.registered, report.process_start) == (None, ("x", "y"), 0.0)
    assert report.gpu_utilization is None
    # The list of models is asked for once.
    assert scrape.report(engine, 1.0).registered is None


def test_busy_time_since_the_last_look_is_utilisation():
    engine, scrape = made()
    scrape.report(engine, 0.0)
    submit(engine, "r", "x", now=0.5)  # 90 ms of load, 100 ms of steps
    assert scrape.report(engine, 1.0).gpu_utilization == pytest.approx(0.19)
    report = scrape.report(engine, 2.0)
    assert report.gpu_utilization == 0.0
    assert (report.in_flight_adapters, report.max_loras) == ((), 2)


def test_who_runs_and_who_waits():
    engine, scrape = made()
    for number in range(10):
        submit(engine, f"r{number}", "x", now=0.0, output=100)
    submit(engine, "late", "y", now=0.2)
    report = scrape.report(engine, 0.5)
    assert (report.running, report.waiting, report.in_flight_adapters) == (8, 3, ("x",))
    assert report.kv_usage == pytest.approx(engine.stats(0.5).kv_usage)


def test_memory_is_told_in_drain_mode_only():
    engine, scrape = made()
    assert scrape.report(engine, 0.0).memory_pressure == 0.5
    submit(engine, "r", "x", now=0.0)
    kv = engine.stats(0.1).kv_usage
    assert scrape.report(engine, 0.1).memory_pressure == pytest.approx(0.5 + 0.375 * kv + 0.125 / 2)
    inline = PodEngine(config(mode=SwapMode.INLINE), now=0.0)
    assert Scrape(started=0.0, registered=(), slots=1).report(inline, 0.0).memory_pressure is None


def test_an_engine_that_says_what_it_holds():
    engine, scrape = made(reports_loaded=True)
    submit(engine, "r", "y", now=0.0)
    assert scrape.report(engine, 0.5).loaded == (LoadedAdapter(name="y", on_gpu=True),)


def test_a_glance_is_a_part_of_the_statistics():
    engine, _ = made()
    submit(engine, "r", "x", now=0.5)
    submit(engine, "s", "y", now=0.55)
    for now in (0.55, 0.6, 0.65, 0.7, 0.8, 2.0):
        seen, stats = engine.glance(now), engine.stats(now)
        for name in ("running", "waiting", "deferred", "kv_usage", "loads", "preemptions", "in_flight"):
            assert getattr(seen, name) == getattr(stats, name), (now, name)
        assert seen.busy == pytest.approx(now - stats.time.idle)
