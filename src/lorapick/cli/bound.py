"""`lorapick bound FILE`: the fewest adapter loads that a sequence of requests can be served with.

In: a trace that names adapters, or a picker's event log; the fleet's slots. Out: the clairvoyant bound, and with
`--exact` the least time that loads take. Exit code 2 for files that cannot be read. Not here: the bounds (see
`sim.bounds`), formats (see `wire`).
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lorapick.model.units import AdapterName
from lorapick.plan.datafiles import DataFileError, open_lines
from lorapick.sim.bounds.fewest import FewestLoads, LoadBound
from lorapick.sim.bounds.keeping import Keeping, Kept, NotProven
from lorapick.sim.bounds.least_cost import Changes, LeastCost, LoadCost, TooLarge, least_cost, load_cost
from lorapick.sim.bounds.logged import Order, logged_adapters
from lorapick.sim.hardware import PRESETS, Hardware
from lorapick.wire.eventlog import LogError, LogReader
from lorapick.wire.traces.adapters import adapter_names, begins_event_log
from lorapick.wire.traces.rows import TraceError

_LONGEST_LINE = 2**25
"""Bytes: an event log's header with the settings of some hundred thousand adapters."""
_PACKED = (".gz", ".zst")
_TELL_EVERY = 2_000
"""Lines between two words of progress."""
_FROM_FEWEST = "the fewest loads, since all later loads cost the same"


class BadInput(Exception):  # noqa: N818 - what it is
    """Something on the command line or in a file: the value, the limit, the remedy."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out, as `--json` has it."""

    file: str
    order: Order
    pods: int
    slots_per_pod: int
    base_requests: int
    """Requests for the base model, which need no slot; left out of the rest."""
    fewest: LoadBound
    exact: LeastCost | None
    """None: not asked for."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bound")(bound)


def bound(
    file: Annotated[
        Path, typer.Argument(help="JSON lines or CSV with `adapter`, or an event log; plain, .gz or .zst.")
    ],
    slots: Annotated[int, typer.Option(help="GPU slots of each pod (max_loras).")],
    pods: Annotated[int, typer.Option(help="Pods.")] = 1,
    order: Annotated[
        Order, typer.Option(help="Order of the requests: as they came, or, of an event log, as they were sent to pods.")
    ] = Order.ARRIVAL,
    base: Annotated[
        list[str] | None, typer.Option(help="A name that means the base model; may be given more than once.")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Also the least seconds that loads take.")] = False,
    adapters: Annotated[
        Path | None, typer.Option(help="With --exact: YAML or JSON list of {name, rank, size}, for what loads cost.")
    ] = None,
    hardware: Annotated[str, typer.Option(help="With --exact: whose load times.")] = "h100-llama70b-int4",
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Say what no policy can beat: the fewest adapter loads for a sequence of requests."""
    try:
        fleet = _fleet_slots(slots, pods)
        cost = _cost(hardware, adapters) if exact else None
        names = _Names(file, order=order, bases=base or [])
        fewest, changes = _count(names, fleet, keep=exact)
        least = _exact(changes, fleet, cost=cost) if cost is not None else None
    except (BadInput, DataFileError, LogError, TraceError, TooLarge) as error:
        print(f"lorapick bound: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    found = Found(
        file=str(file),
        order=order,
        pods=pods,
        slots_per_pod=slots,
        base_requests=names.base_requests,
        fewest=fewest,
        exact=least,
    )
    if as_json:
        print(json.dumps(msgspec.to_builtins(found), indent=2))
    else:
        _tell(found)


def _fleet_slots(slots: int, pods: int) -> int:
    for flag, value in (("--slots", slots), ("--pods", pods)):
        if value < 1:
            raise BadInput(f"{flag} is {value}; at least 1 is needed")
    return slots * pods


# -- requests


class _Names:
    """The adapters of a file's requests, those for the base model counted and left out."""

    def __init__(self, file: Path, *, order: Order, bases: list[str]) -> None:
        self.base_requests = 0
        self.file = file
        self._order = order
        self._bases = dict.fromkeys(bases)

    def read(self, told: Callable[[int, int], None]) -> Iterator[AdapterName]:
        """Names in order; `told` is given lines and bytes read."""
        for name in self._all(_watched(open_lines(self.file, longest=_LONGEST_LINE), told)):
            if name is None or name in self._bases:
                self.base_requests += 1
            else:
                yield name

    def _all(self, lines: Iterator[bytes]) -> Iterator[AdapterName | None]:
        first, name = next(lines, b""), str(self.file)
        whole = chain((first,), lines)
        if begins_event_log(first):
            return logged_adapters(LogReader(whole, name=name), self._order)
        if self._order is not Order.ARRIVAL:
            raise BadInput(f"--order {self._order}: {name} is no event log; other files only have the order of lines")
        return adapter_names(whole, name=name)


def _watched(lines: Iterable[bytes], told: Callable[[int, int], None]) -> Iterator[bytes]:
    size = 0
    for number, line in enumerate(lines, start=1):
        size += len(line)
        if not number % _TELL_EVERY:
            told(number, size)
        yield line


def _count(names: _Names, slots: int, *, keep: bool) -> tuple[LoadBound, Changes]:
    fewest, changes = FewestLoads(slots), Changes()
    with _progress(names) as told:
        for name in names.read(told):
            fewest.add(name)
            if keep:
                changes.add(name)
    return fewest.bound(), changes


# -- costs


def _cost(hardware: str, adapters: Path | None) -> Callable[[AdapterName], LoadCost]:
    preset = PRESETS.get(hardware)
    if preset is None:
        raise BadInput(f"--hardware {hardware!r} is unknown; use one of {', '.join(PRESETS)}")
    usual = load_cost(preset.adapter_size, preset.swap)
    known = _costs(adapters, preset) if adapters is not None else {}
    return lambda name: known.get(name, usual)


def _costs(file: Path, preset: Hardware) -> dict[AdapterName, LoadCost]:
    # Here, since it brings the HTTP server of emulated pods along.
    from lorapick.live.podserver import OptionsError, read_adapters

    try:
        specs = read_adapters(file.read_bytes(), file=str(file))
        return {spec.name: load_cost(spec.size, preset.swap) for spec in specs}
    except OSError as error:
        raise BadInput(f"--adapters {file}: {error.strerror or error}") from None
    except (OptionsError, ValueError) as error:
        raise BadInput(f"--adapters: {error}") from None


def _exact(changes: Changes, slots: int, *, cost: Callable[[AdapterName], LoadCost]) -> LeastCost:
    try:
        with _spinner("solving"):
            return least_cost(changes, slots, cost=cost, solve=_solve)
    except NotProven as error:
        print(f"lorapick bound: the solver gave no proven answer: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _solve(problem: Keeping) -> Kept:
    try:
        from lorapick.plan.flow_bound import solve_keeping  # here, since only this needs the extra
    except ImportError:
        raise BadInput("--exact takes a solver when loads differ in cost: pip install 'lorapick[plan]'") from None
    return solve_keeping(problem)


# -- what is shown


@contextmanager
def _progress(names: _Names) -> Iterator[Callable[[int, int], None]]:
    """A bar over the bytes of a plain file; for a compressed one, whose size is not known, a count of lines."""
    # On stderr, so that --json stays JSON; gone when done.
    console, file = Console(stderr=True), names.file
    packed = file.suffix in _PACKED
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        total = None if packed or not file.is_file() else file.stat().st_size // 1000
        task = bar.add_task(f"{file.name}, {'lines' if packed else 'kB'}", total=total)
        yield lambda lines, size: bar.update(task, completed=lines if packed else size // 1000)


@contextmanager
def _spinner(words: str) -> Iterator[None]:
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task(words, total=None)
        yield


def _tell(found: Found) -> None:
    fewest = found.fewest
    left_out = f" ({found.base_requests:,} more for the base model)" if found.base_requests else ""
    asked = f"{_counted(fewest.requests, 'request')} for {_counted(fewest.adapters, 'adapter')}"
    print(f"{found.file}: {asked}{left_out}")
    slots = f"{_counted(found.pods, 'pod')} × {_counted(found.slots_per_pod, 'slot')}"
    share = f", {fewest.loads / fewest.requests:.2%} of the requests" if fewest.requests else ""
    print(f"fewest loads in the order of {found.order}, {slots}: {fewest.loads:,}{share}")
    print(f"fewest loads in any order: {fewest.adapters:,}, one per adapter")
    if found.exact is not None:
        why = "proven by a minimum-cost flow" if found.exact.solved else _FROM_FEWEST
        print(f"least time that loads take: {found.exact.microseconds / 1e6:,.3f} s ({why})")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
