"""A `lorapick plan` command made from a table of assumptions: an option for each, and a report as text, JSON or a page.

In: a command's name, its assumptions, the function that reckons. Out: the command. Exit code 2 for bad input.
Not here: the reckoning (`plan.bill`), how a report looks (`plan.work`, `plan.work_page`).
"""

import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from lorapick.plan.work import Figure, Report, print_report, shown, to_json, unlike_article
from lorapick.plan.work_page import report_page
from lorapick.wire.units import UnitError, parse_duration, parse_size

_WIDTH = 120
"""Columns of a report where there is no terminal."""
TextOption = tuple[str, str, str]
"""Name, default and help of an option that is no number."""


def add(
    app: typer.Typer,
    name: str,
    *,
    defaults: Sequence[Figure],
    report: Callable[..., Report],
    texts: Sequence[TextOption] = (),
) -> None:
    """Add a command whose options are the assumptions; `report(given, **texts)` reckons, and its docstring is the help.

    `report` raises ValueError, or OSError, for what cannot be.
    """
    app.command(name, help=report.__doc__)(_Command(name, defaults, report=report, texts=texts))


class _Command:
    """What typer calls. It has the signature of a function that was written for these options."""

    def __init__(
        self, name: str, defaults: Sequence[Figure], *, report: Callable[..., Report], texts: Sequence[TextOption]
    ) -> None:
        self._name = name
        self._defaults = defaults
        self._report = report
        self._texts = [text for text, _, _ in texts]
        parameters = [*(_text(each) for each in texts), *(_option(each) for each in defaults), *_COMMON]
        self.__signature__ = inspect.Signature(parameters)
        self.__annotations__ = {each.name: each.annotation for each in parameters}

    def __call__(self, **options: Any) -> None:
        try:
            given = {each.name: _number(each, options[_variable(each.name)]) for each in self._defaults}
            texts = {text: options[_variable(text)] for text in self._texts}
            found = unlike_article(self._report(given, **texts))
            show(found, as_json=options["as_json"], page=options["html"], show_work=options["show_work"])
        except (OSError, ValueError) as error:
            print(f"lorapick plan {self._name}: {error}", file=sys.stderr)
            raise typer.Exit(2) from None


def show(
    report: Report, *, as_json: bool, page: Path | None, show_work: bool, more: Mapping[str, object] | None = None
) -> None:
    """Print the report; first write its page, where one is wanted. `more` are further keys of its JSON.

    Raises:
        OSError: the page cannot be written.
    """
    if page is not None:
        page.write_text(report_page(report), encoding="utf-8")
    if as_json:
        print(json.dumps({**to_json(report), **(more or {})}, indent=2, ensure_ascii=False))
    else:
        console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
        print_report(console, report, show_work=show_work)


def _variable(option: str) -> str:
    return option.replace("-", "_")


def _keyword(name: str, annotation: Any, *, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(default: Figure) -> inspect.Parameter:
    words = f"{default.formula} ({default.source})"
    option = typer.Option(
        f"--{default.name}",
        help=words[0].upper() + words[1:],
        metavar=_METAVARS.get(default.unit, "NUMBER"),
        show_default=shown(default.value, default.unit),
    )
    return _keyword(_variable(default.name), Annotated[str | None, option], default=None)


def _text(text: TextOption) -> inspect.Parameter:
    name, default, words = text
    return _keyword(_variable(name), Annotated[str, typer.Option(f"--{name}", help=words)], default=default)


_METAVARS = {"B": "SIZE", "B/s": "SIZE/s", "s": "DURATION", "share": "SHARE"}
_COMMON = (
    _keyword(
        "show_work", Annotated[bool, typer.Option("--show-work", help="With formulas and sources.")], default=False
    ),
    _keyword("as_json", Annotated[bool, typer.Option("--json", help="Say it as JSON.")], default=False),
    _keyword(
        "html", Annotated[Path | None, typer.Option("--html", help="Also write a page with charts.")], default=None
    ),
)


def _number(default: Figure, text: str | None) -> float | None:
    """A number as it was given; None: it was not.

    Raises:
        ValueError: it is none, naming the option.
    """
    if text is None:
        return None
    try:
        return _READERS.get(default.unit, _plain)(text, whole=isinstance(default.value, int))
    except (UnitError, ValueError) as error:
        raise ValueError(f"--{default.name} {text!r}: {error}") from None


def _plain(text: str, *, whole: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("not a number") from None
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    if whole and value != int(value):
        raise ValueError("give a whole number")
    return int(value) if whole else value


def _share(text: str, *, whole: bool) -> float:
    percent = text.endswith("%")
    value = _plain(text.removesuffix("%"), whole=whole)
    return value / 100 if percent else value


def _bandwidth(text: str) -> float:
    size = parse_size(text.removesuffix("/s"))
    if not text.endswith("/s"):
        raise ValueError(f'not a bandwidth; write bytes per second, such as "{text}/s"')
    return size


_READERS: dict[str, Callable[..., float]] = {
    "s": lambda text, **_: parse_duration(text),
    "B": lambda text, **_: parse_size(text),
    "B/s": lambda text, **_: _bandwidth(text),
    "share": _share,
}
