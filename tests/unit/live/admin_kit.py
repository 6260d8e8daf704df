"""A driver with pods that answer, and its admin API, on a clock of ours."""

from typing import Any

import httpx2 as httpx
import msgspec

from lorapick.live.admin import admin_app
from lorapick.live.driver import Driver
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.published import PublishedViews
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.pods import Pod, PodReport
from lorapick.model.settings import Settings
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import plain_pod
from lorapick.wire.admin_answers import Done, PlacementAnswer
from lorapick.wire.api import Problem

ADAPTERS = tuple(
    Adapter(name=name, declared=True, source=f"/adapters/{name}", rank=16)
    for name in ("legal", "acme/code@7", "medical", "support")
)
SETTINGS = Settings(adapters=ADAPTERS)
NAMES = tuple(adapter.name for adapter in ADAPTERS)


class Commanded:
    """Keeps commands; `Site.work` says what came of them."""

    def __init__(self) -> None:
        self.given: list[Load | Unload | Register | Touch] = []

    def perform(self, command: Load | Unload | Register | Touch, /) -> None:
        self.given.append(command)


class Site:
    """Two pods of four slots in two zones, unless others are given."""

    def __init__(self, *pods: Pod, settings: Settings = SETTINGS, heard: bool = True, **parts: Any) -> None:
        self.clock = ManualClock(100.0)
        self.driver = Driver(settings, seed=1, clock=self.clock, **parts)
        self.commanded = Commanded()
        self.driver.control = self.commanded
        self.told: list[events.Event] = []
        self.driver.observers.append(self)
        self.pods = pods or (plain_pod("a", zone="west"), plain_pod("b", zone="east"))
        for pod in self.pods:
            self.say(events.PodAppeared, pod=pod)
        self.say(events.Ticked, wall=1_000_000.0)
        if heard:
            self.hear()

    def observe(self, event: events.Event, _effects: object) -> None:
        self.told.append(event)

    def kinds(self) -> list[str]:
        """Changes among the events."""
        quiet = ("PodAppeared", "PodReported", "Ticked", "LoadSucceeded", "Unloaded")
        return [name for event in self.told if (name := type(event).__name__) not in quiet]

    def say(self, kind: type[events.Event], **fields: Any) -> None:
        self.driver.submit(lambda t, i: kind(t=t, id=i, **fields))

    def hear(self) -> None:
        """All pods report, and know all declared names."""
        for pod in self.pods:
            report = PodReport(waiting=0, running=0, registered=tuple(self.driver.fleet.state.adapters))
            self.say(events.PodReported, pod=pod.name, report=report)

    def work(self, seconds: float = 1.0) -> None:
        """Pods do what they were told; then time passes."""
        by = events.By.CONTROLLER
        given, self.commanded.given = self.commanded.given, []
        for command in given:
            match command:
                case Load():
                    for name in command.adapters:
                        self.say(events.LoadSucceeded, pod=command.pod, adapter=name, by=by)
                case Unload():
                    self.say(events.Unloaded, pod=command.pod, adapter=command.adapter)
                case Register():
                    self.say(events.Registered, pod=command.pod, adapter=command.adapter)
                case Touch():
                    self.say(events.Touched, pod=command.pod, adapter=command.adapter)
        self.clock.now += seconds
        self.say(events.Ticked, wall=1_000_000.0 + self.clock.now)

    def client(self, **parts: Any) -> httpx.AsyncClient:
        app = admin_app(PublishedViews(self.driver), operations=DriverOperations(self.driver), **parts)
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:9091")

    async def ask(self, method: str, path: str, body: Any = None, **parts: Any) -> httpx.Response:
        """One call; `body` as JSON."""
        async with self.client() as client:
            return await client.request(method, path, json=body, **parts)

    async def post(self, name: str, verb: str, **body: Any) -> httpx.Response:
        """One change of one adapter; `from_` stands for `from`, `for_` for `for`."""
        written = {key.rstrip("_"): value for key, value in body.items()}
        return await self.ask("POST", f"/v1/adapters/{name}/{verb}", written)

    async def placement(self) -> PlacementAnswer:
        answer = await self.ask("GET", "/v1/placement")
        assert answer.status_code == 200
        return msgspec.json.decode(answer.content, type=PlacementAnswer)


def done(answer: httpx.Response, status: int = 202) -> Done:
    """The answer to a change that was made."""
    assert answer.status_code == status, answer.text
    found = msgspec.json.decode(answer.content, type=Done)
    assert found.changed is (status == 202)
    return found


def refused(answer: httpx.Response, status: int, reason: str) -> Problem:
    """The answer to one that was not."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = msgspec.json.decode(answer.content, type=Problem)
    assert (answer.status_code, found.status, found.reason) == (status, status, reason), answer.text
    return found
