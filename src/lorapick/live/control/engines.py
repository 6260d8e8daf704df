"""What each engine's commands are: one driver per engine, or the reason why there is none.

In: an engine. Out: its driver. Add an engine: a file like `vllm`, and a line here.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from lorapick.live.control.byrequest import ByRequestDriver
from lorapick.live.control.door import Door
from lorapick.live.control.problems import Outcome, ProblemError
from lorapick.live.control.sglang import SglangDriver
from lorapick.live.control.vllm import VllmDriver
from lorapick.live.ports import NoSourceError
from lorapick.model.effects import Unload
from lorapick.model.pods import Engine
from lorapick.model.units import AdapterName, PodName


class EngineDriver(Protocol):
    """One engine's commands. All raise ProblemError, and what `Door` raises; time limits are the caller's."""

    loads_into_slot: bool
    """A load ends in a GPU slot; else in host memory."""
    tells_sources: bool
    """A touch says from where the adapter is loaded, as a load does."""

    def remembered(self, pod: PodName, adapter: AdapterName) -> str | None:
        """From where the pod had an adapter that it was told to unload; None: it was told no such thing."""
        ...

    def forget(self, gone: Callable[[PodName], bool]) -> None:
        """Remember nothing of pods that are gone."""
        ...

    async def load(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Bring it into memory, from `source`; without one only what the pod knows can be had."""
        ...

    async def register(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Make its name known; ALREADY: it was."""
        ...

    async def unload(self, door: Door, command: Unload) -> Outcome:
        """Withdraw it; ALREADY: it was not there."""
        ...

    async def touch(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Have one token generated with it; `source` is looked up for those that tell it only."""
        ...


DRIVERS: dict[Engine, Callable[[], EngineDriver]] = {
    Engine.VLLM: VllmDriver,
    Engine.SGLANG: SglangDriver,
    Engine.TRTLLM: partial(ByRequestDriver, Engine.TRTLLM),
    Engine.TRITON: partial(ByRequestDriver, Engine.TRITON),
}
"""An emulated pod speaks one of these dialects, as its configuration says."""
WITHOUT: dict[Engine, str] = {
    Engine.LORAX: "LoRAX loads what requests name, and has no path to load or unload an adapter by itself",
}


def unsupported(engine: Engine) -> ProblemError:
    """Why nothing can be told to pods of an engine."""
    why = WITHOUT.get(engine, f"there is no driver for {engine.value}")
    return ProblemError(why, lasting=True, outcome=Outcome.REFUSED)
