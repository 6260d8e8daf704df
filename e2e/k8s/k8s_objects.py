"""Objects of the tests: pools, pods, what a kubelet would write of them. In: names, addresses. Out: dicts, calls."""

from typing import Any

from k8s_api import Api, Object

POOL = "llama"
LABELS = {"app": "llama"}


def pool(name: str = POOL, *, ports: tuple[int, ...] = (8000,), **more: Any) -> Object:
    """Answer an InferencePool that selects `LABELS`."""
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "targetPorts": [{"number": port} for port in ports],
            "endpointPickerRef": {"name": "lorapick", "port": {"number": 9002}},
            **more,
        },
    }


def pod(name: str, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Object:
    """Answer a pod on a node: one without is gone at once when it is deleted, without a grace period."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**LABELS, **(labels or {})}, "annotations": annotations or {}},
        "spec": {
            "nodeName": "node-a",
            "containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.32.0"}],
            "terminationGracePeriodSeconds": 60,
        },
    }


def begin_pod(api: Api, name: str, *, address: str, **more: Any) -> Object:
    """Create a pod and say that it is ready."""
    api.create("pods", pod(name, **more))
    return set_ready(api, name, address=address)


def set_ready(api: Api, name: str, *, address: str, ready: bool = True) -> Object:
    """Write of a pod what its kubelet would: its address, whether it is ready."""
    said = "True" if ready else "False"
    conditions = [{"type": kind, "status": said} for kind in ("Ready", "ContainersReady")]
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
    return api.merge("pods", f"{name}/status", {"status": status})
