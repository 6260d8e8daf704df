"""A command as a value: which adapters it is about, what kind it is, and the events that may end it.

In: effects. Out: names, and events by the driver's clock and count. Not here: carrying it out.
"""

from collections.abc import Callable

from lorapick.live.control.problems import Outcome, ProblemError
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import (
    By,
    Event,
    LoadFailed,
    LoadStarted,
    LoadSucceeded,
    Registered,
    RegisterFailed,
    Touched,
    TouchFailed,
    Unloaded,
    UnloadFailed,
)
from lorapick.model.placement import Why
from lorapick.model.units import AdapterName, Seconds

Command = Load | Unload | Register | Touch
MakeEvent = Callable[[Seconds, int], Event]
ON_PURPOSE = (Why.RETIRED.value, Why.OPERATOR.value)
"""What an adapter is unloaded for by those who want it away, whatever that frees and whoever could load it again."""


def adapters_of(command: Command) -> tuple[AdapterName, ...]:
    """The adapters that a command is about; each is answered by one event."""
    return command.adapters if isinstance(command, Load) else (command.adapter,)


def kind_of(command: Command) -> str:
    """`load`, `unload`, `register` or `touch`."""
    return type(command).__name__.lower()


def started(command: Load, adapter: AdapterName) -> MakeEvent:
    """The pod is being told."""
    pod = command.pod
    return lambda t, i: LoadStarted(t=t, id=i, pod=pod, adapters=(adapter,), by=By.CONTROLLER)


def succeeded(command: Command, adapter: AdapterName, *, outcome: Outcome, seconds: Seconds) -> MakeEvent:
    """It is as wanted; `seconds` since the pod was told."""
    pod, known = command.pod, outcome is Outcome.ALREADY
    match command:
        case Load():
            took = None if known else seconds
            return lambda t, i: LoadSucceeded(t=t, id=i, pod=pod, adapter=adapter, by=By.CONTROLLER, seconds=took)
        case Unload():
            return lambda t, i: Unloaded(t=t, id=i, pod=pod, adapter=adapter)
        case Register():
            return lambda t, i: Registered(t=t, id=i, pod=pod, adapter=adapter, known_before=known)
        case Touch():
            return lambda t, i: Touched(t=t, id=i, pod=pod, adapter=adapter)


def failed(command: Command, adapter: AdapterName, *, problem: ProblemError) -> MakeEvent:
    """It came to nothing, as far as we know."""
    pod, why, lasting = command.pod, str(problem), problem.lasting
    match command:
        case Load():
            by = By.CONTROLLER
            return lambda t, i: LoadFailed(t=t, id=i, pod=pod, adapter=adapter, by=by, why=why, lasting=lasting)
        case Unload():
            return lambda t, i: UnloadFailed(t=t, id=i, pod=pod, adapter=adapter, why=why)
        case Register():
            return lambda t, i: RegisterFailed(t=t, id=i, pod=pod, adapter=adapter, why=why, lasting=lasting)
        case Touch():
            return lambda t, i: TouchFailed(t=t, id=i, pod=pod, adapter=adapter, why=why)
