"""Measured runs of one engine under LoRA traffic, as tables have them.

In: lines of two CSV tables (`data/README.md` says where ours come from). Out: `Run`s, and what slots cost in memory.
Not here: files (`plan.datafiles`), what the pod model makes of them (`simulated`).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from lorapick.model.units import Ratio, Seconds, Tokens

Group: TypeAlias = tuple[str, str]
"""Model and rates: what a fold holds out as a whole."""

OVERLOAD: Ratio = 0.95
"""Below this share of the offered requests, a run is overloaded: its queue grew."""


LEAST, MOST = 1e-6, 1e6
"""Numbers that are believed, whatever they count."""
MOST_REQUESTS = 1e7
"""In a run, for it to be played."""


LAYERS = {"llama-3.1-8b-instruct": 32, "qwen-2.5-7b-instruct": 28}
"""`num_hidden_layers` of the models' published configurations. Other models have a column `layers`."""


class TableError(ValueError):
    """A table of runs cannot be read: line, column, value, remedy."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One measured run: rates of requests that came, what was configured, and what was seen."""

    line: int
    """Of the table."""
    model: str
    layers: int
    """Of the model."""
    rates: tuple[float, ...]
    """Requests per second of each adapter, given to the adapters in turn."""
    slots: int
    adapters: int
    """Also the engine's `max_cpu_loras`."""
    rank: int
    """The engine's `max_lora_rank`."""
    seconds: Seconds
    served: float
    """Requests completed per second."""
    output_rate: float
    """Tokens per second."""
    input_rate: float
    ttft: Seconds
    """Mean; so is `tpot`."""
    ttft_p99: Seconds
    tpot: Seconds

    @property
    def group(self) -> Group:
        """What a fold holds out as a whole."""
        return self.model, "_".join(f"{rate:g}" for rate in self.rates)

    @property
    def setting(self) -> str:
        """Slots/adapters, rank."""
        return f"{self.slots}/{self.adapters} r{self.rank}"

    @property
    def name(self) -> str:
        """Group and setting."""
        return f"{self.model} {self.group[1]} {self.setting}"

    @property
    def offered(self) -> float:
        """Requests per second that came."""
        return sum(self.rate_of(adapter) for adapter in range(self.adapters))

    def rate_of(self, adapter: int) -> float:
        """Requests per second for one adapter."""
        return self.rates[adapter % len(self.rates)]

    @property
    def overloaded(self) -> bool:
        """Whether markedly less was served than came."""
        return self.served < OVERLOAD * self.offered

    @property
    def prompt_tokens(self) -> float:
        """Mean of the requests served."""
        return self.input_rate / self.served

    @property
    def output_tokens(self) -> float:
        """Mean of the requests served."""
        return self.output_rate / self.served

    @property
    def batch(self) -> float:
        """Mean number of requests that ran, by Little's law."""
        return self.output_rate * self.tpot


class SlotCost(msgspec.Struct, frozen=True, kw_only=True):
    """An engine with so many slots of a rank, and one request of the base model. None: it did not start."""

    model: str
    layers: int
    slots: int
    rank: int
    kv_tokens: Tokens | None
    tpot: Seconds | None


SlotCosts: TypeAlias = Mapping[tuple[str, int, int], SlotCost]
"""By model, slots and rank."""


def read_runs(lines: Iterable[bytes]) -> tuple[Run, ...]:
    """The runs of a table, in its order.

    Raises:
        TableError: a column is missing or a value is not what its column says.
    """
    return tuple(_run(row) for row in _rows(lines, needs=_RUN_COLUMNS))


def read_slot_costs(lines: Iterable[bytes]) -> SlotCosts:
    """The rows of a table of slot costs.

    Raises:
        TableError: a column is missing or a value is not what its column says.
    """
    costs = [_slot_cost(row) for row in _rows(lines, needs=_SLOT_COLUMNS)]
    return {(cost.model, cost.slots, cost.rank): cost for cost in costs}


_RUN_COLUMNS = (
    "model",
    "adapter_rates_req_s",
    "max_loras",
    "num_adapters_max_cpu_loras",
    "max_rank",
    "duration_s",
    "req_s",
    "out_tok_s",
    "in_tok_s",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
)
_MOST = {
    "max_loras": 1e4,
    "num_adapters_max_cpu_loras": 1e4,
    "max_rank": 1e4,
    "max_lora_rank": 1e4,
    "layers": 1e4,
} | dict.fromkeys(("mean_ttft_ms", "p99_ttft_ms", "kv_cache_tokens"), 1e9)
"""By column; others: `MOST`."""
_SLOT_COLUMNS = ("model", "max_loras", "max_lora_rank", "kv_cache_tokens", "single_req_tpot_ms")


class _Row:
    """One line of a table, by column."""

    def __init__(self, line: int, values: dict[str, str]) -> None:
        self.line = line
        self._values = values

    def text(self, column: str) -> str:
        return self._values[column]

    def layers(self) -> int:
        if self._values.get("layers"):
            return self.whole("layers")
        model = self.text("model")
        if model not in LAYERS:
            known = f"are known of {', '.join(LAYERS)}"
            raise TableError(f"line {self.line}: layers of model {model[:40]!r}: {known}; add a column `layers`")
        return LAYERS[model]

    def is_empty(self, column: str) -> bool:
        return not self._values[column]

    def number(self, column: str) -> float:
        return self._above_zero(column, self._values[column])

    def numbers(self, column: str) -> tuple[float, ...]:
        return tuple(self._above_zero(column, part) for part in self._values[column].split("_"))

    def whole(self, column: str) -> int:
        value = self.number(column)
        if value != int(value):
            raise self._wrong(column, "a whole number")
        return int(value)

    def _above_zero(self, column: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        most = _MOST.get(column, MOST)
        if not LEAST <= value <= most:  # not NaN either
            raise self._wrong(column, f"a number above 0, at most {most:,.0f}")
        return value

    def _wrong(self, column: str, expected: str) -> TableError:
        where, value = f"line {self.line}, column {column}", self._values[column][:40]
        return TableError(f"{where}: {value!r} is not {expected}; correct the line or take it out")


def _rows(lines: Iterable[bytes], *, needs: tuple[str, ...]) -> Iterator[_Row]:
    reader = csv.DictReader(line.decode("utf-8", "replace") for line in lines)
    try:
        missing = [column for column in needs if column not in (reader.fieldnames or ())]
        if missing:
            raise TableError(f"line 1: column {missing[0]} is missing; needed are {', '.join(needs)}")
        for values in reader:
            yield _row(reader.line_num, values, needs=needs)
    except csv.Error as error:
        raise TableError(f"line {reader.line_num}: {error}; is this a CSV table?") from error


def _row(line: int, values: dict[str, str], *, needs: tuple[str, ...]) -> _Row:
    short = [column for column in needs if values[column] is None]
    if short:
        raise TableError(f"line {line}: too short, column {short[0]} is missing; complete the line or take it out")
    return _Row(line, values)


def _run(row: _Row) -> Run:
    run = Run(
        line=row.line,
        model=row.text("model"),
        layers=row.layers(),
        rates=row.numbers("adapter_rates_req_s"),
        slots=row.whole("max_loras"),
        adapters=row.whole("num_adapters_max_cpu_loras"),
        rank=row.whole("max_rank"),
        seconds=row.number("duration_s"),
        served=row.number("req_s"),
        output_rate=row.number("out_tok_s"),
        input_rate=row.number("in_tok_s"),
        ttft=row.number("mean_ttft_ms") / 1e3,
        ttft_p99=row.number("p99_ttft_ms") / 1e3,
        tpot=row.number("mean_tpot_ms") / 1e3,
    )
    if run.offered * run.seconds > MOST_REQUESTS:
        many = f"{run.offered * run.seconds:,.0f} requests in {run.seconds:g} s"
        raise TableError(f"line {run.line}: {many} are too many; at most {MOST_REQUESTS:,.0f} can be played")
    return run


def _slot_cost(row: _Row) -> SlotCost:
    tokens, tpot = "kv_cache_tokens", "single_req_tpot_ms"
    return SlotCost(
        model=row.text("model"),
        layers=row.layers(),
        slots=row.whole("max_loras"),
        rank=row.whole("max_lora_rank"),
        kv_tokens=None if row.is_empty(tokens) else row.whole(tokens),
        tpot=None if row.is_empty(tpot) else row.number(tpot) / 1e3,
    )
