"""The status page in a real Chromium (Debian packages chromium and chromium-driver)."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import pytest

from lorapick.live.publish import AlertRow, FleetSnapshot
from lorapick.model.picks import Belief
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import FleetSignals, SignalPoint, Signals
from lorapick.model.tiers import Source, Tier
from lorapick.testing.browser import Keys, Page, chromium, served
from lorapick.testing.published import ValuesPublished, small_fleet
from lorapick.testing.stack import Stack
from lorapick.testing.thrashing import ThrashingFleet

pytestmark = pytest.mark.system

HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as browser:
        yield Page(browser)


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    """A fleet of three pods that stands still."""
    with served(small_fleet()) as url:
        yield url


@pytest.fixture(scope="module")
def thrashing() -> Iterator[str]:
    """Eight pods on which everything changes."""
    fleet = ThrashingFleet()
    with served(fleet, each_second=partial(fleet.go_on, 1.0)) as url:
        yield url


def hostile_fleet() -> ValuesPublished:
    published = small_fleet()
    first, *rest = published.fleet_now.pods
    pods = (msgspec.structs.replace(first, name=HOSTILE, last_error=HOSTILE), *rest)
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=pods, policy=HOSTILE)
    published.beliefs = [
        Belief(pod=HOSTILE, adapter=HOSTILE, tier=Tier.GPU_IDLE, since=0.0, source=Source.INFERRED),
    ]
    published.decision_rows = [
        msgspec.structs.replace(row, model=HOSTILE, adapter=HOSTILE) for row in published.decision_rows
    ]
    published.alert_rows = [AlertRow(name=HOSTILE, since=0.0, facts={HOSTILE: HOSTILE})]
    return published


def test_from_the_grid_to_the_runbook(page: Page, thrashing: str) -> None:
    page.open(thrashing)
    assert page.one("#verdict").get_attribute("data-health") == "thrash"
    page.until(lambda: page.count(".alert.page ol li") >= 2)
    page.run("document.querySelector('#decisions tr[data-request] td:nth-child(2)').click()")
    page.until(lambda: "went to pod-02" in page.text("#card-title"))
    adapter = page.text("#card-title").split()[0]
    assert page.count("#card .stack i") >= 3
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.run("return document.getElementById('card').open"))

    page.run("document.getElementById('pause').click()")  # what is clicked stays where it is
    page.one(".slots .chip[data-adapter]").click()
    title = page.text("#card-title")
    assert title.startswith("tenant-")
    page.until(lambda: page.count("#card .places tbody tr") >= 1)
    page.one("#card .places button.name").click()
    assert page.text("#card-title").startswith("pod-")
    page.one("#card-back").click()
    assert page.text("#card-title") == title
    page.one("#card-close").click()

    assert adapter.startswith("tenant-")
    page.one(".alert.page a.runbook").click()
    page.until(lambda: page.text("h1").startswith("Thrash"))
    assert page.complaints() == []


def told(**facts: str | float) -> ValuesPublished:
    """A fleet on which an alert of severity page stands, with these facts."""
    published = small_fleet()
    published.alert_rows = [AlertRow(name="thrash", since=90.0, severity="page", facts=facts)]
    bounds, slo = AlertSettings(hit_ratio=0.7), SloSettings(latency_p95=2.0)
    published.fleet_now = msgspec.structs.replace(published.fleet_now, bounds=bounds, slo=slo)
    fleet = FleetSignals(
        requests_per_second=1.0, swaps_per_second=0.2, latency_p95=3.0, hit_ratio=0.6, error_ratio=0.004
    )  # fmt: skip
    published.signals_now = Signals(now=100.0, fleet=fleet)
    published.points = [
        SignalPoint(t=5.0 * n, swaps_per_second=0.2, requests_per_second=1.0, latency_p95=3.0, hit_ratio=0.6)
        for n in range(20)
    ]
    return published


def test_facts_are_whole_and_steps_keep_commands_and_links(page: Page) -> None:
    pods = ", ".join(f"pod-{number:03}" for number in range(20))
    with served(told(pods=pods, harm="latency_p95")) as url:
        page.open(url)
        page.until(lambda: page.count(".alert.page ol li") >= 2)
        assert pods in page.text(".alert.page .facts")
        whole = "const at = document.querySelector('.alert.page .facts'); return at.scrollHeight <= at.clientHeight + 1"
        assert page.run(whole)
        assert "lorapick doctor" in page.texts(".alert.page li code")
        page.run("document.querySelector('.alert.page').open = false")
        assert not page.run(whole), "two lines of it while the alert is closed"

    published = told()
    published.alert_rows = [AlertRow(name="critical_queues", since=90.0, severity="page")]
    with served(published) as url:
        page.open(url)
        page.until(lambda: page.count(".alert.page li a"))
        page.one(".alert.page li a").click()
        page.until(lambda: page.text("h1").startswith("Thrash"))
        assert page.complaints() == []


def test_bounds_are_those_of_the_configuration_and_what_is_unknown_is_a_dash(page: Page) -> None:
    with served(told()) as url:
        page.open(url)
        page.until(lambda: page.count(".chart .threshold"))
        assert page.texts(".chart .bound") == ["promised 2.0 s", "alert below 50 %", "alert below 70 %"]
        tiles = dict(zip(page.texts(".tile .name"), page.texts(".tile .value"), strict=True))
        assert tiles["P95 latency (P50 –, promised 2.0 s)"] == "3.0 s"
        assert tiles["new adapters (known after the first hour)"] == "–"
        assert tiles["failed or refused (since the start 2 of 10)"] == "0.4 %"
        assert page.text(".tile.bad .name").startswith("found on the GPU")
        assert page.count("#main.waiting") == 0


def test_before_the_first_frame_nothing_is_said_of_the_fleet(page: Page, small: str) -> None:
    page.browser.execute_cdp_cmd("Network.enable", {})
    page.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/v1/stream"]})
    try:
        page.browser.get(small)
        assert page.one("#main").text == "waiting for the first figures"
    finally:
        page.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    page.complaints()  # what was blocked
    page.open(small)
    assert page.one("#decisions").is_displayed()


def test_decisions_of_an_adapter_are_on_its_card(page: Page, small: str) -> None:
    page.open(small)
    page.one('.slots .chip[data-adapter="legal-assistant-v2"]').click()
    page.until(lambda: page.count("#card tr[data-request]") == 1)
    assert page.texts("#card .places tbody td:first-child") == ["pod-02", "pod-05"]
    page.one("#card tr[data-request]").click()
    page.until(lambda: page.text("#card-title") == "legal went to pod-02")
    assert "0.7963" in page.text("#card-body")
    page.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.dataset.adapter") == "legal-assistant-v2"


def test_two_hundred_pods_and_a_thousand_adapters_are_few_elements(page: Page) -> None:
    fleet = ThrashingFleet(pods=200, slots=16, adapters=1000)
    with served(fleet, each_second=partial(fleet.go_on, 1.0)) as url:
        page.open(url)
        assert page.one("#grid").get_attribute("aria-rowcount") == "200"
        page.until(lambda: page.one("#adapters").get_attribute("aria-rowcount") == "1001")
        assert page.count(".pod") < 30
        assert page.count(".lines .line") < 40
        assert page.count("*") < 3000
        page.run("document.getElementById('grid').scrollTop = 1e6")
        page.until(lambda: "pod-199" in page.texts(".pod .who b"))
        assert "pod-000" in page.texts(".pod .who b")[:1]  # Tab still leads to it
        page.run("document.getElementById('adapters-rows').scrollTop = 1e6")
        page.until(lambda: page.count('.lines [aria-rowindex="1000"]') == 1)
        assert page.count(".pod") < 30
        assert page.complaints() == []


def test_everything_is_reached_with_keys(page: Page, small: str) -> None:
    page.open(small)
    page.press(Keys.TAB)
    assert page.focus() == "Skip to the pods"
    page.press(Keys.ENTER, Keys.TAB)
    page.until(lambda: page.focus() == "as in the fleet" or "pod-02" in page.focus())
    page.run("document.querySelector('#grid [tabindex=\"0\"]').focus()")
    assert "pod-02" in page.focus()
    page.press(Keys.ARROW_RIGHT)
    assert "slot 1: legal-assistant-v2" in page.focus() or "slot 1: acme/code@7" in page.focus()
    page.press(Keys.ARROW_RIGHT)
    assert "slot 2:" in page.focus()
    page.press(Keys.ARROW_DOWN)
    assert page.focus() == "slot 2: free slot"
    page.press(Keys.END)
    assert "in host memory: legal-assistant-v2" in page.focus()
    page.press(Keys.HOME, Keys.ARROW_UP, Keys.ARROW_UP)
    assert "pod-02" in page.focus()
    page.press(Keys.ENTER)
    page.until(lambda: page.text("#card-title") == "pod-02")
    page.press(Keys.ESCAPE)
    page.until(lambda: "pod-02" in page.focus())
    assert page.count('#grid [tabindex="0"]') == 1
    page.press("/")
    assert page.run("return document.activeElement.id") == "search"
    page.press("p")
    assert page.one("#pause").get_attribute("aria-pressed") == "false"
    page.press(Keys.ESCAPE, "p")
    assert page.one("#pause").get_attribute("aria-pressed") == "true"


def test_focus_stays_while_rows_change_places(page: Page, thrashing: str) -> None:
    page.open(thrashing)
    page.run('document.querySelector(\'#grid [data-pod="pod-003"] [data-column="2"]\').focus()')
    page.run("document.getElementById('order').value = 'swaps'")
    page.run("document.getElementById('order').dispatchEvent(new Event('change'))")
    orders = set()
    while len(orders) < 3:
        orders.add(tuple(page.texts(".pod .who b")))
        at = page.run("const at = document.activeElement; return [at.closest('.pod').dataset.pod, at.dataset.column]")
        assert at == ["pod-003", "2"]
        time.sleep(0.2)


def test_names_are_text(page: Page) -> None:
    with served(hostile_fleet()) as url:
        page.open(url)
        for selector in (".slots .chip .label", ".pod .who b", "#decisions td:nth-child(2)", ".alert b", "#facts b"):
            assert HOSTILE.replace("_", " ") in page.texts(selector), selector
        page.one(".slots .chip[data-adapter]").click()
        page.until(lambda: page.text("#card-title") == HOSTILE)
        assert page.count("main img, dialog img") == 0
        assert page.run("return document.title") == "lorapick"


def test_search_lights_an_adapter_up_where_it_is(page: Page, small: str) -> None:
    page.open(small)
    page.press("/")
    page.press("LEGAL")
    page.until(lambda: page.texts(".pod .who b") == ["pod-02", "pod-05"])
    assert page.texts(".slots .chip.lit .label") == ["legal-assistant-v2"]
    assert page.count(".host.lit") == 1
    assert "2 of 3 pods" in page.text("#pods-more")
    page.press(Keys.ESCAPE)
    page.until(lambda: page.count(".pod") == 3)
    assert page.count(".lit") == 0


def test_pause_stops_the_picture_and_not_the_news(page: Page, thrashing: str) -> None:
    page.open(thrashing)
    shown = "return document.querySelector('#decisions tbody').textContent"
    page.one("#pause").click()
    before = page.run(shown)
    page.until(lambda: page.text("#link") == "paused for 3 s")
    assert page.run(shown) == before
    page.one("#pause").click()
    assert page.text("#link") == "live"
    assert page.run(shown) != before


def test_colours_follow_the_system_unless_chosen(page: Page, small: str) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"

    def system(scheme: str) -> str:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        return str(page.run(background))

    page.open(small)
    light, dark = system("light"), system("dark")
    assert light != dark
    page.one("#theme").click()
    assert (page.text("#theme"), page.run(background)) == ("Theme: light", light)
    page.open(small)
    assert (page.text("#theme"), page.run(background)) == ("Theme: light", light)
    page.one("#theme").click()
    assert (page.text("#theme"), system("light")) == ("Theme: dark", dark)
    page.one("#theme").click()
    assert (page.text("#theme"), system("light")) == ("Theme: auto", light)


def test_all_comes_from_the_picker_and_fits_a_narrow_screen(page: Page, thrashing: str) -> None:
    page.browser.set_window_size(500, 900)
    page.open(thrashing)
    loaded = page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert [name for name in loaded if not name.startswith(thrashing)] == []
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    page.browser.set_window_size(1440, 1000)
    assert page.complaints() == []


class Hanging(ThrashingFleet):
    """A picker that says nothing for a while."""

    pause = 0.0

    def fleet(self) -> FleetSnapshot:
        pause, self.pause = self.pause, 0.0
        time.sleep(pause)
        return super().fleet()


def test_it_says_that_there_is_no_news(page: Page) -> None:
    published = Hanging()
    with served(published) as url:
        page.open(url)
        published.pause = 7.0
        page.until(lambda: page.text("#link").startswith("no news for"))
        page.until(lambda: page.text("#link") == "live")


async def test_it_survives_a_picker_that_is_killed_and_started_again(page: Page) -> None:
    async def until(true: Callable[[], object], *, within: float = 30.0) -> None:
        await asyncio.to_thread(page.until, true, within=within)  # the stack needs the loop to start what was killed

    async with Stack(pods=2, adapters=6) as stack:
        await asyncio.to_thread(page.open, stack.admin + "/")
        await until(lambda: page.count(".pod") == 2)
        first = stack.picker_pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: "trying again" in page.text("#link") and page.count("main.stale") == 1)
        await until(lambda: "The picker restarted" in page.text("#notice"))
        await until(lambda: page.text("#link") == "live" and page.count(".pod:not(.out)") == 2)
        assert page.count("main.stale") == 0
        assert stack.picker_pid not in (None, first)
