"""The options of `lorapick check`.

In: nothing. Out: types of the command's parameters, with what `--help` says of them. Not here: the command itself
(see `check`).
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lorapick.plan.prediction.values import Costs

DEFAULTS = Costs()


class Format(StrEnum):
    """How the verdict is said."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"


RolloutFile = Annotated[
    Path | None,
    typer.Argument(help="List, difference or split in a file, or a directory of PEFT adapters. Default: no change."),
]
Config = Annotated[Path | None, typer.Option(help="The fleet's configuration, lorapick.yaml.")]
Admin = Annotated[
    str | None, typer.Option("--admin", "--url", envvar="LORAPICK_ADMIN", help="Or a running picker's admin API.")
]
Today = Annotated[Path | None, typer.Option(help="List of today's adapters; default: the fleet's own.")]
UndeclaredOk = Annotated[
    bool, typer.Option("--undeclared-ok", help="Say nothing of names in --today that the fleet does not know.")
]
Splits = Annotated[list[str] | None, typer.Option(help="`a: 50, a-experiment: 50`: a's traffic, dealt out anew.")]
Rate = Annotated[
    float, typer.Option(help="Requests per second of all adapters; those without a rate share what is left.")
]
Zipf = Annotated[float, typer.Option(help="Popularity of adapters without a rate, by their order.")]
Slots = Annotated[int | None, typer.Option(help="Slots of each pod then.")]
Pods = Annotated[int | None, typer.Option(help="Pods then.")]
Pins = Annotated[list[str] | None, typer.Option(help="An adapter that is pinned then, once.")]
Swap = Annotated[
    float | None,
    typer.Option(
        help=f"Seconds that a load keeps requests waiting. Default: {DEFAULTS.swap:g}, or what today's P95 leaves."
    ),
]
Latency = Annotated[
    float | None, typer.Option(help="Median seconds of requests without a swap. Default: half of their P95.")
]
LatencyP95 = Annotated[
    float | None,
    typer.Option(
        help="P95 as the fleet shows it today, swaps included; without a today of requests that meet none. "
        f"Default: {DEFAULTS.latency_p95:g}."
    ),
]
Model = Annotated[
    str | None, typer.Option(help="What the pods serve: a common model's name, or a config.json. Default: by name.")
]
Form = Annotated[Format, typer.Option("--format", help="How to say it.")]
AsJson = Annotated[bool, typer.Option("--json", help="As `--format json`, as all `plan` commands have it.")]
ShowWork = Annotated[bool, typer.Option("--show-work", help="With formulas and sources, in each format.")]
Html = Annotated[Path | None, typer.Option(help="Also write a page with charts to this file.")]
