"""The mode over the admin API: shown, changed at once, said in the log, and compared."""

import msgspec
import pytest
from admin_kit import Site, done, refused
from msgspec.structs import replace

from lorapick.model.arms import ArmsReport, Mode, ModeKind
from lorapick.model.effects import Dispatch, PassOn
from lorapick.model.events import ConfigChanged
from lorapick.model.requests import Outcome, Request


async def report(site: Site) -> ArmsReport:
    return msgspec.json.decode((await site.ask("GET", "/v1/report")).content, type=ArmsReport)


async def test_a_mode_is_set_and_shown(caplog: pytest.LogCaptureFixture) -> None:
    site, seen = Site(), []
    site.driver.observers.append(type("Seen", (), {"observe": lambda _, event, __: seen.append(event)})())
    with caplog.at_level("INFO"):
        said = done(await site.ask("PUT", "/v1/mode", {"percent": 25, "route": "round-robin"}))
    assert said.understood == "mode percent 25, enforce before"
    assert "after a restart the file's mode holds again: enforce" in said.notes
    (changed,) = [event for event in seen if isinstance(event, ConfigChanged)]
    assert changed.settings.mode == Mode(kind=ModeKind.PERCENT, percent=25.0, route="round-robin")
    assert "mode=percent 25" in caplog.text
    found = await report(site)
    assert (found.mode, found.route) == ("percent 25", "round-robin")
    # The route stays, and the same again is nothing.
    assert done(await site.ask("PUT", "/v1/mode", {"kind": "observe"})).changed
    assert (await report(site)).route == "round-robin"
    assert done(await site.ask("PUT", "/v1/mode", {"kind": "observe"}), 200).understood == "the mode is observe already"


async def test_a_mode_that_makes_no_sense_is_refused() -> None:
    site = Site()
    for body, told in (
        ({}, "needs kind, or percent"),
        ({"percent": 101}, "between 0 and 100"),
        ({"kind": "percent"}, "which share of the requests?"),
        ({"kind": "observe", "route": "nowhere"}, "must be"),
    ):
        assert told in refused(await site.ask("PUT", "/v1/mode", body), 400, "body_invalid").detail
    assert (await report(site)).mode == "enforce"


async def test_requests_of_both_arms_are_told_to_the_driver_and_its_page() -> None:
    site = Site()
    driver = site.driver
    done(await site.ask("PUT", "/v1/mode", {"kind": "observe"}))
    answer = driver.ask(Request(id="one", model="legal"))
    assert isinstance(answer, PassOn)
    driver.dispatched("one", driver.fleet.state.columns.targets[0].address)
    driver.response_started("one", 200)
    driver.ended("one", Outcome.SERVED, 200, None)
    driver.ask(Request(id="two", model="legal"))
    driver.dispatched("two", "10.9.9.9:1")  # no pod of ours
    driver.ended("two", Outcome.SERVED, 200, None)
    done(await site.ask("PUT", "/v1/mode", {"kind": "enforce"}))
    assert isinstance(driver.ask(Request(id="three", model="legal")), Dispatch)
    driver.ended("three", Outcome.SERVED, 200, None)
    found = await report(site)
    assert found.apart
    assert [figures.requests for figures in found.arms] == [1, 2]
    assert found.arms[1].by_tier.get("unknown") == 1
    assert not driver.fleet.state.flights


async def test_other_settings_stay_as_they_are() -> None:
    site = Site()
    before = site.driver.fleet.state.settings
    done(await site.ask("PUT", "/v1/mode", {"percent": 50}))
    after = site.driver.fleet.state.settings
    assert replace(after, mode=before.mode) == before
