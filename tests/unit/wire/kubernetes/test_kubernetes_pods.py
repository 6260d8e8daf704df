"""Pods as endpoints."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from objects_kit import JSON

from lorapick.model.pods import Engine, Pod, PodLimits, Role
from lorapick.wire.kubernetes.objects import ObjectError, rfc3339
from lorapick.wire.kubernetes.pods import GRACE_SLACK, Defaults, endpoints, slim
from lorapick.wire.kubernetes.pool import Pool

POOL = Pool(name="p", selector={"app": "vllm"}, ports=(8000, 8001))
DEFAULTS = Defaults(base_model="llama", limits=PodLimits(max_loras=4, max_cpu_loras=16))
NOW = 1_800_000_000.0


def pod(*, ip="10.0.0.1", ready="True", labels=None, annotations=None, **metadata):
    return {
        "metadata": {"name": "a", "labels": labels or {}, "annotations": annotations or {}, **metadata},
        "spec": {"nodeName": "n1", "containers": [{"image": "large"}]},
        "status": {"podIP": ip, "phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }


def read(item, *, before=None, pool=POOL):
    return endpoints(item, pool, defaults=DEFAULTS, now=NOW, before=before)


def test_one_endpoint_for_each_port():
    found = read(pod(labels={"app": "vllm", "topology.kubernetes.io/zone": "west"}))
    assert found.problems == ()
    first, second = found.pods
    assert (first.name, first.address, second.name, second.address) == (
        "a-rank-0",
        "10.0.0.1:8000",
        "a-rank-1",
        "10.0.0.1:8001",
    )
    assert first.zone == "west"
    assert first.labels["kubernetes.io/hostname"] == "n1"
    assert (first.base_model, first.role, first.engine, first.draining) == ("llama", Role.BOTH, Engine.VLLM, False)


@pytest.mark.parametrize("ip", [None, "", "pending", 7])
def test_without_an_address_there_is_no_endpoint(ip):
    assert read(pod(ip=ip)).pods == ()


def test_ready_counts_and_not_the_phase():
    assert read(pod(ready="False")).pods == ()
    assert read(pod(ready="Unknown")).pods == ()
    item = pod()
    item["status"]["phase"] = "Pending"
    assert len(read(item).pods) == 2
    item["status"]["conditions"] = None
    assert read(item).pods == ()


@pytest.mark.parametrize(
    ("value", "ports", "problems"),
    [
        ("8001", [8001], 0),
        (" 8000 , 8001,", [8000, 8001], 0),
        ("8001,9999", [8001], 0),
        ("8001,x", [8001], 1),
        ("9999", [], 1),
        ("", [], 1),
        ("٣", [], 2),
    ],
)
@pytest.mark.parametrize("name", ["llm-d.ai/active-ports", "inference.networking.k8s.io/active-ports"])
def test_active_ports(value, ports, problems, name):
    found = read(pod(annotations={name: value}))
    assert [int(each.address.rpartition(":")[2]) for each in found.pods] == ports
    assert len(found.problems) == problems
    assert all(name in text for text in found.problems)


def test_the_newer_name_of_an_annotation_counts():
    both = {"llm-d.ai/active-ports": "8000", "inference.networking.k8s.io/active-ports": "8001"}
    assert [each.name for each in read(pod(annotations=both)).pods] == ["a-rank-0"]


@pytest.mark.parametrize(
    ("labels", "engine", "role", "problems"),
    [
        ({"llm-d.ai/engine-type": "sglang"}, Engine.SGLANG, Role.BOTH, 0),
        ({"inference.networking.k8s.io/engine-type": "trtllm-serve"}, Engine.TRTLLM, Role.BOTH, 0),
        ({"llm-d.ai/engine-type": "triton-tensorrt-llm"}, Engine.TRITON, Role.BOTH, 0),
        ({"llm-d.ai/engine-type": "triton"}, Engine.TRITON, Role.BOTH, 0),
        ({"llm-d.ai/engine-type": "mystery"}, Engine.VLLM, Role.BOTH, 1),
        ({"llm-d.ai/role": "prefill"}, Engine.VLLM, Role.PREFILL, 0),
        ({"llm-d.ai/role": "decode"}, Engine.VLLM, Role.DECODE, 0),
        ({"llm-d.ai/role": "cook"}, Engine.VLLM, Role.BOTH, 1),
    ],
)
def test_labels_of_llm_d(labels, engine, role, problems):
    found = read(pod(labels=labels))
    assert (found.pods[0].engine, found.pods[0].role, len(found.problems)) == (engine, role, problems)


def test_who_only_encodes_gets_no_requests():
    assert read(pod(labels={"llm-d.ai/role": "encode"})).pods == ()


def test_annotations_of_ours():
    found = read(
        pod(
            annotations={
                "lorapick.dev/max-loras": "8",
                "lorapick.dev/max-cpu-loras": "32",
                "lorapick.dev/max-queue": "9",
                "lorapick.dev/base-model": "qwen",
                "lorapick.dev/eviction": "fifo",
                "lorapick.dev/kv-events-port": "5557",
                "lorapick.dev/dcgm-url": "http://10.0.0.1:9400/metrics",
            }
        )
    )
    assert found.problems == ()
    first, second = found.pods
    assert (first.limits.max_loras, first.limits.max_cpu_loras, first.limits.max_queue) == (8, 32, 9)
    assert (first.base_model, first.eviction, first.dcgm_url) == ("qwen", "fifo", "http://10.0.0.1:9400/metrics")
    assert (first.kv_events, second.kv_events) == ("tcp://10.0.0.1:5557", "tcp://10.0.0.1:5558")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("max-loras", "0"),
        ("max-loras", "-1"),
        ("max-loras", "1e3"),
        ("max-queue", "99999999999999"),
        ("eviction", "random"),
        ("kv-events-port", "tcp://*:5557"),
        ("dcgm-url", "10.0.0.1:9400"),
        ("max-cpu-loras", "2"),
    ],
)
def test_what_cannot_be_read_is_told_and_left_out(annotation, value):
    found = read(pod(annotations={f"lorapick.dev/{annotation}": value}))
    assert len(found.pods) == 2
    (problem,) = found.problems
    assert problem.startswith(f"annotation lorapick.dev/{annotation}: must be ")
    assert repr(value) in problem


def test_what_cannot_be_read_stays_as_it_was():
    known = Pod(name="a-rank-0", address="10.0.0.1:8000", limits=PodLimits(max_loras=9, max_cpu_loras=20, max_queue=3))
    found = read(pod(annotations={"lorapick.dev/max-loras": "x"}), before={known.name: known})
    assert found.pods[0].limits.max_loras == 9
    assert found.pods[0].limits.max_queue == DEFAULTS.limits.max_queue


def test_who_is_being_deleted_drains_until_the_grace_period_is_over():
    def at(seconds):
        return read(pod(deletionTimestamp=rfc3339(NOW + seconds))).pods

    assert [each.draining for each in at(30)] == [True, True]
    assert [each.draining for each in at(-GRACE_SLACK + 1)] == [True, True]
    assert at(-GRACE_SLACK - 1) == ()
    assert [each.draining for each in read(pod(deletionTimestamp="soon")).pods] == [True, True]
    assert read(pod(deletionTimestamp=rfc3339(NOW + 30), ready="False")).pods == ()


def test_a_slim_pod_says_the_same():
    item = pod(labels={"app": "vllm"}, annotations={"lorapick.dev/max-loras": "8"}, managedFields=[{"large": 1}])
    small = slim(item)
    assert read(small) == read(item)
    assert "managedFields" not in small["metadata"]
    assert "containers" not in small["spec"]


TEXTS = st.sampled_from(["", "8000", "8001,8000", "-1", "vllm", "prefill", "x" * 300, "1" * 400, "\x00", "²"])
KEYS = st.sampled_from(
    [
        "llm-d.ai/active-ports",
        "llm-d.ai/role",
        "llm-d.ai/engine-type",
        *(f"lorapick.dev/{word}" for word in ("max-loras", "max-cpu-loras", "kv-events-port", "dcgm-url", "eviction")),
    ]
)


@settings(max_examples=30)
@given(st.dictionaries(KEYS, TEXTS | JSON), st.dictionaries(KEYS, TEXTS | JSON), JSON, JSON)
def test_any_pod_is_endpoints_that_can_be(annotations, labels, status, deletion):
    item = pod(labels=labels, annotations=annotations, deletionTimestamp=deletion)
    for each in (item, {**item, "status": status}, slim({**item, "status": status})):
        for found in read(each).pods:
            assert found.limits.max_cpu_loras >= found.limits.max_loras >= 1
            assert found.address in ("10.0.0.1:8000", "10.0.0.1:8001")


@settings(max_examples=30)
@given(JSON)
def test_anything_is_endpoints_or_an_error(value):
    for item in ({"metadata": value}, {"metadata": {"name": "x", "labels": value, "annotations": value}}):
        try:
            assert read(item).pods == ()
            slim(item)
        except ObjectError as error:
            assert error.field == "metadata.name"  # noqa: PT017 - every other error is one of this test
