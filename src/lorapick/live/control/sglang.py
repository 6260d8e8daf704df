"""SGLang's adapter API (0.4.9 to 0.5.23): what it is told, and what its answers mean.

In: commands. Out: how they ended. Bodies are `{"lora_name", "lora_path"}` and `{"lora_name"}`, answered by 200 or 400
with `success`, `error_message` and, unless the server refused it at once, `loaded_adapters`. A load makes the name
known with the weights in host memory; the slot comes with the first request. An unload frees, once no request of the
adapter is in flight. With data parallelism (but for attention alone) both fail with 500 and no word: the reason is
looked up in `/server_info`.

Nothing is unloaded to make room that could not be loaded again: the path for that is the one that the engine itself
lists, read before the unload and remembered. What came as tensors (`/load_lora_adapter_from_tensors`) has none.

`pinned` of a load is not used: SGLang takes a pin back only with an unload, which drops the adapter's KV too, and pins
here come and go with hours and demand. They are kept by touches; those of `--lora-paths` are heeded (`sglang_info`).
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
from lorapick.wire.asking import WordingError, wording

LOAD = "/load_lora_adapter"
UNLOAD = "/unload_lora_adapter"
_INFO = ("/server_info", "/get_server_info")
_TAKEN = ("already loaded", "already exists")
_GONE = ("does not exist", "is not loaded")
_WITHOUT_PATH = ("__tensor__", "__distributed__")
"""What SGLang lists as the paths of adapters whose weights came over the wire."""


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
    tells_sources = False

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
        said = _read(answer) if answer.status != 500 else _Said()
        if answer.status == 200 and said.success is not False:
            outcome = Outcome.DONE
        elif answer.status == 400 and (said.lists(adapter) or _is_taken(said)):
            outcome = Outcome.ALREADY
        else:
            raise await _problem(door, answer)
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
            if path is None or path in _WITHOUT_PATH:
                why = "its list of models gives no path for the adapter (root), so nobody could load it again"
                if path is not None:
                    why = "its weights came as tensors and are nowhere else, so nobody could load it again"
                raise ProblemError(why, outcome=Outcome.REFUSED)
            known[adapter] = path
        answer = await door.post(UNLOAD, {"lora_name": adapter})
        said = _read(answer) if answer.status != 500 else _Said()
        if answer.status == 200 and said.success is not False:
            return Outcome.DONE
        gone = said.lists(adapter) is False or (said.lists(adapter) is None and _is_gone(said))
        if answer.status in (400, 404) and gone:
            return Outcome.ALREADY
        raise await _problem(door, answer)

    async def touch(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Have one token generated with it; `model` alone would mean the base model. Raises as `touching.touch`."""
        del source
        try:
            words = wording(door.pod, adapter, source=None)
        except WordingError as error:
            raise ProblemError(str(error), lasting=True, outcome=Outcome.REFUSED) from None
        return await touch(door, adapter, words=words)


class _Info(msgspec.Struct):
    dp_size: int = 1
    enable_dp_attention: bool = False
    enable_lora: bool | None = None


async def _problem(door: Door, answer: Answer) -> ProblemError:
    """Why it did not do it; a 500 says nothing, so the server's own settings are asked."""
    if answer.status != 500:
        return answer.problem()
    for path in _INFO:
        told = await door.get(path)
        if told.status != 200:
            continue
        try:
            info = msgspec.json.decode(told.body, type=_Info)
        except (msgspec.DecodeError, UnicodeDecodeError):
            break
        if info.dp_size > 1 and not info.enable_dp_attention:
            why = f"SGLang with dp_size {info.dp_size} takes no adapters while it runs: name them in --lora-paths"
            return ProblemError(why, lasting=True)
        break
    return answer.problem()


def _is_gone(said: _Said) -> bool:
    return any(words in (said.error_message or "") for words in _GONE)


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
