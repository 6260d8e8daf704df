"""What pods have in memory, read cheaply, is what is believed."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.live.memory import in_memory
from lorapick.model import events
from lorapick.model.pods import LoadedAdapter, PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.tiers import Tier
from lorapick.testing.site import ADAPTERS, Site

NAMES = [adapter.name for adapter in ADAPTERS]
STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "end", "wait", "report", "restart"]), st.sampled_from(NAMES)), max_size=25
)


def believed(site: Site) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {pod.name: [] for pod in site.pods}
    for each in site.driver.fleet.state.residency.beliefs():
        if each.tier >= Tier.CPU:
            found[each.pod].append((each.adapter, each.tier, each.since, each.source, each.in_flight, each.pinned))
    return found


def seen(site: Site) -> dict[str, list[tuple[Any, ...]]]:
    return {
        pod: sorted((each.adapter, each.tier, each.since, each.source, each.in_flight, each.pinned) for each in here)
        for pod, here in in_memory(site.driver.fleet.state, least=Tier.CPU).items()
    }


def play(site: Site, step: str, name: str) -> None:
    open_requests = site.__dict__.setdefault("open", [])
    match step:
        case "ask":
            request = f"r{len(site.told)}"
            open_requests.append(request)
            site.say(events.RequestArrived, request=Request(id=request, model=name))
        case "end" if open_requests:
            site.say(events.RequestEnded, request_id=open_requests.pop(0), outcome=Outcome.SERVED, status=200)
        case "report":
            loaded = (LoadedAdapter(name=name, on_gpu=False),)
            site.say(
                events.PodReported,
                pod="a",
                report=PodReport(waiting=0, running=0, registered=tuple(NAMES), loaded=loaded),
            )
        case "restart":
            site.say(events.PodGone, pod="b")
            site.say(events.PodAppeared, pod=site.pods[1])
            site.hear()
        case _:
            site.work(5.0)


@settings(max_examples=40)
@given(STEPS)
def test_it_is_what_is_believed(steps: list[tuple[str, str]]) -> None:
    async def course() -> None:
        site = Site()
        for step, name in steps:
            play(site, step, name)
            assert seen(site) == {pod: sorted(cells) for pod, cells in believed(site).items()}

    asyncio.run(course())


async def test_loads_requests_and_host_memory_are_told_apart() -> None:
    site = Site()
    play(site, "report", "medical")
    play(site, "ask", "legal")
    (here,) = [each for cells in seen(site).values() for each in cells if each[0] == "legal"]
    assert (here[1], here[4]) == (Tier.LOADING, 1)
    assert [each[1] for each in seen(site)["a"] if each[0] == "medical"] == [Tier.CPU]
