"""vLLM's adapter API (0.21 to 0.32): what it is told, and what its answers mean.

In: commands. Out: how they ended. Statuses and texts read in vLLM 0.32.0's `entrypoints/openai/models/serving.py`:
a load is answered by 200 and `Success: ...`; by 400 when the name is taken (`has already been loaded`) or a field is
wrong; by 404 when nothing is at the path; by 500 for all else (0.21 too, by letting the error escape). An unload
forgets the name and frees nothing; 404: not known. Without `VLLM_ALLOW_RUNTIME_LORA_UPDATING` neither path exists.

A load of a new name puts the adapter into a GPU slot. A load of a known one changes nothing, wherever its weights are,
so it is touched instead: a request is all that makes vLLM activate it. Names decide, not paths: what the pod has under
a name is what it serves, so new weights need a new name.
"""

from collections.abc import Callable

from lorapick.live.control.commands import ON_PURPOSE
from lorapick.live.control.door import Answer, Door
from lorapick.live.control.problems import Outcome, ProblemError, UnknownNameError
from lorapick.live.control.touching import error_message, has_no_route, touch
from lorapick.live.ports import NoSourceError
from lorapick.model.effects import Unload
from lorapick.model.units import AdapterName, PodName

LOAD = "/v1/load_lora_adapter"
UNLOAD = "/v1/unload_lora_adapter"
_TAKEN = ("has already been loaded", "already loaded")
_LASTING = ("max_lora_rank", "target modules", "Adapter bias", "required configuration", "contain tensors")
"""Words of 500s that come again: the adapter does not fit this engine, or its files are none."""


class VllmDriver:
    """Commands of vLLM pods. Remembers nothing."""

    loads_into_slot = True
    tells_sources = False

    def remembered(self, pod: PodName, adapter: AdapterName) -> str | None:
        """Nothing: an unloaded adapter is not given back by itself."""
        del pod, adapter
        return None

    def forget(self, gone: Callable[[PodName], bool]) -> None:
        """Nothing is known."""

    async def load(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Bring it into a GPU slot, whether the pod knew its name or not.

        Raises:
            ProblemError: it is not there.
        """
        if isinstance(source, NoSourceError):
            return await _activate(door, adapter, otherwise=_unsaid(source))
        answer = await door.post(LOAD, {"lora_name": adapter, "lora_path": source})
        if answer.status == 200:
            await _confirm(door, adapter, answer=answer, wanted=True)
            return Outcome.DONE
        if _is_taken(answer):
            await touch(door, adapter)
            return Outcome.ALREADY
        if has_no_route(answer):
            return await _activate(door, adapter, otherwise=_closed())
        raise _problem(answer)

    async def register(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Make its name known; that brings it into a slot, unless it was known.

        Raises:
            ProblemError: the pod did not take it.
        """
        if isinstance(source, NoSourceError):
            return await _is_listed(door, adapter, otherwise=_unsaid(source))
        answer = await door.post(LOAD, {"lora_name": adapter, "lora_path": source})
        if answer.status == 200:
            await _confirm(door, adapter, answer=answer, wanted=True)
            return Outcome.DONE
        if _is_taken(answer):
            return Outcome.ALREADY
        if has_no_route(answer):
            return await _is_listed(door, adapter, otherwise=_closed())
        raise _problem(answer)

    async def unload(self, door: Door, command: Unload) -> Outcome:
        """Forget its name, for those who want just that.

        Raises:
            ProblemError: it was wanted for memory, or the pod did not do it.
        """
        if command.why not in ON_PURPOSE:
            raise ProblemError("an unload frees nothing on vllm", lasting=True, outcome=Outcome.REFUSED)
        answer = await door.post(UNLOAD, {"lora_name": command.adapter})
        if answer.status == 200:
            await _confirm(door, command.adapter, answer=answer, wanted=False)
            return Outcome.DONE
        if has_no_route(answer):
            raise _closed()
        if answer.status == 404 and "cannot be found" in error_message(answer):
            return Outcome.ALREADY
        raise _problem(answer)

    async def touch(self, door: Door, adapter: AdapterName, *, source: str | NoSourceError) -> Outcome:
        """Have one token generated with it; raises as `touching.touch`."""
        del source
        return await touch(door, adapter)


async def _activate(door: Door, adapter: AdapterName, *, otherwise: ProblemError) -> Outcome:
    """Bring an adapter that the pod may know into a slot; raises `otherwise` when it knows no such name."""
    try:
        await touch(door, adapter)
    except UnknownNameError:
        raise otherwise from None
    return Outcome.ALREADY


async def _is_listed(door: Door, adapter: AdapterName, *, otherwise: ProblemError) -> Outcome:
    """Look whether the pod knows the name; raises `otherwise` when it does not."""
    if adapter not in await door.listed():
        raise otherwise
    return Outcome.ALREADY


async def _confirm(door: Door, adapter: AdapterName, *, answer: Answer, wanted: bool) -> None:
    """Believe a 200 that says so; look for the name after one that says something else (a proxy's page, say)."""
    if b"success" not in answer.body.lower() and (adapter in await door.listed()) is not wanted:
        raise ProblemError(f"its list of models does not bear out its answer: {answer.told()}")


def _is_taken(answer: Answer) -> bool:
    return answer.status == 400 and any(words in error_message(answer) for words in _TAKEN)


def _problem(answer: Answer) -> ProblemError:
    problem = answer.problem()
    said = error_message(answer)
    problem.lasting |= answer.status == 500 and any(words in said for words in _LASTING)
    return problem


def _closed() -> ProblemError:
    why = "loading at run time is off there: start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, or with --lora-modules"
    return ProblemError(why, lasting=True)


def _unsaid(source: NoSourceError) -> ProblemError:
    return ProblemError(f"{source}, and the pod does not know the name", lasting=source.lasting)
