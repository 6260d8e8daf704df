"""SGLang's page over its versions: both spellings of names, ranks, priorities, and three ways to tell the cache."""

import pytest

from lorapick.model.pods import PodReport
from lorapick.wire.engines import sglang
from lorapick.wire.exposition import ExpositionError

PAGE = """
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 3.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 1.0
sglang:token_usage{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.5
sglang:lora_pool_slots_total{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 9.0
sglang:num_retracted_requests_total{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 2.0
"""
REPORT = PodReport(waiting=1, running=3, kv_usage=0.5, max_loras=8, preemptions=2)


@pytest.mark.parametrize("prefix", ["sglang:", "sglang_"])
def test_both_spellings_of_names(prefix: str) -> None:
    assert sglang.parse(PAGE.replace("sglang:", prefix).encode()) == REPORT


def test_the_colon_counts_where_a_page_has_both() -> None:
    assert sglang.parse(f"{PAGE}sglang_num_running_reqs 99\nsglang_num_queue_reqs 99\n".encode()) == REPORT


def test_priorities_are_not_counted_twice() -> None:
    page = """
sglang:num_running_reqs{dp_rank="0",priority="",tp_rank="0"} 5
sglang:num_running_reqs{dp_rank="0",priority="1",tp_rank="0"} 2
sglang:num_running_reqs{dp_rank="0",priority="9",tp_rank="0"} 3
sglang:num_running_reqs{dp_rank="1",priority="",tp_rank="0"} 1
sglang:num_running_reqs{dp_rank="1",priority="1",tp_rank="0"} 1
sglang:num_queue_reqs{dp_rank="0",priority="1",tp_rank="0"} 4
sglang:num_queue_reqs{dp_rank="0",priority="9",tp_rank="0"} 2
"""
    # The second family has no sum: then its parts are one.
    assert sglang.parse(page.encode()) == PodReport(running=6, waiting=6)


@pytest.mark.parametrize(
    ("more", "block", "blocks"),
    [
        ('sglang:cache_config_info{page_size="64",num_pages="1000"} 1\n', 64, 1000),
        ("sglang:page_size 16\nsglang:num_pages 500\n", 16, 500),
        ("sglang:page_size 16\nsglang:max_total_num_tokens 8000\n", 16, 500),
        ("sglang:max_total_num_tokens 8000\n", None, None),
        ("sglang:page_size 0\nsglang:max_total_num_tokens 8000\n", 0, None),
        ('sglang:cache_config_info{page_size="None",num_pages="x"} 1\n', None, None),
    ],
)
def test_three_ways_to_tell_the_cache(more: str, block: int | None, blocks: int | None) -> None:
    report = sglang.parse((PAGE + more).encode())
    assert (report.block_size, report.gpu_blocks) == (block, blocks)


def test_slots_count_one_for_the_base_model() -> None:
    for slots, adapters in ((9, 8), (2, 1), (1, 1)):
        page = f"sglang:num_running_reqs 0\nsglang:lora_pool_slots_total {slots}\n"
        assert sglang.parse(page.encode()).max_loras == adapters


def test_a_page_without_metrics_names_the_flag() -> None:
    with pytest.raises(ExpositionError, match="--enable-metrics"):
        sglang.parse(b"python_info 1\n")
