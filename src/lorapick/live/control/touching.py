"""A touch: one token from the completions API, so that the adapter is the one its engine used last.

In: a pod, an adapter. Out: agreement, or a problem. Costs one sequence slot for a step, and a GPU slot as any request
does: it may wait behind others, and it may evict. The request carries `x-lorapick-touch: 1` for those who count
requests at the pod; it goes there directly, so no gateway sees it and no quota counts it.
"""

from typing import Any

import msgspec

from lorapick.live.control.door import Answer, Door
from lorapick.live.control.problems import Outcome, ProblemError, UnknownNameError
from lorapick.model.requests import Wording
from lorapick.model.units import AdapterName
from lorapick.wire.asking import model_for

PATH = "/v1/completions"
HEADERS = {"x-lorapick-touch": "1"}
_PROMPT = "x"
"""Text, not token ids: every server of this API takes it. Too short to fill a block of the prefix cache."""
_UNKNOWN = ("does not exist", "not loaded", "never been loaded", "not found", "unknown lora", "unknown model")
"""Of vLLM, SGLang and Triton, when a request names an adapter that they do not serve; in lower case."""
_NO_ROUTE = ("Not Found", "Method Not Allowed")


class _Completion(msgspec.Struct):
    choices: list[Any]
    model: str | None = None


async def touch(door: Door, adapter: AdapterName, *, words: Wording | None = None) -> Outcome:
    """Ask for one token, in the words that this engine wants; None: by name.

    Raises:
        UnknownNameError: the pod does not serve the adapter.
        ProblemError: no completion came of it.
    """
    answer = await ask(door, adapter, words=words)
    if answer.status == 200:
        return Outcome.DONE
    if has_no_route(answer):
        raise ProblemError(f"it has no {PATH}, without which no adapter can be touched", lasting=True)
    said = error_message(answer).lower()
    if answer.status in (400, 404) and any(words in said for words in _UNKNOWN):
        raise UnknownNameError(f"it does not serve the adapter ({answer.told()})")
    raise answer.problem()


async def ask(door: Door, adapter: AdapterName, *, words: Wording | None, repeats: bool = True) -> Answer:
    """Ask for one token; the answer, which is a completion if its status is 200.

    Args:
        door: the pod.
        adapter: whose token.
        words: how this engine is asked; None: by name.
        repeats: answers of this engine name the model that was asked for; else one name of their own.

    Raises:
        ProblemError: it has that status and is none, or another model answered.
    """
    words = words if words is not None else Wording(model=adapter)
    body = {"model": model_for(words, PATH), "prompt": _PROMPT, "max_tokens": 1, **words.fields}
    answer = await door.post(PATH, body, headers=HEADERS)
    if answer.status == 200:
        _check(answer, names=(None, adapter, words.model) if repeats else None)
    return answer


def _check(answer: Answer, *, names: tuple[str | None, ...] | None) -> None:
    try:
        completion = msgspec.json.decode(answer.body, type=_Completion)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProblemError(f"no completion ({error}): {answer.told()}") from None
    if names is not None and completion.model not in names:
        raise ProblemError(f"another model answered: {completion.model!r}")


class _Detail(msgspec.Struct):
    message: str | None = None


class _Error(msgspec.Struct):
    """OpenAI's shape (`error.message`), older vLLM's (`message`), FastAPI's (`detail`)."""

    error: _Detail | str | None = None
    message: str | None = None
    detail: Any = None


def error_message(answer: Answer) -> str:
    """What an error says; the whole body when it has none of the usual shapes."""
    try:
        error = msgspec.json.decode(answer.body, type=_Error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return answer.body.decode(errors="replace")
    inner = error.error.message if isinstance(error.error, _Detail) else error.error
    said = inner or error.message or error.detail
    return said if isinstance(said, str) else answer.body.decode(errors="replace")


def has_no_route(answer: Answer) -> bool:
    """Whether the pod has no such path at all: the web framework's own words, which no handler uses."""
    return answer.status in (404, 405) and error_message(answer).strip() in _NO_ROUTE
