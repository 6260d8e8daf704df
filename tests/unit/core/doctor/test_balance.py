"""Pods that are not like the others."""

from pictures_kit import checks, findings, healthy, pod, pod_signals


def rows(**first):
    return [pod(0, **first), *(pod(number) for number in range(1, 8))]


def test_a_slow_pod_holds_its_requests_longer():
    found = findings(healthy(pod_rows=rows(in_flight=30, served_per_second=4.0)))["slow_pod"]
    assert found.what == "pod-0 is slower than the others: a request is there for 7.5 s, elsewhere for 1.67 s"
    assert found.arithmetic[0] == "30 requests there / 4 served per second"


def test_a_pod_that_is_busy_and_as_fast_is_not_slow():
    assert checks(healthy(pod_rows=rows(in_flight=20, served_per_second=12.0))) == []
    assert checks(healthy(pod_rows=rows(in_flight=24, served_per_second=6.0))) == []
    assert checks(healthy(pod_rows=rows(in_flight=30, served_per_second=0.2))) == []
    assert checks(healthy(pod_rows=rows(in_flight=30, served_per_second=None))) == []


def test_with_two_pods_nobody_is_different():
    assert checks(healthy(pod_rows=[pod(0, in_flight=50), pod(1)])) == []


def test_a_pod_that_alone_swaps_is_named():
    signals = [pod_signals(0, swaps_per_second=2.0), *map(pod_signals, range(1, 8))]
    assert findings(healthy(pods=signals))["swapping_pod"].pods == ("pod-0",)
    every = [pod_signals(number, swaps_per_second=2.0) for number in range(8)]
    assert "swapping_pod" not in checks(healthy(pods=every))


def test_a_hot_pod_has_a_queue_too():
    found = findings(healthy(pod_rows=rows(served_per_second=20.0, queue_depth=6.0, in_flight=30)))["hot_pod"]
    assert found.arithmetic == ("20/s against a median of 6/s", "6 requests wait there")
    assert checks(healthy(pod_rows=rows(served_per_second=20.0, in_flight=30))) == []
    assert checks(healthy(pod_rows=rows(served_per_second=14.0, queue_depth=6.0, in_flight=20))) == []
