"""docs/metrics.md has every family of the page, with its labels, and no other."""

import re
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest
from metrics_kit import Story
from prometheus_client.metrics_core import Metric

from lorapick.live.driver import Driver
from lorapick.live.families_kinds import Counts, Histograms, Sums
from lorapick.live.metrics import Metrics
from lorapick.live.publish import PlacementNow, Splits
from lorapick.live.published import PublishedViews
from lorapick.model.effects import Reject
from lorapick.model.events import BodyStarted, RequestArrived, RequestEnded, ResponseStarted, Ticked
from lorapick.model.pods import Role
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings, SloSettings
from lorapick.model.signals import Change, FleetSignals, PodSignals, Signals
from lorapick.model.tiers import Tier
from lorapick.testing.clock import ManualClock
from lorapick.testing.published import ValuesPublished, small_fleet

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
NAME = re.compile(r"`((?:lorapick|llm_d|inference)_\w+)`")


def documented() -> dict[str, frozenset[str]]:
    """Name to labels: cells of names in the tables, each with the cell of labels that follows it."""
    found: dict[str, frozenset[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        for names, labels in zip(cells[::2], cells[1::2], strict=False):
            for name in NAME.findall(names) if names.startswith("`") else ():
                assert name not in found, f"{name} is described twice"
                found[name] = frozenset(re.split(r", ", labels)) if labels else frozenset()
    return found


def families(found: list[Metric]) -> dict[str, frozenset[str]]:
    """Name, as it stands in queries, to labels; a family without samples has none that anybody could see."""
    suffix = defaultdict(str, {"counter": "_total", "info": "_info"})
    return {
        family.name + suffix[family.type]: frozenset(
            label for sample in family.samples for label in sample.labels if label != "le"
        )
        for family in found
    }


def everything() -> Metrics:
    """Metrics with a sample of each family."""
    story = Story(slo=SloSettings(latency_p95=1.0))
    story.metrics.show(_published())
    counts = story.metrics.counting.families
    for family in counts.all:
        words = ["x"] * len(family.labels)
        match family:
            case Counts():
                family.add(*words)
            case Sums() | Histograms():
                family.add(1.0, *words)
    story.arrive("base", story.dispatch("base", None, tier=None))
    requests = [Request(id=name, model="m", stream=name == "s", body_bytes=5) for name in "sh"]
    story.tell(RequestArrived, story.dispatch("s", "m"), request=requests[0])
    story.tell(RequestArrived, story.hold("h", "m"), request=requests[1])
    story.t = 1.0
    story.tell(Ticked, Reject(cause=0, request_id="h", status=503, reason=Reason.DEADLINE, message="late"))
    story.tell(RequestArrived, story.hold("w", "m"), request=Request(id="w", model="m"))
    story.tell(ResponseStarted, request_id="s", status=200)
    story.tell(BodyStarted, request_id="s")
    story.tell(
        RequestEnded, request_id="s", outcome=Outcome.SERVED, prompt_tokens=5, cached_tokens=1, output_tokens=9
    )  # fmt: skip
    begun = Change(0.0, "p", "m", Tier.DISK, Tier.LOADING, since=0.0, came_from=Tier.DISK)
    story.metrics.counting.stays.take(begun, Ticked(t=0.0, id=0))
    return story.metrics


def _published() -> ValuesPublished:
    published = small_fleet()
    fleet = published.fleet_now
    totals = msgspec.structs.replace(
        fleet.totals, envoy_requests=1, envoy_without_picker=0, passed={"no_body": 1}, faults={"event_log": 0},
        waiting={"held_for_slot": 1}, expired={"held_for_slot": 1},
    )  # fmt: skip
    placement = PlacementNow(
        given={"load": {"pin": 1}}, ended={"load": {"done": 1}}, begun={"load": 1}, seconds={"load": 1.0}
    )
    pods = tuple(msgspec.structs.replace(pod, pressure="soft", role=Role.DECODE) for pod in fleet.pods)
    splits = Splits(
        results={"split": 1},
        picks_by_tier={"gpu_idle": 1},
        reservations_moved={"moved": 1},
        reserved_lost={"inferred": 1},
        seconds_per_token=1e-4,
    )
    published.fleet_now = msgspec.structs.replace(fleet, totals=totals, placement=placement, pods=pods, splits=splits)
    rates = {"swaps_per_second": 0.0}
    pod = PodSignals(
        pod="pod-02", **rates, loads_per_second=0.0, evictions_per_second=0.0, mean_residency=1.0, residency_p50=1.0,
        residency_p95=1.0, useful_share=0.5,
    )  # fmt: skip
    summary = FleetSignals(
        requests_per_second=0.0, **rates, new_traffic_share=0.0, active_per_slot=0.5, useful_share=0.5
    )
    published.signals_now = Signals(now=fleet.now, fleet=summary, pods=(pod,))
    return published


TIMES = {"lorapick_busy_seconds_total", "lorapick_useful_seconds_total"}
"""Of the core itself, which a story has none of; the next test but one has them."""


def test_names_and_labels() -> None:
    described, shown = documented(), families(everything().families())
    assert sorted(described) == sorted(shown)
    labels = {name: sorted(found) for name, found in shown.items() if name not in TIMES}
    assert labels == {name: sorted(described[name]) for name in labels}


def test_each_was_looked_at() -> None:
    assert [f.name for f in everything().families() if not f.samples and f"{f.name}_total" not in TIMES] == []


def test_no_series_is_there_twice() -> None:
    found = [(sample.name, *sorted(sample.labels.items())) for sample in everything().samples()]
    assert len(found) == len({*found})


async def test_the_page_of_a_driver() -> None:
    clock, metrics = ManualClock(), Metrics()
    driver = Driver(Settings(), seed=1, clock=clock, observers=[metrics])
    metrics.show(PublishedViews(driver))
    metrics.follow(driver.fleet)
    driver.fleet.state.signals.useful.dispatched("p", 0.0)
    clock.advance(1.0)
    described, shown = documented(), families(metrics.families())
    assert sorted(described) == sorted(shown)
    assert {name: found for name, found in shown.items() if found and found != described[name]} == {}
    assert {name: shown[name] for name in TIMES} == {name: described[name] for name in TIMES}


@pytest.mark.parametrize("name", ["lorapick_hits_total", "inference_pool_ready_pods", "llm_d_epp_request_total"])
def test_the_tables_are_read(name: str) -> None:
    assert name in documented()
