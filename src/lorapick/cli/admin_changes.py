"""What commands that change something have in common: labels, paths, the answer in words, waiting.

In: arguments as they were typed, answers of the admin API. Out: bodies, lines. Not here: each command (see `adapters`).
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated
from urllib.parse import quote

import typer

from lorapick.cli import admin_client
from lorapick.live.admin_views import AdapterDetail
from lorapick.live.publish import FleetSnapshot
from lorapick.model.pods import Engine
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.wire.admin_answers import Done, PlacementAnswer

_POLL: Seconds = 0.2
_HELD = (Tier.GPU_IDLE.word, Tier.GPU_SERVING.word)

PodsOption = Annotated[list[str] | None, typer.Option("--pod", help="This pod; may be given more than once.")]
LabelsOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="Pods with this label; may be given again.")
]
WaitOption = Annotated[float, typer.Option(min=0.0, help="Wait for so many seconds until it is resident.")]


def pairs(words: Sequence[str] | None, *, option: str) -> dict[str, str]:
    """`key=value` words as a mapping. Raises AdminError."""
    found = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise admin_client.AdminError(f"{option} {word!r} is no pair; write key=value")
        if key in found:
            raise admin_client.AdminError(f"{option} {key!r} is given twice")
        found[key] = value
    return found


def given(**values: object) -> dict[str, object]:
    """A body of what was given: not None, and not empty. Names may end in an underscore."""
    return {name.rstrip("_"): value for name, value in values.items() if value not in (None, [], {}, "", False)}


def path_of(*parts: str) -> str:
    """The path `/v1/...` of these parts; names may hold slashes, which stay."""
    return "/v1/" + "/".join(quote(part, safe="/@") for part in parts)


def told(body: bytes, admin: str, *, as_json: bool) -> Done:
    """Print what came of a change, and return it."""
    done = admin_client.decode(body, Done, admin)
    print(body.decode() if as_json else "\n".join(_lines(done)))
    return done


def _lines(done: Done) -> Iterator[str]:
    yield done.understood if done.changed else f"nothing to do: {done.understood}"
    if done.pods:
        yield f"  wanted on {', '.join(done.pods)}"
    if done.resident:
        yield f"  resident on {', '.join(done.resident)}"
    for note in done.notes:
        yield f"  {note}"


def wait_for_pin(admin: str, name: AdapterName, *, within: Seconds) -> None:
    """Wait until a pinned adapter is on all of its pods. Raises AdminError, and exits with 1 when it takes longer."""

    def missing() -> str:
        placement = admin_client.decode(admin_client.get(admin, "/v1/placement"), PlacementAnswer, admin)
        row = next((row for row in placement.pins if row.adapter == name), None)
        if row is None:
            return "it is pinned no more"
        waits = [f"{each.pod}: {each.reason}" for each in placement.refusals if each.adapter == name]
        if row.pods and not row.missing:
            return ""
        return "; ".join([row.problem or f"not yet on {', '.join(row.missing) or 'any pod'}", *waits])

    _wait(missing, name, within=within)


def wait_for_load(admin: str, name: AdapterName, *, pods: Sequence[PodName], within: Seconds) -> None:
    """Wait until an adapter is on these pods. Raises AdminError, and exits with 1 when it takes longer."""
    fleet = admin_client.decode(admin_client.get(admin, "/v1/fleet"), FleetSnapshot, admin)
    # A load on SGLang ends in host memory.
    hosts = [pod.name for pod in fleet.pods if pod.engine is Engine.SGLANG]

    def missing() -> str:
        detail = admin_client.decode(admin_client.get(admin, path_of("adapters", name)), AdapterDetail, admin)
        there = [
            cell.pod
            for cell in detail.cells
            if cell.tier in _HELD or (cell.tier == Tier.CPU.word and cell.pod in hosts)
        ]
        left = [pod for pod in pods if pod not in there]
        if not pods:
            return "no pod can hold it now"
        return f"not yet on {', '.join(left)}" if left else ""

    _wait(missing, name, within=within)


def _wait(missing: Callable[[], str], name: AdapterName, *, within: Seconds) -> None:
    """`missing` says what is, in words."""
    end = time.monotonic() + within
    while words := missing():
        if time.monotonic() >= end:
            print(f"{name} is not there after {within:g} s: {words}", file=sys.stderr)
            raise typer.Exit(1)
        time.sleep(_POLL)
    print(f"{name} is there", file=sys.stderr)
