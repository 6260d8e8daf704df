"""What the pages show of prefill on other pods: of a real fleet, and under llm-d's names."""

import msgspec
import pytest

from lorapick.live.driver import Driver
from lorapick.live.families_epp import DIALECTS
from lorapick.live.metrics import Metrics
from lorapick.live.metrics_epp import EppMetrics
from lorapick.live.published import PublishedViews
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Dispatch
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import plain_pod
from lorapick.wire.words import explained


class Fleet:
    """A driver with one pod that prefills and one that decodes, and its page."""

    def __init__(self) -> None:
        self.clock, self.metrics = ManualClock(), Metrics()
        self.driver = Driver(
            Settings(adapters=(Adapter(name="legal"),)), seed=1, clock=self.clock, observers=[self.metrics]
        )
        self.views = PublishedViews(self.driver)
        self.metrics.show(self.views)
        self.metrics.follow(self.driver.fleet)
        for name, role in (("p", Role.PREFILL), ("d", Role.DECODE)):
            pod = msgspec.structs.replace(plain_pod(name), role=role, zone="west")
            self.driver.submit(lambda t, i, pod=pod: events.PodAppeared(t=t, id=i, pod=pod))

    def ask(self, request_id: str, tokens: int = 4000, **fields: object) -> Dispatch:
        answer = self.driver.ask(Request(id=request_id, model="legal", prompt_tokens=tokens, **fields))
        assert isinstance(answer, Dispatch)
        return answer

    def samples(self) -> dict[str, float]:
        return {
            sample.name + "".join(f" {word}" for word in sample.labels.values()): sample.value
            for sample in self.metrics.samples()
        }


async def test_a_split_request_from_dispatch_to_end() -> None:
    fleet = Fleet()
    answer = fleet.ask("r1", stream=True)
    assert answer.prefill is not None and answer.prefill.pod == "p"
    shown = fleet.samples()
    assert shown["lorapick_splits_total split"] == 1
    assert shown["lorapick_prefill_picks_total disk"] == 1
    assert (shown["lorapick_reserved_slots d"], shown["lorapick_prefill_tokens p"]) == (1, 4000)
    assert (shown["lorapick_reserved_slots p"], shown["lorapick_prefill_tokens d"]) == (0, 0)
    assert shown["lorapick_pod_info p prefill west"] == shown["lorapick_pod_info d decode west"] == 1
    # Both bring the adapter in, and a request waits for either.
    assert [shown[f"lorapick_swaps_total {pod} disk"] for pod in "pd"] == [1, 1]
    assert [shown[f"lorapick_loads_total {pod} inferred disk"] for pod in "pd"] == [1, 1]
    assert shown["lorapick_pod_picks_total d disk"] == 1
    fleet.driver.prefill_ended("r1", ok=True)
    fleet.driver.response_started("r1", 200)
    shown = fleet.samples()
    assert (shown["lorapick_reserved_slots d"], shown["lorapick_prefill_tokens p"]) == (1, 0)
    fleet.driver.body_started("r1")
    shown = fleet.samples()
    assert (shown["lorapick_reserved_slots d"], shown["lorapick_prefill_tokens p"]) == (0, 0)
    assert not [name for name in shown if name.startswith("lorapick_prefills_failed_total")]
    fleet.driver.ended("r1", Outcome.SERVED, 200, None)
    assert "lorapick_prefill_seconds_per_token" in shown


async def test_what_failed_is_told_by_why() -> None:
    fleet = Fleet()
    fleet.ask("r1")
    fleet.driver.prefill_ended("r1", ok=False, why="no_kv")
    fleet.ask("r2")
    fleet.driver.submit(lambda t, i: events.PodGone(t=t, id=i, pod="p"))
    shown = fleet.samples()
    assert shown["lorapick_prefills_failed_total p failed"] == shown["lorapick_prefills_failed_total p lost"] == 1
    lost, failed = fleet.views.decisions(2)
    assert (failed.prefill, failed.prefill_came, lost.prefill_came) == ("p", "failed", "lost")
    assert [line for line in explained(fleet.views.explain("r1")).words if "had failed (no_kv)" in line]
    # Without a pod to prefill the fleet splits no more: every pod does everything.
    assert fleet.views.fleet().splits.seconds_per_token is None


async def test_series_of_a_pod_that_is_gone_are_forgotten() -> None:
    fleet = Fleet()
    fleet.ask("r1")
    fleet.driver.submit(lambda t, i: events.PodGone(t=t, id=i, pod="p"))
    assert fleet.samples()["lorapick_prefills_failed_total p lost"] == 1
    fleet.driver.ended("r1", Outcome.SERVED, 200, None)
    fleet.clock.advance(4000.0)
    fleet.metrics.counting.forget(fleet.clock())
    assert not [name for name in fleet.samples() if name.startswith("lorapick_prefills_failed_total")]


async def test_many_failures_are_all_counted_and_few_are_printed(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet()
    caplog.set_level("INFO", logger="lorapick.live.driver")
    for number in range(40):
        fleet.ask(f"r{number}")
    fleet.driver.submit(lambda t, i: events.PodGone(t=t, id=i, pod="p"))
    assert fleet.samples()["lorapick_prefills_failed_total p lost"] == 40
    assert len([line for line in caplog.messages if line.startswith("prefill_failed")]) == 1


async def test_short_prompts_are_not_split() -> None:
    fleet = Fleet()
    assert fleet.ask("r1", tokens=10).prefill is None
    shown = fleet.samples()
    assert shown["lorapick_splits_total alone"] == 1
    decisions = "llm_d_epp_disagg_decision_total disagg-profile-handler disagg-profile-handler legal"
    assert (shown[f"{decisions} decode-only"], shown[f"{decisions} prefill-decode"]) == (1, 0)


async def test_a_split_decision_explains_itself() -> None:
    fleet = Fleet()
    fleet.ask("r1")
    kept = fleet.views.explain("r1")
    assert kept is not None and kept.pair is not None and kept.pair.alone is not None
    assert (kept.prefill, kept.prefill_tier) == ("p", Tier.DISK)
    (sentence,) = (line for line in explained(kept).words if line.startswith("To be prefilled by p"))
    assert sentence.endswith("; d alone, the prefill included, was expected to take 1.4 s.")


def test_llm_ds_names_of_both_times() -> None:
    epp = EppMetrics(DIALECTS["both"])
    series = epp.arrived(Request(id="r", model="m"), "m@1", label="m@1")
    for split in (True, True, False):
        epp.sent(series, pod="p", address="a:1", stream=False, split=split)
    epp.freeze(None)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in epp.collect()
        for sample in family.samples
        if "decision" in sample.name
    }
    handler = "disagg-profile-handler"
    assert found == {
        ("llm_d_epp_disagg_decision_total", handler, handler, "m@1", "decode-only"): 1,
        ("llm_d_epp_disagg_decision_total", handler, handler, "m@1", "prefill-decode"): 2,
        ("llm_d_inference_scheduler_disagg_decision_total", "m@1", "decode-only"): 1,
        ("llm_d_inference_scheduler_disagg_decision_total", "m@1", "prefill-decode"): 2,
        ("llm_d_inference_scheduler_pd_decision_total", "m@1", "decode-only"): 1,
        ("llm_d_inference_scheduler_pd_decision_total", "m@1", "prefill-decode"): 2,
    }


def test_a_fleet_without_roles_has_no_samples_of_it() -> None:
    epp = EppMetrics(DIALECTS["both"])
    series = epp.arrived(Request(id="r", model="m"), "m", label="m")
    epp.sent(series, pod="p", address="a:1", stream=False)
    epp.freeze(())
    assert not [s for family in epp.collect() for s in family.samples if "decision" in s.name]
