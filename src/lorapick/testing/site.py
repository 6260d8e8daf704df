"""A live driver with pods that do what they are told when a test says so, for tests of what operators see and change.

In: pods, settings, a clock of the test's own. Out: the driver, commands that pods were given, events that happened.
Not here: HTTP, real pods (see `Stack`).
"""

from collections.abc import Sequence
from typing import Any

from lorapick.live.driver import Driver
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Effect, Load, Register, Touch, Unload
from lorapick.model.pods import Pod, PodReport
from lorapick.model.settings import Settings
from lorapick.model.units import Seconds
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import plain_pod

ADAPTERS = tuple(
    Adapter(name=name, declared=True, source=f"/adapters/{name}", rank=16)
    for name in ("legal", "acme/code@7", "medical", "support")
)
SETTINGS = Settings(adapters=ADAPTERS)
_QUIET = ("PodAppeared", "PodReported", "Ticked", "LoadSucceeded", "Unloaded", "Registered", "Touched")
_MIDNIGHT: Seconds = 1_000_000.0
"""Unix time of t = 0."""
Command = Load | Unload | Register | Touch


class Site:
    """Two pods of four slots in two zones, unless others are given."""

    def __init__(self, *pods: Pod, settings: Settings = SETTINGS, heard: bool = True) -> None:
        """Let pods appear; with `heard` they have been scraped once."""
        self.clock = ManualClock(100.0)
        self.driver = Driver(settings, seed=1, clock=self.clock, observers=[self])
        self.driver.control = self
        self.given: list[Command] = []
        """Commands that pods have not carried out."""
        self.told: list[events.Event] = []
        self.pods = pods or (plain_pod("a", zone="west"), plain_pod("b", zone="east"))
        for pod in self.pods:
            self.say(events.PodAppeared, pod=pod)
        self.say(events.Ticked, wall=_MIDNIGHT + self.clock.now)
        if heard:
            self.hear()

    def observe(self, event: events.Event, effects: Sequence[Effect]) -> None:
        """See `live.publish.Observer`."""
        del effects
        self.told.append(event)

    def perform(self, command: Command, /) -> None:
        """See `live.driver.Controls`."""
        self.given.append(command)

    def say(self, kind: type[events.Event], **fields: Any) -> None:
        """Something happens."""
        self.driver.submit(lambda t, i: kind(t=t, id=i, **fields))

    def hear(self) -> None:
        """All pods report, and know all adapters by name."""
        for pod in self.pods:
            report = PodReport(waiting=0, running=0, registered=tuple(self.driver.fleet.state.adapters))
            self.say(events.PodReported, pod=pod.name, report=report)

    def kinds(self) -> list[str]:
        """Kinds of the events that are no answers of pods."""
        return [name for event in self.told if (name := type(event).__name__) not in _QUIET]

    def work(self, seconds: Seconds = 1.0) -> None:
        """Pods do what they were told; then time passes."""
        given, self.given = self.given, []
        for command in given:
            self._obey(command)
        self.clock.now += seconds
        self.say(events.Ticked, wall=_MIDNIGHT + self.clock.now)

    def _obey(self, command: Command) -> None:
        match command:
            case Load():
                for name in command.adapters:
                    self.say(events.LoadSucceeded, pod=command.pod, adapter=name, by=events.By.CONTROLLER)
            case Unload():
                self.say(events.Unloaded, pod=command.pod, adapter=command.adapter)
            case Register():
                self.say(events.Registered, pod=command.pod, adapter=command.adapter)
            case Touch():
                self.say(events.Touched, pod=command.pod, adapter=command.adapter)
