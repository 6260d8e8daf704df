"""`lorapick demo`: the same traffic under several policies, each on pods of its own.

In: policies and sizes. Out: swaps, hit ratio, time to first token and latency for each policy, side by side.
Not here: the parts (see `live.stack`), the load (see `live.traffic`), the figures (see `wire.report`).
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Annotated

import aiohttp
import msgspec
import typer
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lorapick.core.picking.policies import POLICIES
from lorapick.live.stack import Stack, StackError
from lorapick.live.stack_options import MOST_ADAPTERS
from lorapick.live.traffic import Mix, Record, Results, drive
from lorapick.model.pods import Pod, PodLimits
from lorapick.pod.values import SwapMode
from lorapick.wire.exposition import ExpositionError
from lorapick.wire.report import (
    DemoReport,
    DemoSetup,
    Observed,
    PodCounts,
    PolicyResult,
    read_pod_counts,
    rows,
    summarise,
)

Tell = Callable[[str, int], None]
"""Told what is going on and how many requests have ended."""
_SCRAPE_TIMEOUT_S = 10.0


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("demo")(demo)


def demo(
    policy: Annotated[list[str] | None, typer.Option(help="A policy to compare; may be given several times.")] = None,
    adapters: Annotated[int, typer.Option(min=1, max=MOST_ADAPTERS, help="Adapters, the first the most popular.")] = 40,
    pods: Annotated[int, typer.Option(min=1, help="Emulated pods.")] = 8,
    slots: Annotated[int, typer.Option(min=1, help="GPU slots for adapters on each pod.")] = 4,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests per second on average, Poisson.")] = 60.0,
    requests: Annotated[int, typer.Option(min=1, help="Requests for each policy.")] = 1200,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Same seed, same adapters, times and sizes.")] = 1,
    zipf: Annotated[float, typer.Option(min=0.0, help="Skew of popularity; 0: all adapters alike.")] = 1.0,
    mode: Annotated[SwapMode, typer.Option(help="drain: finish the batch before a swap; inline: as vLLM.")] = (
        SwapMode.INLINE
    ),
    scrape_interval: Annotated[
        float, typer.Option(min=0.01, help="Seconds between scrapes; llm-d's picker: 0.05.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Compare policies: the same seeded Zipf traffic, each on fresh emulated pods behind a real Envoy."""
    policies = policy or ["weighted", "round-robin"]
    for name in policies:
        if name not in POLICIES:
            _fail(f"--policy {name!r} is unknown; use one of {', '.join(POLICIES)}", code=2)
    for flag, value in (("--rate", rate), ("--zipf", zipf), ("--scrape-interval", scrape_interval)):
        if not isfinite(value):
            _fail(f"{flag} is {value:g}; it must be a number that is not infinite", code=2)
    setup = DemoSetup(
        adapters=adapters,
        pods=pods,
        slots=slots,
        rate=rate,
        requests=requests,
        seed=seed,
        zipf=zipf,
        mode=mode,
        scrape_interval=scrape_interval,
    )
    try:
        with _progress(requests) as tell_of:
            report = uvloop.run(compare(policies, setup, tell_of))
    except StackError as error:
        _fail(str(error), code=1)
    if as_json:
        print(msgspec.json.encode(report).decode())
    else:
        show(report, Console(highlight=False))


def _fail(message: str, *, code: int) -> None:
    print(f"lorapick demo: {message}", file=sys.stderr)
    raise typer.Exit(code)


async def compare(policies: Sequence[str], setup: DemoSetup, tell_of: Callable[[str], Tell]) -> DemoReport:
    """One policy after the other, since at once they would share the machine.

    Raises:
        StackError: a part did not come up, or a pod does not tell its counts.
    """
    results = [await run(policy, setup, tell_of(policy)) for policy in policies]
    return DemoReport(setup=setup, results=tuple(results))


async def run(policy: str, setup: DemoSetup, tell: Tell) -> PolicyResult:
    """Start a stack, drive it, and read what its pods counted in between. Raises StackError."""
    tell("starting", 0)
    limits = PodLimits(max_loras=setup.slots, max_cpu_loras=max(PodLimits().max_cpu_loras, setup.slots))
    async with Stack(
        pods=setup.pods,
        adapters=setup.adapters,
        policy=policy,
        limits=limits,
        mode=setup.mode,
        seed=setup.seed,
        configuration={"scrape": {"interval": f"{round(setup.scrape_interval * 1000)}ms"}},
    ) as stack:
        mix = Mix(adapters=stack.options.adapter_names, zipf=setup.zipf)
        before = await _pod_counts(stack.pods)
        ended = 0

        def on_progress(_: Record) -> None:
            nonlocal ended
            ended += 1
            tell("driving", ended)

        results = await drive(
            stack.endpoint, mix, requests=setup.requests, rate=setup.rate, seed=setup.seed, on_progress=on_progress
        )
        counts = await _pod_counts(stack.pods) - before
        tell("ending", ended)
    return summarise(policy, _observed(results), counts, seconds=results.seconds, pods=setup.pods)


def _observed(results: Results) -> list[Observed]:
    return [Observed(latency=record.latency, ttft=record.ttft, error=record.error) for record in results.records]


async def _pod_counts(pods: Sequence[Pod]) -> PodCounts:
    """What all pods together have counted."""
    timeout = aiohttp.ClientTimeout(total=_SCRAPE_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session:

        async def one(pod: Pod) -> PodCounts:
            async with session.get(f"http://{pod.address}/metrics") as response:
                return read_pod_counts(await response.read())

        try:
            counts = await asyncio.gather(*(one(pod) for pod in pods))
        except (aiohttp.ClientError, OSError, TimeoutError, ExpositionError) as error:
            raise StackError(f"a pod does not tell its counts: {type(error).__name__} {error}") from None
    return sum(counts, start=PodCounts())


@contextmanager
def _progress(requests: int) -> Iterator[Callable[[str], Tell]]:
    """A bar for each policy, on stderr so that stdout has the report alone; no bars when nobody watches."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def tell_of(policy: str) -> Tell:
            task = progress.add_task(policy, total=requests)

            def tell(doing: str, ended: int) -> None:
                progress.update(task, description=f"{policy}: {doing}", completed=ended)

            return tell

        yield tell_of


def show(report: DemoReport, console: Console) -> None:
    """Print the report as a table."""
    setup = report.setup
    console.print(
        f"{setup.requests:,} requests at {setup.rate:g}/s over {setup.adapters} adapters (Zipf {setup.zipf:g}), "
        f"{setup.pods} emulated pods × {setup.slots} slots, swaps {setup.mode}, "
        f"scraped every {setup.scrape_interval:g} s, seed {setup.seed}, cold start included",
        soft_wrap=True,
    )
    header, *body = rows(report)
    table = Table(*header, box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in body:
        table.add_row(*row)
    console.print(table)
