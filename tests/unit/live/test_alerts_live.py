"""Alerts on their way to people: admin API, page frame, metrics, replay; with what admission counts."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from lorapick.live.admin import admin_app
from lorapick.live.driver import Driver
from lorapick.live.eventlog import EventLog
from lorapick.live.frames import Frames
from lorapick.live.metrics import Metrics
from lorapick.live.published import PublishedViews
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.alerts import Alert
from lorapick.model.pods import PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.plan.datafiles import open_lines
from lorapick.sim.replay import replay
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import plain_pod
from lorapick.wire.eventlog import LogReader

SETTINGS = Settings(adapters=(Adapter(name="legal", declared=True),))


class Live:
    """A driver with its views, on a clock of ours; one pod whose memory is short, and one stranger among requests."""

    def __init__(self, **parts: Any) -> None:
        self.clock = ManualClock(100.0)
        self.metrics = Metrics()
        self.driver = Driver(SETTINGS, seed=1, clock=self.clock, observers=[self.metrics], **parts)
        self.views = PublishedViews(self.driver)
        self.metrics.show(self.views)
        self.say(events.PodAppeared, pod=plain_pod("a"))

    def say(self, kind: type[events.Event], **fields: Any) -> None:
        self.driver.submit(lambda t, i: kind(t=t, id=i, **fields))

    def seconds(self, count: int, *, pressure: float, model: str) -> None:
        report = PodReport(waiting=0, running=0, memory_pressure=pressure, registered=("legal", "test-b"))
        for second in range(count):
            self.clock.now += 1.0
            self.say(events.PodReported, pod="a", report=report)
            request = Request(id=f"{self.clock.now}-{second}", model=model)
            self.say(events.RequestArrived, request=request)
            self.driver.ended(request.id, Outcome.SERVED, 200, None)

    async def lines(self, word: str) -> list[str]:
        page, _ = await self.metrics.page()
        return [line for line in page.decode().splitlines() if word in line and not line.startswith("#")]


@pytest.fixture
def log_path(tmp_path):
    return tmp_path / "events.jsonl"


async def test_alerts_are_shown_while_they_stand_and_replay_alike(log_path, tmp_path):
    (tmp_path / "index.html").write_text("")
    with EventLog(log_path, settings=SETTINGS, seed=1) as log:
        live = Live(recorder=log)
        client = TestClient(admin_app(live.views, static=tmp_path), base_url="http://127.0.0.1:9091")
        assert client.get("/v1/alerts").json() == {"alerts": []}
        live.seconds(15, pressure=0.1, model="test-b")
        live.seconds(15, pressure=0.92, model="legal")
        alerts = {alert["name"]: alert for alert in client.get("/v1/alerts").json()["alerts"]}
        assert {name: alert["facts"] for name, alert in alerts.items()} == {
            "new_adapters": {"adapters": "test-b", "count": 1, "traffic_share": 1.0},
            "pressure": {"pods": "a hard", "count": 1},
        }
        assert 100.0 < alerts["new_adapters"]["since"] < 115.0 < alerts["pressure"]["since"] <= 130.0
        assert [row.name for row in Frames(live.views).advance().alerts] == ["new_adapters", "pressure"]
        assert await live.lines("lorapick_alert{") == [
            f'lorapick_alert{{alert="{alert}"}} {float(alert in (Alert.NEW_ADAPTERS, Alert.PRESSURE))}'
            for alert in Alert
        ]
        live.seconds(35, pressure=0.1, model="legal")
        assert client.get("/v1/alerts").json() == {"alerts": []}
        assert await live.lines("lorapick_alert{") == [f'lorapick_alert{{alert="{alert}"}} 0.0' for alert in Alert]
        assert await live.lines("alerts_raised") == [
            'lorapick_alerts_raised_total{alert="new_adapters"} 1.0',
            'lorapick_alerts_raised_total{alert="pressure"} 1.0',
        ]
    found = replay(LogReader(open_lines(log_path)))
    assert found.difference is None
    assert found.alerts == {"new_adapters": 1, "pressure": 1}


async def test_admission_is_counted():
    live = Live()
    live.seconds(3, pressure=0.92, model="test-b")
    live.seconds(1, pressure=0.1, model="test-b")
    live.say(events.LoadFailed, pod="a", adapter="legal", by=events.By.ENGINE, why="no such file")
    assert await live.lines("probation") == ["lorapick_probation_requests_total 4.0"]
    assert await live.lines("quarantines") == ["lorapick_quarantines_total 1.0"]
    assert await live.lines("lorapick_pressure") == [
        'lorapick_pressure_changes_total{pod="a",tier="hard"} 1.0',
        'lorapick_pressure_changes_total{pod="a",tier="none"} 1.0',
        'lorapick_pressure_tier{pod="a"} 0.0',
    ]
    assert await live.lines("requests_waiting") == [
        'lorapick_requests_waiting{for="held_for_load"} 0.0',
        'lorapick_requests_waiting{for="held_for_slot"} 0.0',
    ]
