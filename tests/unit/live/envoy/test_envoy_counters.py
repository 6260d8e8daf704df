import msgspec
import pytest

from lorapick.live.envoy.counters import admin_get, counters_of, read_counters

PAGE = b"""{"stats": [
  {"name": "http.gateway.downstream_rq_total", "value": 12},
  {"name": "http.gateway.downstream_rq_2xx", "value": 11},
  {"name": "http.gateway.ext_proc.picker.failure_mode_allowed", "value": 4},
  {"name": "cluster.pods.upstream_rq_total", "value": 13},
  {"name": "cluster.pods.upstream_rq_retry", "value": 2},
  {"histograms": {"supported_quantiles": [0.0]}}
]}"""


def test_counters_are_found_and_unmoved_ones_are_zero():
    counters = counters_of(PAGE)
    assert (counters.requests, counters.answers_2xx, counters.without_picker) == (12, 11, 4)
    assert (counters.pod_requests, counters.retries, counters.connect_failures) == (13, 2, 0)


def test_an_envoy_without_our_gateway_and_picker_says_nothing():
    assert counters_of(b'{"stats": [{"name": "http.other.downstream_rq_total", "value": 12}]}') is None
    assert counters_of(b'{"stats": [{"name": "http.gateway.downstream_rq_total", "value": 12}]}') is None


def test_another_page_is_refused():
    with pytest.raises(msgspec.DecodeError):
        counters_of(b"<html>")


async def test_nobody_there_is_none(tmp_path):
    assert await admin_get(f"unix:{tmp_path}/no.sock", "/ready") == (None, b"")
    assert await read_counters(f"unix:{tmp_path}/no.sock") is None
