"""SGLang's adapter API (0.5.23): what it is told, and what its answers mean.

In: commands. Out: how they ended. Bodies are `{"lora_name", "lora_path"}` and `{"lora_name"}`, answered by 200 or 400
with `success`, `error_message` and `loaded_adapters`. A load makes the name known with the weights in host memory; the
slot comes with the first request. An unload frees, once no request of the adapter is in flight.

Nothing is unloaded to make room that could not be loaded again: the path for that is the one that the engine itself
lists, read before the unload and remembered.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from lorapick.live.control.commands import ON_PURPOSE
from lorapick.live.control.door import Answer, Door
from lorapick.live.control.problems import Outcome, ProblemError
from lorapick.live.control.touching import touch
from lorapick.live.ports import NoSourceError
from lorapick.model.effects import Unload
from lorapick.model.units import AdapterName, PodName

LOAD = "/load_lora_adapter"
UNLOAD = "/unload_lora_adapter"
_TAKEN = ("already loaded", "already exists")


class _Said(msgspec.Struct):
    """An answer. The adapters are names, or names with paths."""

    success: bool | None = None
    error_message: str | None = None
    loaded_adapters: Any = None

    def lists(self, adapter: AdapterName) -> bool | None:
        """Whether the pod has it; None: it does not say."""
        known = isinstance(self.loaded_adapters, dict | list)
        return adapter in self.loaded_adapters if known else None


class SglangDriver:
    """Commands of SGLang pods. Remembers where unloaded adapters were loaded from."""

    loads_into_slot = False

    def __init__(self) -> None:
        self._came_from: dict[PodName, dict[AdapterName, str]] = {}

    def remembered(self, pod: PodName, adapter: AdapterName) -> str | None:
        """From where the pod itself had it."""
        return self._came_from.get(pod, {}).get(adapter)

    def forget(self, gone: Callable[[PodName], bool]) -> None:
        """Remember nothing of pods that are gone."""
        self._came_from = {pod: paths for pod, paths in self._came_from.items() if not gone(pod)}

    async def load(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Bring it into host memory.

        Raises:
            ProblemError: it is not there.
        """
        if isinstance(source, NoSourceError):
            if adapter in await door.listed():
                return Outcome.ALREADY
            raise ProblemError(f"{source}, and the pod does not have it", lasting=source.lasting)
        answer = await door.post(LOAD, {"lora_name": adapter, "lora_path": source})
        said = _read(answer)
        if answer.status == 200 and said.success is not False:
            outcome = Outcome.DONE
        elif answer.status == 400 and (said.lists(adapter) or _is_taken(said)):
            outcome = Outcome.ALREADY
        else:
            raise answer.problem()
        self._came_from.get(door.pod.name, {}).pop(adapter, None)
        return outcome

    async def register(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """As `load`: a name comes with its weights."""
        return await self.load(door, adapter, source=source)

    async def unload(self, door: Door, command: Unload) -> Outcome:
        """Drop it from memory.

        Raises:
            ProblemError: it could not be loaded again, or the pod did not do it.
        """
        adapter, known = command.adapter, self._came_from.setdefault(door.pod.name, {})
        if command.why not in ON_PURPOSE:
            listed = await door.listed()
            if adapter not in listed and adapter in known:
                return Outcome.ALREADY  # unloaded before, and that was not heard
            path = listed.get(adapter)
            if path is None:
                why = "its list of models gives no path for the adapter (root), so nobody could load it again"
                raise ProblemError(why, outcome=Outcome.REFUSED)
            known[adapter] = path
        answer = await door.post(UNLOAD, {"lora_name": adapter})
        said = _read(answer)
        if answer.status == 200 and said.success is not False:
            return Outcome.DONE
        if answer.status in (400, 404) and said.lists(adapter) is False:
            return Outcome.ALREADY
        raise answer.problem()

    async def touch(self, door: Door, adapter: AdapterName) -> Outcome:
        """Have one token generated with it; `model` alone would mean the base model. Raises as `touching.touch`."""
        return await touch(door, adapter, lora_path=adapter)


def _is_taken(said: _Said) -> bool:
    return any(words in (said.error_message or "") for words in _TAKEN)


def _read(answer: Answer) -> _Said:
    """An answer to a command.

    Raises:
        ProblemError: it is none.
    """
    try:
        return msgspec.json.decode(answer.body, type=_Said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise answer.problem() from None
