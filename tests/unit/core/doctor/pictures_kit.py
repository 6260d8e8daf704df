"""Pictures for the doctor: a fleet that is well, to be changed by each test in what it is about."""

from msgspec.structs import replace

from lorapick.core.doctor.diagnose import diagnose
from lorapick.core.doctor.picture import AdapterPicture, LoadPicture, Picture, PodPicture
from lorapick.model.settings import SloSettings
from lorapick.model.signals import AdapterSignals, FleetSignals, PodSignals, Signals

PODS, SLOTS, ADAPTERS = 8, 8, 40


def pod(number, **fields):
    plain = {
        "name": f"pod-{number}", "ready": True, "queue_depth": 0.0, "max_queue": 8, "running": 10, "in_flight": 10,
        "served_per_second": 6.0, "gpu_utilization": 0.7, "kv_usage": 0.4, "slots": SLOTS, "cpu_slots": 64,
        "max_rank": 16, "scrape_age": 0.5, "pressure": "none", "kv_blocks": 5000, "block_tokens": 16,
        "base_model": "meta-llama/Llama-3.1-8B-Instruct",
    }  # fmt: skip
    return PodPicture(**{**plain, **fields})


def pod_signals(number, **fields):
    plain = {"swaps_per_second": 0.02, "loads_per_second": 0.02, "evictions_per_second": 0.02, "slots": SLOTS}
    return PodSignals(pod=f"pod-{number}", **{**plain, **fields})


def adapter(number, **fields):
    plain = {
        "name": f"a{number:02}", "declared": True, "rank": 16, "size": 13_631_488, "source": f"/store/a{number:02}",
        "fingerprint": f"f{number}", "pinned": False, "slots": 1, "known_to": PODS, "requests": 100,
    }  # fmt: skip
    return AdapterPicture(**{**plain, **fields})


def adapter_signals(number, **fields):
    plain = {"requests_per_second": 2.0 / (number + 1), "share": 0.2 / (number + 1), "loads": 4, "first_seen": 0.0}
    return AdapterSignals(adapter=f"a{number:02}", **{**plain, **fields})


def fleet_signals(**fields):
    plain = {
        "requests_per_second": 50.0, "swaps_per_second": 0.02, "hit_ratio": 0.97, "mean_residency": 900.0,
        "latency_p95": 0.3, "error_ratio": 0.0, "useful_share": 0.9, "active_adapters": ADAPTERS,
        "slots": PODS * SLOTS, "slots_used": ADAPTERS, "active_per_slot": ADAPTERS / (PODS * SLOTS),
    }  # fmt: skip
    return FleetSignals(**{**plain, **fields})


def healthy(*, fleet=None, pods=None, pod_rows=None, adapters=None, **fields):
    """A fleet in which nothing is wrong; `fleet`: fields of its signals, the others whole rows."""
    plain = {
        "now": 10_000.0, "wall": 10_000.0 + 36_000.0, "watched": 9_000.0, "slo": SloSettings(latency_p95=0.5),
        "stale_after": 5.0, "loads": (LoadPicture(tier="disk", seen=40, at_most=0.9, quickest=0.35),),
        "arrivals": 100_000, "envoy_requests": 100_000,
        "envoy_without_picker": 0, "pins_wanted": 2, "pins_missing": 0, "pins_without_place": 0,
    }  # fmt: skip
    signals = Signals(
        now=10_000.0,
        fleet=fleet_signals(**(fleet or {})),
        pods=tuple(pods if pods is not None else map(pod_signals, range(PODS))),
        adapters=tuple(map(adapter_signals, range(ADAPTERS))),
    )
    rows = tuple(pod_rows if pod_rows is not None else map(pod, range(PODS)))
    files = tuple(adapters if adapters is not None else map(adapter, range(ADAPTERS)))
    return Picture(**{**plain, "signals": signals, "pods": rows, "adapters": files, **fields})


def findings(picture):
    """By the check's name."""
    return {finding.check: finding for finding in diagnose(picture).findings}


def checks(picture):
    return list(findings(picture))


def with_adapter_signals(picture, rows):
    return replace(picture, signals=replace(picture.signals, adapters=tuple(rows)))
