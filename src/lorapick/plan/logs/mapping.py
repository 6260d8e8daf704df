"""Which column of each file has adapters, times and tokens.

In: forms of files, options. Out: columns by role. Not here: what names mean (see `names`).

Each file is looked at by itself. But one with a column of models only, beside files with one of adapters, says nothing
about adapters: then its requests are for the base model if it is JSON, which leaves out what is empty, and it is
refused otherwise.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lorapick.plan.logs import names
from lorapick.plan.logs.options import LogError, LogOptions
from lorapick.plan.logs.shapes import Column, Kind, Shape

OPTIONS = {
    "adapter": "--adapter-column",
    "time": "--time-column",
    "prompt_tokens": "--prompt-column",
    "output_tokens": "--output-column",
}
"""Of the command line, by role."""
_KINDS: dict[str, tuple[Kind, ...]] = {
    "adapter": ("text", "number"),
    "time": ("text", "number", "time"),
    "prompt_tokens": ("text", "number"),
    "output_tokens": ("text", "number"),
}
_WORDS = {"adapter": "adapters", "time": "times", "prompt_tokens": "prompt tokens", "output_tokens": "output tokens"}


class Roles(NamedTuple):
    """Columns of one file."""

    adapter: Column | None
    """None: all its requests are for the base model."""
    time: Column
    prompt_tokens: Column | None
    output_tokens: Column | None


def assign(shapes: Sequence[Shape], options: LogOptions) -> list[Roles]:
    """Roles in each file.

    Raises:
        LogError: a column that is needed, or was asked for, is missing; with the columns that there are.
    """
    said = any(_guessed(shape, "adapter", candidates=names.ADAPTER) for shape in shapes)
    return [
        Roles(
            adapter=_adapter(shape, shapes, wanted=options.adapter, said=said),
            time=_time(shape, shapes, wanted=options.time),
            prompt_tokens=_tokens(shape, shapes, role="prompt_tokens", wanted=options.prompt_tokens),
            output_tokens=_tokens(shape, shapes, role="output_tokens", wanted=options.output_tokens),
        )
        for shape in shapes
    ]


def _adapter(shape: Shape, shapes: Sequence[Shape], *, wanted: str | None, said: bool) -> Column | None:
    """`said`: some file has a column of adapters, not only one of models."""
    if wanted is not None:
        return _named(shape, shapes, role="adapter", wanted=wanted)
    found = _guessed(shape, "adapter", candidates=names.ADAPTER if said else names.MODEL)
    if found is None and not (said and shape.file.format == "json"):
        raise _missing(shape, "adapter")
    return found


def _time(shape: Shape, shapes: Sequence[Shape], *, wanted: str | None) -> Column:
    if wanted is not None:
        found = _named(shape, shapes, role="time", wanted=wanted)
    else:
        found = _guessed(shape, "time", candidates=names.TIME)
    if found is None:
        raise _missing(shape, "time")
    return found


def _tokens(shape: Shape, shapes: Sequence[Shape], *, role: str, wanted: str | None) -> Column | None:
    if wanted is not None:
        return _named(shape, shapes, role=role, wanted=wanted)
    candidates = names.PROMPT_TOKENS if role == "prompt_tokens" else names.OUTPUT_TOKENS
    return _guessed(shape, role, candidates=candidates)


def _guessed(shape: Shape, role: str, *, candidates: Sequence[str]) -> Column | None:
    usable = [column for column in shape.columns if column.kind in _KINDS[role]]
    name = names.guess([column.name for column in usable], candidates)
    return next((column for column in usable if column.name == name), None)


def _named(shape: Shape, shapes: Sequence[Shape], *, role: str, wanted: str) -> Column | None:
    """None: a file of JSON lacks what another one has."""
    found = _column(shape, wanted)
    if found is None:
        if shape.file.format == "json" and any(_column(other, wanted) for other in shapes):
            return None
        near = names.near(shape.names(), wanted)
        meant = f"; is it {' or '.join(near)}?" if near else ""
        raise LogError(
            f"{shape.file.name}: no column {wanted!r} ({OPTIONS[role]}): {names.listing(shape.names())}{meant}"
        )
    if found.kind not in _KINDS[role]:
        raise LogError(f"{shape.file.name}: column {wanted!r} ({OPTIONS[role]}) cannot hold {_WORDS[role]}")
    return found


def _column(shape: Shape, name: str) -> Column | None:
    found = names.find(shape.names(), name)
    return next((column for column in shape.columns if column.name == found), None)


def _missing(shape: Shape, role: str) -> LogError:
    near = names.near(shape.names(), role)
    meant = f" (perhaps {' or '.join(near)})" if near else ""
    return LogError(
        f"{shape.file.name}: no column that looks like {_WORDS[role]}: {names.listing(shape.names())}; "
        f"say which one it is{meant}: {OPTIONS[role]}"
    )


def taken(roles: Iterable[Roles]) -> dict[str, str]:
    """Names of columns by role; several where files differ."""
    found: dict[str, dict[str, None]] = {}
    for each in roles:
        for role, column in each._asdict().items():
            if column is not None:
                found.setdefault(role, {})[column.name] = None
    return {role: ", ".join(many) for role, many in found.items()}
