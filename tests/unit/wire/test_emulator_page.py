"""The families of an emulated pod, read back by the scraper's own reader."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from lorapick.model.pods import PodLimits
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, PodConfig, PodRequest, PodStats, SwapMode
from lorapick.wire.emulator_page import Truths, families, memory_pressure
from lorapick.wire.engines.readings import Readings


def worked(config: PodConfig) -> PodStats:
    """Statistics of a pod that loaded one adapter and is in the middle of an answer."""
    engine = PodEngine(config, (AdapterSpec(name="ad0"),), now=0.0)
    request = PodRequest(id="r", adapter="ad0", prompt_tokens=1000, output_tokens=500)
    engine.submit(request, 1.0)
    engine.advance(3.0)
    return engine.stats(3.0)


def page(truths: Truths) -> bytes:
    class Page(Collector):
        def collect(self):
            return families(truths)

    registry = CollectorRegistry()
    registry.register(Page())
    return generate_latest(registry)


def sample(text: bytes, family: str, **labels: str) -> float:
    (value,) = [s.value for s in Readings(text, [family]).samples(family) if labels.items() <= s.labels().items()]
    return value


def test_counts_and_times_are_the_model_s_in_real_seconds() -> None:
    stats = worked(PodConfig())
    text = page(Truths(config=PodConfig(), stats=stats, second=0.1))
    assert sample(text, "lorapick_pod_swaps_total") == 1
    assert sample(text, "lorapick_pod_hits_total") == 0
    assert sample(text, "lorapick_pod_misses_total") == 1
    assert sample(text, "lorapick_pod_seconds_total", phase="idle") == pytest.approx(0.1)
    assert sample(text, "lorapick_pod_seconds_total", phase="decode") == pytest.approx(0.1 * stats.time.decode)
    assert 0 < sample(text, "lorapick_pod_useful_time_ratio") < 1


def test_unknown_is_no_sample() -> None:
    idle = PodEngine(PodConfig(), now=0.0).stats(5.0)
    read = Readings(page(Truths(config=PodConfig(), stats=idle)), ["lorapick_pod_useful_time_ratio"])
    assert read.declared("lorapick_pod_useful_time_ratio") and not read.samples("lorapick_pod_useful_time_ratio")
    assert read.emulated() == (None, None)


def test_the_scraper_reads_utilisation_and_pressure() -> None:
    config = PodConfig(mode=SwapMode.DRAIN, limits=PodLimits(max_loras=4))
    stats = worked(config)
    text = page(Truths(config=config, stats=stats, gpu_utilization=0.75))
    expected = 0.5 + 0.375 * stats.kv_usage + 0.125 / 4
    assert Readings(text, []).emulated() == (0.75, pytest.approx(expected))


def test_pressure_is_told_in_drain_mode_only() -> None:
    assert memory_pressure(PodConfig(), kv_usage=1.0, slots_used=4) is None
