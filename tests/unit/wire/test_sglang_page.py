"""The page of an emulated SGLang pod, read back by the scraper's own reader."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from lorapick.model.pods import PodLimits
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, PodConfig, PodRequest
from lorapick.wire.engines import sglang
from lorapick.wire.sglang_page import families


def test_the_scraper_reads_what_the_pod_knows() -> None:
    config = PodConfig(limits=PodLimits(max_loras=3), kv_blocks=50, block_size=16, max_model_len=400)
    engine = PodEngine(config, (AdapterSpec(name="ad0"),), now=0.0)
    for name in "rs":
        engine.submit(PodRequest(id=name, adapter="ad0", prompt_tokens=300, output_tokens=100), 0.0)
    stats = engine.stats(1.0)

    class Page(Collector):
        def collect(self):
            return families("m", config=config, stats=stats)

    registry = CollectorRegistry()
    registry.register(Page())
    report = sglang.parse(generate_latest(registry))
    assert (report.running, report.waiting, report.preemptions) == (stats.running, stats.waiting, 0)
    assert report.kv_usage == stats.kv_usage > 0
    assert (report.max_loras, report.block_size, report.gpu_blocks, report.doubts) == (3, 16, 50, ())
