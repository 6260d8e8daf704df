"""The picker's metrics: events in, a Prometheus page out."""

import asyncio
import itertools

import aiohttp
import msgspec
import pytest
from metrics_kit import Story
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.metrics import serve_metrics
from lorapick.live.publish import AdapterRow
from lorapick.live.web import BindError
from lorapick.model.effects import Note, Reject
from lorapick.model.events import (
    BodyStarted,
    By,
    Evicted,
    LoadFailed,
    LoadStarted,
    LoadSucceeded,
    PodAppeared,
    PodGone,
    RequestDispatched,
    RequestEnded,
    RequestRefused,
    ResponseStarted,
    Ticked,
)
from lorapick.model.pods import Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.testing.published import ValuesPublished, small_fleet


@pytest.fixture
def story() -> Story:
    return Story()


class TestRequests:
    async def test_outcomes_add_up(self, story: Story) -> None:
        for number, outcome in enumerate([Outcome.SERVED, Outcome.SERVED, Outcome.FAILED, Outcome.ABANDONED]):
            story.arrive(f"r{number}", story.dispatch(f"r{number}", "a"))
            story.tell(RequestEnded, request_id=f"r{number}", outcome=outcome)
        story.arrive("r9", Reject(cause=0, request_id="r9", status=429, reason=Reason.QUEUE_FULL, message="full"))
        samples = await story.samples()
        assert {key: value for key, value in samples.items() if key.startswith("requests_total")} == {
            "requests_total outcome=served reason=none": 2,
            "requests_total outcome=failed reason=none": 1,
            "requests_total outcome=abandoned reason=none": 1,
            "requests_total outcome=rejected reason=queue_full": 1,
        }

    async def test_rejection_is_counted_once_even_if_an_end_follows(self, story: Story) -> None:
        story.arrive("r", Reject(cause=0, request_id="r", status=404, reason=Reason.ADAPTER_UNKNOWN, message="no"))
        story.tell(RequestEnded, request_id="r", outcome=Outcome.REJECTED, status=404)
        samples = await story.samples()
        assert samples["requests_total outcome=rejected reason=adapter_unknown"] == 1

    async def test_refusal_of_a_transport(self, story: Story) -> None:
        story.tell(RequestRefused, reason=Reason.BODY_TOO_LARGE, status=413)
        assert (await story.samples())["requests_total outcome=rejected reason=body_too_large"] == 1

    async def test_base_model_has_its_own_label(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", None, tier=None))
        story.serve("r")
        samples = await story.samples()
        assert samples["picks_total adapter=base tier=none"] == 1
        assert not [key for key in samples if key.startswith(("hits", "loads", "swaps"))]


class TestHits:
    @pytest.mark.parametrize(
        ("tier", "hit"),
        [(Tier.GPU_SERVING, 1), (Tier.GPU_IDLE, 1), (Tier.LOADING, 0), (Tier.CPU, 0), (Tier.DISK, 0)],
    )
    async def test_hit_is_on_the_gpu_when_it_ran(self, story: Story, tier: Tier, hit: int) -> None:
        story.arrive("r", story.dispatch("r", "a", tier=tier))
        story.serve("r")
        samples = await story.samples()
        assert samples[f"picks_total adapter=a tier={tier.word}"] == 1
        assert sum(value for key, value in samples.items() if key.startswith("hits_total")) == hit

    async def test_evicted_before_it_ran_is_no_hit(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", "a"))
        story.t = 1.0
        story.tell(Evicted, pod="p1", adapter="a", tier=Tier.CPU)
        story.serve("r")
        assert not [key for key in await story.samples() if key.startswith("hits_total")]

    async def test_loaded_before_it_was_dispatched_is_a_hit(self, story: Story) -> None:
        story.tell(LoadStarted, pod="p1", adapters=("a",), by=By.CONTROLLER, tier_from=Tier.DISK)
        story.t = 1.0
        story.arrive("r", story.dispatch("r", "a"))
        story.serve("r")
        assert (await story.samples())["hits_total adapter=a tier=gpu_idle"] == 1

    async def test_refused_or_moved_to_a_fallback_is_no_hit(self, story: Story) -> None:
        story.arrive("r1", story.dispatch("r1", "a"))
        story.serve("r1", status=500)
        story.arrive("r2", story.dispatch("r2", "a"))
        story.tell(RequestDispatched, request_id="r2", pod="p2")
        story.serve("r2")
        assert not [key for key in await story.samples() if key.startswith("hits_total")]

    async def test_confirmed_dispatch_stays_a_hit(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", "a"))
        story.tell(RequestDispatched, request_id="r", pod="p1")
        story.serve("r")
        assert (await story.samples())["hits_total adapter=a tier=gpu_idle"] == 1


class TestLoads:
    async def test_dispatch_off_the_gpu_is_a_load_and_a_swap(self, story: Story) -> None:
        story.arrive("r1", story.dispatch("r1", "a", tier=Tier.DISK))
        story.arrive("r2", story.dispatch("r2", "a", tier=Tier.LOADING))
        samples = await story.samples()
        assert samples["loads_total by=inferred from=disk pod=p1"] == 1
        assert samples["swaps_total from=disk pod=p1"] == 1
        assert samples["loads_coalesced_total pod=p1"] == 1

    async def test_engine_that_reports_the_same_load_is_not_counted_twice(self, story: Story) -> None:
        story.arrive("r1", story.dispatch("r1", "a", tier=Tier.CPU))
        story.tell(LoadStarted, pod="p1", adapters=("a", "b"), by=By.ENGINE, tier_from=Tier.CPU)
        story.tell(LoadSucceeded, pod="p1", adapter="a", by=By.ENGINE)
        story.tell(LoadStarted, pod="p1", adapters=("a",), by=By.ENGINE)
        samples = await story.samples()
        assert samples["loads_total by=inferred from=cpu pod=p1"] == 1
        assert samples["loads_total by=engine from=cpu pod=p1"] == 1  # b
        assert samples["loads_total by=engine from=unknown pod=p1"] == 1  # a again

    async def test_commanded_load_is_a_swap_only_while_someone_waits(self, story: Story) -> None:
        story.tell(LoadStarted, pod="p1", adapters=("early",), by=By.CONTROLLER, tier_from=Tier.DISK)
        story.arrive("r", story.hold("r", "late"))
        story.tell(LoadStarted, pod="p1", adapters=("late",), by=By.CONTROLLER, tier_from=Tier.DISK)
        samples = await story.samples()
        assert samples["loads_total by=controller from=disk pod=p1"] == 2
        assert samples["swaps_total from=disk pod=p1"] == 1

    async def test_failures(self, story: Story) -> None:
        said = Note(cause=1, kind="load_failed", facts={"pod": "p1", "adapter": "a", "why": "no such file"})
        story.tell(LoadFailed, said, pod="p1", adapter="a", by=By.ENGINE, why="no such file")
        assert (await story.samples())["load_failures_total pod=p1"] == 1

    async def test_pod_that_went_is_forgotten(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", "a", tier=Tier.DISK))
        story.tell(PodGone, pod="p1")
        story.tell(LoadStarted, pod="p1", adapters=("a",), by=By.ENGINE, tier_from=Tier.DISK)
        assert (await story.samples())["loads_total by=engine from=disk pod=p1"] == 1


class TestHolds:
    async def test_wait_until_dispatch_rejection_or_leaving(self, story: Story) -> None:
        for request_id in ("sent", "refused", "left"):
            story.arrive(request_id, story.hold(request_id, "a"))
        story.t = 0.2
        story.tell(Ticked, story.dispatch("sent", "a", tier=Tier.LOADING))
        story.t = 0.4
        story.tell(Ticked, Reject(cause=0, request_id="refused", status=503, reason=Reason.DEADLINE, message="late"))
        story.t = 0.6
        story.tell(RequestEnded, request_id="left", outcome=Outcome.ABANDONED)
        samples = await story.samples()
        assert samples["hold_seconds_count for=held_for_load"] == 3
        assert samples["hold_seconds_sum for=held_for_load"] == pytest.approx(1.2)
        assert samples["requests_total outcome=rejected reason=deadline"] == 1

    async def test_held_again_is_one_wait_and_one_follower(self, story: Story) -> None:
        story.arrive("r", story.hold("r", "a"))
        story.t = 0.5
        story.tell(Ticked, story.hold("r", "a", follows="p2"))
        story.t = 1.0
        story.tell(Ticked, story.dispatch("r", "a", tier=Tier.LOADING))
        samples = await story.samples()
        assert samples["hold_seconds_sum for=held_for_load"] == 1.0
        assert {key: v for key, v in samples.items() if key.startswith("loads_coalesced")} == {
            "loads_coalesced_total pod=p1": 1
        }


class TestAdapterLabels:
    async def test_rare_ones_share_a_label_and_labels_stay(self) -> None:
        story = Story(adapter_labels=4)
        published = small_fleet()
        published.adapter_rows = [AdapterRow(name=f"a{n}") for n in range(6)]
        story.metrics.show(published)
        numbers = itertools.count()

        def send(adapter: str, times: int) -> None:
            for number in itertools.islice(numbers, times):
                story.arrive(f"r{number}", story.dispatch(f"r{number}", adapter))

        for adapter in ("first", "second", "rare", "popular", "busiest", "third"):
            send(adapter, 1)
        send("popular", 30)
        send("busiest", 40)
        send("third", 25)
        await story.samples()  # labels are given out at scrapes
        for adapter in ("rare", "popular", "busiest", "third"):
            send(adapter, 10)
        picks = {
            key.split()[1]: value for key, value in (await story.samples()).items() if key.startswith("picks_total")
        }
        assert picks == {
            "adapter=first": 1,
            "adapter=second": 1,
            "adapter=popular": 10,
            "adapter=busiest": 10,
            "adapter=other": 4 + 95 + 20,
        }

    async def test_a_name_that_loses_its_label_goes_on_as_other_and_no_counter_falls(self) -> None:
        story = Story(adapter_labels=1)
        published = small_fleet()
        published.adapter_rows = [AdapterRow(name=name) for name in ("old", "new")]
        story.metrics.show(published)
        numbers = itertools.count()
        before: dict[str, float] = {}

        async def minute(adapter: str) -> dict[str, float]:
            for number in itertools.islice(numbers, 10):
                story.arrive(f"r{number}", story.dispatch(f"r{number}", adapter))
                story.serve(f"r{number}")
            published.fleet_now = msgspec.structs.replace(published.fleet_now, now=published.fleet_now.now + 60.0)
            samples = await story.samples()
            counters = {key: value for key, value in samples.items() if "_total " in key or "_count " in key}
            assert not [key for key, value in counters.items() if value < before.get(key, 0.0)]
            before.clear()
            before.update(counters)
            return counters

        await minute("old")
        story.arrive("long", story.dispatch("long", "old"))
        for _ in range(30):
            await minute("new")
        story.serve("long")
        counters = await minute("old")
        labelled = [key for key in counters if "adapter=" in key]
        assert labelled
        assert not [key for key in labelled if "adapter=old" in key]
        assert counters["picks_total adapter=new tier=gpu_idle"] < 300
        assert counters["adapter_latency_seconds_count adapter=other"] >= 11


class TestPerPodAndAdapter:
    async def test_picks_and_hits_by_pod(self, story: Story) -> None:
        story.arrive("r1", story.dispatch("r1", "a"))
        story.serve("r1")
        story.arrive("r2", story.dispatch("r2", "a", tier=Tier.CPU, pod="p2"))
        story.serve("r2")
        samples = await story.samples()
        assert samples["pod_picks_total pod=p1 tier=gpu_idle"] == samples["pod_hits_total pod=p1 tier=gpu_idle"] == 1
        assert samples["pod_picks_total pod=p2 tier=cpu"] == 1
        assert not [key for key in samples if key.startswith("pod_hits_total pod=p2")]

    async def test_a_hit_needs_no_headers_when_nobody_tells_of_any(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", "a"))
        story.tell(RequestEnded, request_id="r", outcome=Outcome.SERVED)
        assert (await story.samples())["hits_total adapter=a tier=gpu_idle"] == 1

    async def test_loads_and_swaps_by_adapter(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", "a", tier=Tier.DISK))
        story.tell(LoadStarted, pod="p2", adapters=("a", "nobody-asked"), by=By.CONTROLLER, tier_from=Tier.CPU)
        samples = await story.samples()
        assert samples["adapter_loads_total adapter=a from=disk"] == samples["adapter_swaps_total adapter=a"] == 1
        assert samples["adapter_loads_total adapter=a from=cpu"] == 1
        assert samples["adapter_loads_total adapter=other from=cpu"] == 1

    async def test_latency_counts_the_wait_and_only_what_was_served(self, story: Story) -> None:
        story.arrive("held", story.hold("held", "a"))
        story.arrive("bad", story.dispatch("bad", "a"))
        story.t = 1.0
        story.tell(Ticked, story.dispatch("held", "a", tier=Tier.LOADING))
        story.t = 3.0
        story.serve("held")
        story.serve("bad", status=500)
        samples = await story.samples()
        assert samples["latency_seconds_sum"] == samples["adapter_latency_seconds_sum adapter=a"] == 3.0
        assert samples["latency_seconds_count"] == samples["adapter_latency_seconds_count adapter=a"] == 1

    async def test_first_bytes(self, story: Story) -> None:
        story.arrive("r", story.dispatch("r", "a"))
        assert "ttft_seconds_count" not in await story.samples(), "nobody looks at bodies, as far as we know"
        story.tell(BodyStarted, request_id="r")
        assert "ttft_seconds_count" not in await story.samples(), "the body of an error, or of nothing that we know"
        story.t = 0.4
        story.tell(ResponseStarted, request_id="r", status=200)
        story.tell(BodyStarted, request_id="r")
        samples = await story.samples()
        assert (samples["ttft_seconds_count"], samples["ttft_seconds_sum"]) == (1, 0.4)

    async def test_who_waits_by_adapter(self, story: Story) -> None:
        story.metrics.show(small_fleet())
        for number in range(3):
            story.arrive(f"r{number}", story.hold(f"r{number}", "a"))
        assert (await story.samples())["adapter_requests_waiting adapter=a"] == 3

    async def test_a_pod_that_went_keeps_its_series_for_an_hour(self, story: Story) -> None:
        published = small_fleet()
        story.metrics.show(published)
        for pod in ("p1", "p2"):
            story.arrive(pod, story.dispatch(pod, "a", tier=Tier.DISK, pod=pod))
            story.serve(pod)
            story.tell(PodGone, pod=pod)
        story.tell(PodAppeared, pod=Pod(name="p2", address="a:1"))
        published.fleet_now = msgspec.structs.replace(published.fleet_now, now=3599.0)
        assert "loads_total by=inferred from=disk pod=p1" in await story.samples()
        published.fleet_now = msgspec.structs.replace(published.fleet_now, now=3601.0)
        kept = {key.split("pod=")[1][:2] for key in await story.samples() if "pod=p" in key and "pod=pod" not in key}
        assert kept == {"p2"}

    async def test_five_thousand_adapters_make_no_more_series_than_fifty(self, story: Story) -> None:
        story.metrics.show(small_fleet())
        for number in range(5000):
            story.t = number / 100
            name = f"a{number}"
            story.arrive(name, story.dispatch(name, name, tier=Tier.DISK))
            story.tell(BodyStarted, request_id=name)
            story.serve(name)
        samples = story.metrics.samples()
        labels = {sample.labels["adapter"] for sample in samples if "adapter" in sample.labels}
        assert len(labels) <= 50 + 2
        assert len(samples) < 5000
        loads = [sample.value for sample in samples if sample.name == "lorapick_adapter_loads_total"]
        assert sum(loads) == 5000


def test_samples_without_an_event_loop_are_those_of_the_page() -> None:
    story = Story()
    story.metrics.show(small_fleet())
    story.arrive("r", story.dispatch("r", "a"))
    story.serve("r")
    names = {family.name for family in story.metrics.families()}
    assert {"lorapick_latency_seconds", "lorapick_ready", "llm_d_epp_request"} < names
    assert not [name for name in names if name.startswith("process_")]
    page, _ = asyncio.run(story.metrics.page())
    for sample in story.metrics.samples():
        assert f"\n{sample.name}".encode() in page


class TestGauges:
    async def test_pods_as_published_and_unknown_is_absent(self, story: Story) -> None:
        story.metrics.show(small_fleet())
        samples = await story.samples()
        assert {key: value for key, value in samples.items() if "pod=pod-02" in key} == {
            "ready pod=pod-02": 1,
            "queue_depth pod=pod-02": 3,
            "in_flight pod=pod-02": 1,
            "slots pod=pod-02": 4,
            "slots_used pod=pod-02": 2,
            "reserved_slots pod=pod-02": 0,
            "prefill_tokens pod=pod-02": 0,
            "loads_in_flight pod=pod-02": 0,
            "scrape_age_seconds pod=pod-02": 0.4,
            "pod_info pod=pod-02 role=both zone=": 1,
        }
        assert {key for key in samples if "pod=pod-07" in key} == {
            "ready pod=pod-07",
            "in_flight pod=pod-07",
            "slots pod=pod-07",
            "reserved_slots pod=pod-07",
            "prefill_tokens pod=pod-07",
            "loads_in_flight pod=pod-07",
            "pod_info pod=pod-07 role=both zone=",
        }
        assert (samples["arrivals_total"], samples["requests_in_flight"], samples["requests_held"]) == (10, 1, 1)

    async def test_active_adapters_by_window(self, story: Story) -> None:
        published = small_fleet()
        story.metrics.show(published)
        for t, adapter in ((0.0, "old"), (3000.0, "hour"), (3900.0, "now"), (3900.0, "now")):
            story.t = t
            story.arrive(f"{t}{adapter}", story.dispatch(f"{t}{adapter}", adapter))
        published.fleet_now = msgspec.structs.replace(published.fleet_now, now=4000.0)
        samples = await story.samples()
        assert samples["distinct_active_adapters window=10m"] == 1
        assert samples["distinct_active_adapters window=1h"] == 2
        assert samples["active_adapters"] == 1
        assert samples["active_adapters_per_slot"] == pytest.approx(1 / 12)

    async def test_without_a_picker_there_are_no_gauges(self, story: Story) -> None:
        assert not [key for key in await story.samples() if "pod=" in key or key.startswith("active")]

    async def test_fleet_without_slots_has_no_ratio(self, story: Story) -> None:
        published = small_fleet()
        published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=())
        story.metrics.show(published)
        assert "active_adapters_per_slot" not in await story.samples()


class TestPage:
    async def test_every_family_has_a_help_text_and_a_type(self, story: Story) -> None:
        story.metrics.show(small_fleet())
        story.metrics.pick_seconds(1e-5)
        page, content_type = await story.metrics.page()
        families = list(text_string_to_metric_families(page.decode()))
        assert [family.name for family in families if not family.documentation or family.type == "unknown"] == []
        assert "lorapick_pick_seconds" in {family.name for family in families}
        assert content_type.startswith("text/plain")
        assert b"_created" not in page

    async def test_names_that_need_escaping_survive(self, story: Story) -> None:
        name = 'a"b\\c\nd{e}'
        story.arrive("r", story.dispatch("r", name))
        assert f"picks_total adapter={name} tier=gpu_idle" in await story.samples()

    async def test_over_http(self, story: Story) -> None:
        story.metrics.show(small_fleet())
        async with serve_metrics(story.metrics, bind="127.0.0.1:0") as address, aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/metrics") as response:
                assert (response.status, response.content_type) == (200, "text/plain")
                assert "process_cpu_seconds_total" in await response.text()
            accept = {"accept": "application/openmetrics-text; version=1.0.0"}
            async with session.get(f"http://{address}/metrics", headers=accept) as response:
                assert (await response.text()).endswith("# EOF\n")
            async with session.get(f"http://{address}/metrics", headers={"host": "evil.example"}) as response:
                assert response.status == 421
            with pytest.raises(BindError, match=r"metrics: port \d+ of .* is in use.*server\.metrics"):
                async with serve_metrics(story.metrics, bind=address):
                    pass  # pragma: no cover

    async def test_tables_do_not_grow_with_history(self) -> None:
        story = Story()
        published: ValuesPublished = small_fleet()
        story.metrics.show(published)
        for number in range(500):
            story.t = float(number)
            story.arrive(f"r{number}", story.dispatch(f"r{number}", f"a{number}", tier=Tier.DISK))
            story.serve(f"r{number}")
        published.fleet_now = msgspec.structs.replace(published.fleet_now, now=10_000.0)
        await story.metrics.page()
        counting = story.metrics.counting
        sizes = [len(getattr(counting, name)) for name in ("_flights", "_held", "_loading", "_moved", "active")]
        assert sizes == [0, 0, 0, 0, 0]
