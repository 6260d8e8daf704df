"""`GET /v1/ledger` of the admin API.

In: query parameters. Out: what a process of its own answers from the file (`live.ledger.answers`).
Not here: which routes there are (`live.admin`).
"""

import asyncio
import math
import time
from contextlib import suppress
from pathlib import Path

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from lorapick.core.ledger.report import MOST_LISTED, Asked
from lorapick.live.ledger.answers import Question, View, command
from lorapick.live.problems import problem
from lorapick.live.publish import Published
from lorapick.model.requests import Outcome
from lorapick.model.units import Seconds
from lorapick.wire.api import ApiReason
from lorapick.wire.moments import MomentError, parse_moment

TIMEOUT: Seconds = 60.0
MOST_ROWS = 10_000
PARAMETERS = (
    ("view", "string"),
    ("from", "string"),
    ("to", "string"),
    ("adapter", "string"),
    ("pod", "string"),
    ("outcome", "string"),
    ("limit", "integer"),
)
_HOUR: Seconds = 3600.0


class LedgerRoute:
    """Answers one question at a time."""

    def __init__(self, published: Published) -> None:
        """`published` names the file."""
        self._published = published
        self._turn = asyncio.Lock()

    async def get(self, request: Request) -> Response:
        """The answer, or what is wrong with the question."""
        path = self._published.ledger()
        if path is None:
            detail = "this picker keeps no ledger; name a file in ledger.path"
            return problem(501, ApiReason.NOT_IMPLEMENTED, detail=detail)
        try:
            question = _question(path, request.query_params)
        except ValueError as error:
            return problem(400, ApiReason.PARAMETER_INVALID, detail=str(error))
        async with self._turn:
            return await _asked(question)


def _question(path: Path, parameters: QueryParams) -> Question:
    unknown = [name for name in parameters if name not in dict(PARAMETERS)]
    if unknown:
        raise ValueError(f"{unknown[0][:40]!r} is no parameter; they are {', '.join(name for name, _ in PARAMETERS)}")
    view = parameters.get("view", View.REPORT)
    if view not in [*View]:
        raise ValueError(f"view: {view[:40]!r} is none of {', '.join(View)}")
    until = _moment(parameters, "to", default=time.time())
    since = _moment(parameters, "from", default=until - _HOUR)
    if not since < until:
        raise ValueError(f"from ({since:.3f}) must be before to ({until:.3f})")
    limit = parameters.get("limit", str(MOST_LISTED))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 9 and 1 <= int(limit) <= MOST_ROWS):
        raise ValueError(f"limit: {limit[:40]!r} is no whole number from 1 to {MOST_ROWS}")
    adapter, pod = parameters.get("adapter"), parameters.get("pod")
    asked = Asked(since, until, adapter=adapter, pod=pod, outcome=_outcome(parameters, view=view), most=int(limit))
    return Question(path=str(path), view=View(view), asked=asked)


def _outcome(parameters: QueryParams, *, view: str) -> Outcome | None:
    text = parameters.get("outcome")
    if text is None:
        return None
    if text not in [*Outcome]:
        raise ValueError(f"outcome: {text[:40]!r} is none of {', '.join(Outcome)}")
    if view != View.REQUESTS:
        raise ValueError(f"outcome goes with view={View.REQUESTS}, and this is view={view}")
    return Outcome(text)


def _moment(parameters: QueryParams, name: str, *, default: Seconds) -> Seconds:
    """Unix time, or a time with its zone: the caller's zone is unknown here."""
    text = parameters.get(name)
    if text is None:
        return default
    with suppress(ValueError):
        number = float(text)
        if math.isfinite(number):
            return number
    try:
        return parse_moment(text)
    except MomentError as error:
        raise ValueError(f"{name}: {error}") from None


async def _asked(question: Question) -> Response:
    child = await asyncio.create_subprocess_exec(
        *command(question), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await asyncio.wait_for(child.communicate(), TIMEOUT)
    except TimeoutError:
        detail = (
            f"no answer within {TIMEOUT:g} s; ask for a shorter time, or read the file with `lorapick ledger --file`"
        )
        return problem(503, ApiReason.INTERNAL, detail=detail)
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    if child.returncode:
        lines = err.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        return problem(503, ApiReason.INTERNAL, detail=f"the ledger cannot be read: {lines[-1]}")
    return Response(out, media_type="application/json", headers={"cache-control": "no-store"})
