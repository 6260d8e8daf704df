"""The page of an emulated pod, read back by the scraper's own reader."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from lorapick.model.pods import PodLimits, PodReport
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, PodConfig, PodRequest, PodStats
from lorapick.wire import trtllm_page
from lorapick.wire.engines import trtllm

CONFIG = PodConfig(limits=PodLimits(max_loras=3), kv_blocks=50, block_size=16, max_model_len=400)


def read(stats: PodStats) -> PodReport:
    class Page(Collector):
        def collect(self) -> Iterable[Metric]:
            return trtllm_page.families("m", config=CONFIG, stats=stats)

    registry = CollectorRegistry()
    registry.register(Page())
    return trtllm.parse(generate_latest(registry))


def test_the_scraper_reads_what_the_pod_knows() -> None:
    engine = PodEngine(CONFIG, (AdapterSpec(name="ad0"),), now=0.0)
    for name in "rs":
        engine.submit(PodRequest(id=name, adapter="ad0", prompt_tokens=300, output_tokens=100), 0.0)
    stats = engine.stats(1.0)
    report = read(stats)
    assert (report.running, report.waiting) == (stats.running, stats.waiting)
    assert report.kv_usage == stats.kv_usage > 0
    assert (report.block_size, report.gpu_blocks, report.max_loras, report.doubts) == (16, 50, None, ())


def test_before_its_first_step_it_counts_nothing() -> None:
    assert read(PodEngine(CONFIG, (), now=0.0).stats(1.0)) == PodReport()
