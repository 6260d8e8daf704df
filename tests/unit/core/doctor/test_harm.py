"""What users feel: each check beyond its bound, and at it."""

from pictures_kit import checks, findings, healthy, pod, pod_signals

from lorapick.core.doctor.findings import Urgency
from lorapick.core.doctor.harm import harms
from lorapick.core.doctor.picture import AlertPicture, Picture
from lorapick.model.settings import SloSettings


def test_latency_is_held_to_what_was_promised():
    found = findings(healthy(fleet={"latency_p95": 0.8}))["latency"]
    assert (found.urgency, found.what) == (
        Urgency.PAGE,
        "users wait: answers take 800 ms at P95, and 500 ms was promised",
    )
    assert checks(healthy(fleet={"latency_p95": 0.5})) == []
    assert checks(healthy(fleet={"latency_p95": 9.0}, slo=SloSettings())) == []
    assert checks(healthy(fleet={"ttft_p95": 2.0}, slo=SloSettings(ttft_p95=1.0))) == ["ttft"]


def test_errors_are_a_page():
    found = findings(healthy(fleet={"error_ratio": 0.02}))["errors"]
    assert (found.urgency, found.what) == (Urgency.PAGE, "2 % of the requests fail or are refused")
    assert checks(healthy(fleet={"error_ratio": 0.01})) == []


def test_errors_are_told_with_their_reasons_and_where_to_find_them():
    found = findings(healthy(fleet={"error_ratio": 0.11}, refused={"deadline": 2, "queue_full": 31}))["errors"]
    assert found.arithmetic[1] == "refused in the last minute: 31 queue_full, 2 deadline"
    assert "`lorapick explain --refused`" in found.remedies[0].action


def test_useful_time_harms_nobody_while_everything_is_young_or_idle():
    wasted = {"useful_share": 0.004}
    assert harms(healthy(fleet=wasted)) == ("useful time 0.4 % < 50 %",)
    assert harms(healthy(fleet=wasted, watched=4.0)) == ()
    idle = [pod(number, gpu_utilization=0.0) for number in range(8)]
    assert harms(healthy(fleet=wasted, pod_rows=idle)) == ()
    unknown = [pod(number, gpu_utilization=None) for number in range(8)]
    assert harms(healthy(fleet={**wasted, "requests_per_second": 0.0}, pod_rows=unknown)) == ()


def test_full_queues_are_a_page_from_half_of_the_pods_on():
    def full(count):
        return healthy(
            pods=[pod_signals(number, queue_critical=number < count) for number in range(8)],
            fleet={"critical_queues": count},
        )

    assert findings(full(4))["critical_queues"].urgency is Urgency.PAGE
    assert findings(full(3))["critical_queues"].urgency is Urgency.WARN
    assert checks(full(0)) == []


def test_alerts_of_the_core_are_told_with_their_facts():
    convoy = AlertPicture(
        name="convoy",
        facts={"pods": "pod-1", "count": 1, "most": 1, "waiting": 1, "waiting_at_pods": 0, "adapters": "a1"},
    )
    found = findings(healthy(alerts=(convoy, AlertPicture(name="queues", facts={"waiting": 900.0}))))
    assert found["convoy"].arithmetic == (
        "1 pod load of at most 1: pod-1",
        "what is loaded: a1",
        "waiting: 1 request at the picker, 0 requests at pods",
    )
    assert not any("raise" in remedy.action for remedy in found["convoy"].remedies)
    assert found["queues"].arithmetic == ("waiting at the picker: 900",)


def test_pods_short_of_memory_are_named():
    rows = [pod(0, pressure="hard", kv_usage=0.92), pod(1, pressure="soft"), *map(pod, range(2, 8))]
    found = findings(healthy(pod_rows=rows))["pressure"]
    assert (found.pods, found.arithmetic) == (("pod-0",), ("pod-0: KV 92 %, hard",))


def test_pods_that_take_nothing_are_told_with_the_reason():
    rows = [pod(0, ready=False, reason="stale", last_error="refused"), *map(pod, range(1, 8))]
    found = findings(healthy(pod_rows=rows))["not_ready"]
    assert found.what == "1 of 8 pods take no requests (1 stale): pod-0"
    assert found.urgency is Urgency.WARN
    everything = [pod(number, ready=False, reason="draining") for number in range(8)]
    assert findings(healthy(pod_rows=everything))["not_ready"].urgency is Urgency.PAGE


def test_old_news_of_a_pod_are_told():
    rows = [pod(0, scrape_age=8.0), *map(pod, range(1, 8))]
    assert findings(healthy(pod_rows=rows))["stale"].arithmetic == ("pod-0: 8 s > 5 s",)
    assert checks(healthy(pod_rows=[pod(0, scrape_age=5.0), *map(pod, range(1, 8))])) == []


def test_harm_is_every_reason():
    harmed = {"latency_p95": 2.0, "error_ratio": 0.5, "useful_share": 0.1, "critical_queues": 8, "ttft_p95": 2.0}
    assert len(harms(healthy(fleet=harmed, slo=SloSettings(latency_p95=0.5, ttft_p95=0.5)))) == 5
    assert harms(healthy()) == ()
    assert harms(Picture()) == ()
