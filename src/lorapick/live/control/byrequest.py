"""TensorRT-LLM and Triton: engines that load an adapter when a request names it, and have no other way to be told.

In: commands. Out: how they ended. A load and a touch are the same here: a request for one token, in the words of
`wire.asking`. It brings the weights into both caches of the engine, or finds them there; which of the two, nobody says.
There is no path to unload, to list what is cached, or to pin: both caches are LRU, and what is touched stays.

Facts read in TensorRT-LLM 1.3 and tensorrtllm_backend 0b9d7d5:
- `trtllm-serve` takes name, number and path with each request (`lora_request`), and refuses a path where nothing is
  with 400. It reads the weights at the first request, and again when its host cache has lost them.
- Triton's OpenAI frontend has the adapters of `multi_lora.json`, and refuses other names with 400.
- `Cache is full` and `not found in cache` (500) are about room at this moment, not about the adapter.
"""

from collections.abc import Callable

from lorapick.live.control.door import Answer, Door
from lorapick.live.control.problems import Outcome, ProblemError, UnknownNameError
from lorapick.live.control.touching import PATH, ask, error_message, has_no_route
from lorapick.live.ports import NoSourceError
from lorapick.model.effects import Unload
from lorapick.model.pods import Engine
from lorapick.model.requests import Wording
from lorapick.model.units import AdapterName, PodName
from lorapick.wire.asking import WordingError, wording

_UNKNOWN = ("unknown lora", "unknown model")
_NOTHING_THERE = ("lora_path", "does not exist")
_FULL = ("cache is full", "not found in cache", "no done tasks")
_LASTING = ("lora is not enabled", "lora_config", "extra inputs are not permitted", "extra_forbidden", "max_lora_rank")
"""Words of refusals that come again whatever their status: the server was started for no adapters, or not for these."""


class ByRequestDriver:
    """Commands of one of these engines. Remembers nothing."""

    loads_into_slot = True

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.tells_sources = engine is Engine.TRTLLM
        """Touches need a source too."""

    def remembered(self, pod: PodName, adapter: AdapterName) -> str | None:
        """Nothing: what a pod cannot be told to unload needs not be given back."""
        del pod, adapter
        return None

    def forget(self, gone: Callable[[PodName], bool]) -> None:
        """Nothing is known."""

    async def load(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Ask for one token. ALREADY: whether anything had to be loaded for it cannot be seen.

        Raises:
            ProblemError: no completion came of it.
        """
        await self._ask(door, adapter, source=source)
        return Outcome.ALREADY

    async def touch(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Ask for one token; raises as `load`."""
        await self._ask(door, adapter, source=source)
        return Outcome.DONE

    async def register(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Nothing is told: TensorRT-LLM hears name and path with each request.

        Raises:
            ProblemError: it will not hear of it, since nobody knows the path, or this is Triton.
        """
        if self._engine is Engine.TRTLLM:
            _words(door, adapter, source=source)
            return Outcome.ALREADY
        why = "Triton's frontend has the adapters of its multi_lora.json: add it there, and start it again"
        raise ProblemError(why, lasting=True, outcome=Outcome.REFUSED)

    async def unload(self, door: Door, command: Unload) -> Outcome:
        """Nothing can be told.

        Raises:
            ProblemError: always.
        """
        del door, command
        why = f"{_NAMES[self._engine]} has no path to unload an adapter: its caches evict the least recently used"
        raise ProblemError(why, lasting=True, outcome=Outcome.REFUSED)

    async def _ask(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> None:
        words, repeats = _words(door, adapter, source=source), self._engine is Engine.TRITON
        answer = await ask(door, adapter, words=words, repeats=repeats)
        if answer.status == 200:
            return
        if has_no_route(answer):
            raise ProblemError(f"it has no {PATH}: serve it through its OpenAI server", lasting=True)
        raise _problem(answer)


_NAMES = {Engine.TRTLLM: "TensorRT-LLM", Engine.TRITON: "Triton"}


def _words(door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Wording | None:
    try:
        return wording(door.pod, adapter, source=source if isinstance(source, str) else None)
    except WordingError as error:
        lasting = source.lasting if isinstance(source, NoSourceError) else True
        raise ProblemError(str(error), lasting=lasting, outcome=Outcome.REFUSED) from None


def _problem(answer: Answer) -> ProblemError:
    said = error_message(answer).lower()
    if any(words in said for words in _FULL):
        return ProblemError(f"its adapter cache has no room now ({answer.told()})")
    if answer.status in (400, 404) and any(words in said for words in _UNKNOWN):
        return UnknownNameError(f"it does not serve the adapter ({answer.told()})", lasting=True)
    problem = answer.problem()
    if all(words in said for words in _NOTHING_THERE):
        problem = ProblemError(f"nothing is at that path on the pod ({answer.told()})", lasting=True)
    problem.lasting |= any(words in said for words in _LASTING)
    return problem
