"""The page of trtllm-serve, from its first moment on."""

import pytest

from lorapick.model.pods import PodReport
from lorapick.wire.engines import trtllm
from lorapick.wire.exposition import ExpositionError


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"\n",
        b'# TYPE trtllm_model_config_info gauge\ntrtllm_model_config_info{model="m"} 1.0\n',
        b"# TYPE trtllm_num_requests_running gauge\n# TYPE trtllm_num_requests_waiting gauge\n",
    ],
)
def test_a_pod_that_nobody_has_asked_anything_yet_waits(page: bytes) -> None:
    assert trtllm.parse(page) == PodReport()


@pytest.mark.parametrize("page", [b"[]", b'[{"iter": 1, "numActiveRequests": 0}]', b"<html>", b"vllm:x 1\n"])
def test_another_page_is_refused_and_the_right_one_named(page: bytes) -> None:
    with pytest.raises(ExpositionError, match="at /prometheus/metrics, with return_perf_metrics"):
        trtllm.parse(page)


def test_figures_that_cannot_be_true_are_doubts() -> None:
    report = trtllm.parse(b"trtllm_num_requests_running -1\ntrtllm_kv_cache_utilization 7\n")
    assert (report.running, report.kv_usage, len(report.doubts)) == (None, None, 2)
