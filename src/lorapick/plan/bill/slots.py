"""How many adapter slots a pod has memory for, by both sizes of a slot, and what one more takes from the KV cache.

In: assumptions, a model. Out: a report. Not here: the reservation (see `reserve`) and its check (see `slot_check`).

Two sizes: the adapter's own bytes, which is what moves in a swap; and what the engine reserves for a slot, which is
what memory has to hold.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lorapick.model.units import Bytes, Tokens
from lorapick.plan.bill.reserve import RANKS, Reservation, kv_bytes_per_token, reserved
from lorapick.plan.bill.slot_check import EXTRA_TOKENS, MEASURED, Checked, check
from lorapick.plan.sizes.models import BaseModel, guessed, read_model
from lorapick.plan.work import Assumptions, Chart, Curve, Figure, Report, Table, assumed, shown, tabled, without_article
from lorapick.wire.model_modules import projections

_SECTION_5 = "article, section 05"
MODEL = "llama-3.1-70b"
"""The article's."""
DEFAULTS = (
    assumed("hbm", 80_000_000_000, unit="B", what="memory of a pod's GPU", source=f"{_SECTION_5}: H100"),
    assumed("base", 35_000_000_000, unit="B", what="base model's weights", source=f"{_SECTION_5}: 70B in INT4"),
    assumed("kv", 30_000_000_000, unit="B", what="KV cache", source=_SECTION_5),
    assumed("workspace", 5_000_000_000, unit="B", what="activations, buffers, graphs", source=_SECTION_5),
    assumed("adapter", 65_536_000, unit="B", what="bytes of an adapter", source="exact: r=16 on q,v of Llama-3.1-70B"),
    assumed(
        "max-rank", 16, unit="", what="highest rank the engine takes", source="default of vLLM 0.32's max_lora_rank"
    ),
    assumed("slots", 8, unit="slots", what="of a pod", source="article, section 12"),
    assumed(
        "sequence", 512, unit="tokens", what="of a sequence in flight", source="article's ~180 in 30 GB are 509 each"
    ),
    assumed("block", 16, unit="tokens", what="of a KV block", source="default of vLLM's block_size on GPUs"),
    assumed("extra-tokens", 0, unit="tokens", what="lora_extra_vocab_size", source="vLLM 0.32 has none; 0.8.5 had 256"),
    assumed("kv-width", 2, unit="B", what="of a number in the KV cache", source="FP16 and BF16"),
    assumed("held", 3, unit="adapters", what="that a pod holds", source="most at which the article's under 30 % holds"),
)
_OWN = (("50 MB", 50_000_000, "~200"), ("200 MB", 200_000_000, "~50"))
"""The article's round sizes and slots."""
_LEAST_CAP, _MOST_CAP = 8, 64
"""Slots that engines are usually started with, at least and at most (article, section 05)."""


_ATTENTION = ("q_proj", "v_proj", "qkv_proj")


class Budget(NamedTuple):
    """One GPU's memory, and what KV costs in it."""

    free: Bytes
    """Neither weights nor workspace: KV cache and slots share it."""
    kv: Bytes
    slot: Bytes
    """Reserved for each."""
    per_token: Bytes
    block: Tokens
    sequence: Tokens

    @property
    def room(self) -> Bytes:
        """What the KV cache leaves for slots."""
        return self.free - self.kv

    def blocks(self, kv: Bytes) -> int:
        """KV blocks in so many bytes."""
        return max(0, kv) // (self.block * self.per_token)

    def sequences(self, kv: Bytes) -> int:
        """Sequences in flight in so many bytes."""
        return self.blocks(kv) // math.ceil(self.sequence / self.block)

    def beside(self, slots: int) -> Bytes:
        """KV beside so many slots, when it gets all that is left, as in vLLM; below 0: they do not fit."""
        return self.free - slots * self.slot


def slots_report(
    given: Mapping[str, float | None], *, model: str = MODEL, measured: Iterable[bytes] | None = None
) -> Report:
    """Reckon.

    Args:
        given: numbers in place of defaults.
        model: a built-in model's name, or a `config.json`.
        measured: lines of the table of slot costs, for the check; None: no check.

    Raises:
        ValueError: a number or a budget that cannot be, an unknown model.
    """
    base = read_model(model)
    assume = Assumptions(_defaults(base), given)
    assume.above_zero("hbm", "adapter", "sequence", "block", "kv-width", "held")
    slot = reserved(base, _rank(assume["max-rank"]), extra_tokens=int(assume["extra-tokens"]))
    budget = _budget(assume, slot.total, per_token=kv_bytes_per_token(base, width=int(assume["kv-width"])))
    checked = () if measured is None else check(measured)
    report = Report(
        f"adapter slots of {base.name}, highest rank {assume['max-rank']:g}",
        (
            *_rooms(assume, budget),
            *_sizes(assume, slot, model=base),
            *_one_more(budget),
            *_planned(budget, slots=int(assume["slots"])),
            *_war_story(budget, own=int(assume["adapter"])),
            *_chances(int(assume["held"])),
            *_errors(checked),
        ),
        notes=(*guessed(base), *_NOTES),
        assumptions=(*assume.figures, Figure("model", base.name, "", "base of the adapters", base.source)),
        tables=(_by_slots(budget, slots=int(assume["slots"])), *_check_tables(checked)),
        charts=(_chart(base, budget, assume=assume),),
    )
    return report if base.name == MODEL else without_article(report)


def _defaults(model: BaseModel) -> tuple[Figure, ...]:
    """Of another model than the article's, weights and adapter are its own."""
    if model.name == MODEL:
        return DEFAULTS
    shape, width = model.shape, 2
    layers = list(projections(shape))
    outside = 2 * shape.vocabulary * shape.hidden
    base = width * (sum(each.inputs * each.outputs for each in layers) + outside)
    adapter = width * 16 * sum(each.parameters_per_rank for each in layers if each.name in _ATTENTION)
    own = {
        "base": assumed(
            "base", base, unit="B", what="base model's weights", source="linear layers, embeddings, head; FP16"
        ),
        "adapter": assumed("adapter", adapter, unit="B", what="bytes of an adapter", source="exact: r=16 on q,v, FP16"),
    }
    return tuple(own.get(each.name, each) for each in DEFAULTS)


_NOTES = (
    "Engines are started with 8 to 64 slots, whatever fits: more distinct adapters in a batch make every step slower.",
    "Of a pod of several GPUs, give what one of them has; how vLLM splits slots over them is not reckoned.",
    "Under random routing with 4 slots, the war story's, a pod holds one of 12 adapters with 33 %, not under 30 %.",
)


def _rank(value: float) -> int:
    if value not in RANKS:
        near = next((each for each in RANKS if each >= value), RANKS[-1])
        raise ValueError(f"max-rank {value:g}: vLLM takes {', '.join(map(str, RANKS))}; take {near}")
    return int(value)


def _budget(assume: Mapping[str, float], slot: Bytes, *, per_token: Bytes) -> Budget:
    parts = {name: int(assume[name]) for name in ("base", "kv", "workspace")}
    hbm, total = int(assume["hbm"]), sum(parts.values())
    if total > hbm:
        named = " + ".join(f"{name} {shown(size, 'B')}" for name, size in parts.items())
        over = shown(total - hbm, "B")
        raise ValueError(f"{named} = {shown(total, 'B')} exceed hbm {shown(hbm, 'B')} by {over}; shrink kv or the base")
    budget = Budget(
        free=hbm - parts["base"] - parts["workspace"],
        kv=parts["kv"],
        slot=slot,
        per_token=per_token,
        block=int(assume["block"]),
        sequence=int(assume["sequence"]),
    )
    if budget.beside(int(assume["slots"])) < 0:
        need, most = shown(int(assume["slots"]) * slot, "B"), budget.free // slot
        few = (
            f"slots {assume['slots']:g} × {shown(slot, 'B')} = {need} exceed the {shown(budget.free, 'B')} beside base"
        )
        raise ValueError(f"{few} and workspace; at most {most} fit, with no KV cache at all")
    return budget


def _rooms(assume: Mapping[str, float], budget: Budget) -> tuple[Figure, ...]:
    room = budget.room
    parts = " - ".join(shown(assume[name], "B") for name in ("hbm", "base", "kv", "workspace"))
    own = (*_OWN, (f"own {shown(assume['adapter'], 'B')}", int(assume["adapter"]), None))
    return (
        Figure("room for slots", room, "B", parts, _SECTION_5, "10 GB"),
        *(
            Figure(
                f"slots of {name}", room // size, "slots", f"{shown(room, 'B')} / {shown(size, 'B')}", _SECTION_5, words
            )
            for name, size, words in own
        ),
        Figure(
            "slots as reserved",
            room // budget.slot,
            "slots",
            f"{shown(room, 'B')} / {shown(budget.slot, 'B')}",
            "each slot sized for the largest adapter",
        ),
        Figure(
            "slots as engines are started",
            max(0, min(_MOST_CAP, room // budget.slot)),
            "slots",
            f"at most {_MOST_CAP}",
            _SECTION_5,
            f"{_LEAST_CAP}-{_MOST_CAP}",
        ),
    )


def _sizes(assume: Mapping[str, float], slot: Reservation, *, model: BaseModel) -> tuple[Figure, ...]:
    own = int(assume["adapter"])
    rank = f"{assume['max-rank']:g}"
    source = "vLLM: create_lora_weights, checked against measurements"
    return (
        Figure("own bytes of an adapter", own, "B", "all its parameters × 2 bytes", "what a swap moves"),
        Figure("reserved per slot", slot.total, "B", "linear layers + embeddings and head + extra tokens", source),
        Figure(
            "of it linear layers",
            slot.layers,
            "B",
            f"{slot.layers // (2 * int(assume['max-rank'])):,} (inputs + outputs, all layers) × rank {rank} × 2 bytes",
            f"{source}; {model.source}",
        ),
        Figure(
            "of it embeddings and head",
            slot.embeddings,
            "B",
            f"2 × (vocabulary + width) × rank {rank} × 2 bytes",
            source,
        ),
        Figure("reserved to own bytes", slot.total / own, "times", f"{slot.total:,} / {own:,}", "both above"),
    )


def _one_more(budget: Budget) -> tuple[Figure, ...]:
    """What a slot takes from the KV cache, when that gets all that is left."""
    source = "vLLM gives the KV cache what is left"
    tokens = budget.slot / budget.per_token
    return (
        Figure(
            "one more slot: KV tokens",
            tokens,
            "tokens",
            f"{budget.slot:,} / {budget.per_token:,} bytes a token",
            source,
        ),
        Figure("one more slot: KV blocks", tokens / budget.block, "blocks", f"{tokens:,.1f} / {budget.block}", source),
        Figure(
            "one more slot: sequences",
            tokens / budget.sequence,
            "sequences",
            f"{tokens:,.1f} / {budget.sequence} tokens",
            source,
        ),
    )


def _planned(budget: Budget, *, slots: int) -> tuple[Figure, ...]:
    left = budget.beside(slots)
    formula = f"{shown(budget.free, 'B')} - {slots} × {shown(budget.slot, 'B')}"
    source = "slots first, then KV, as vLLM does"
    return (
        Figure(f"KV beside {slots} slots", left, "B", formula, source),
        Figure(
            f"sequences beside {slots} slots",
            budget.sequences(left),
            "sequences",
            f"of {budget.sequence} tokens",
            source,
        ),
    )


def _war_story(budget: Budget, *, own: Bytes) -> tuple[Figure, ...]:
    """The article gave four slots 2 GB of the KV cache."""
    source = "article, section 08"
    each = f"{budget.sequence} tokens × {budget.per_token:,} bytes"

    def held(size: Bytes, *, article: str) -> Figure:
        return Figure(f"sequences in {shown(size, 'B')}", budget.sequences(size), "sequences", each, source, article)

    return (
        held(30_000_000_000, article="~180"),
        held(28_000_000_000, article="~165"),
        Figure("4 slots more, own bytes", 4 * own, "B", f"4 × {shown(own, 'B')}", source, "about 260 MB"),
        Figure("4 slots more, reserved", 4 * budget.slot, "B", f"4 × {shown(budget.slot, 'B')}", source, "2 GB given"),
    )


def _chances(held: int) -> tuple[Figure, ...]:
    """That a pod taken at random holds the adapter, all adapters equally often asked for."""
    source = "article, section 04: random routing"
    claims = ((3, "reasonable"), (12, "below 30 %"), (50, "single digits"))
    return tuple(
        Figure(
            f"random pod holds one of {count}",
            min(1.0, held / count),
            "share",
            f"min(1, {held} held / {count})",
            source,
            words,
        )
        for count, words in claims
    )


def _errors(checked: Sequence[Checked]) -> tuple[Figure, ...]:
    if not checked:
        return ()
    source = "vLLM 0.8.5 on an H100: data/calibration/vllm085_h100_lora_slot_cost.csv"
    worst = max(checked, key=lambda each: abs(each.error))
    other = max(checked, key=lambda each: abs(each.kv_error))
    sizes = f"{worst.formula / 2**20:.2f} / {worst.measured / 2**20:.2f} MiB - 1"
    tokens = f"{other.kv_formula:,.1f} / {other.kv_measured:,.1f} - 1"
    return (
        Figure(
            "formula's worst error, bytes",
            worst.error,
            "share",
            f"{sizes}, {worst.model} at rank {worst.max_rank}",
            source,
        ),
        Figure(
            "formula's worst error, KV tokens",
            other.kv_error,
            "share",
            f"{tokens}, {other.model} at rank {other.max_rank}",
            source,
        ),
    )


def _check_tables(checked: Sequence[Checked]) -> tuple[Table, ...]:
    if not checked:
        return ()
    head = ("model", "rank", "MiB, measured", "formula", "error", "KV tokens, measured", "formula", "error")
    rows = tuple(
        (
            each.model,
            str(each.max_rank),
            f"{each.measured / 2**20:.2f}",
            f"{each.formula / 2**20:.2f}",
            f"{100 * each.error:+.2f} %",
            f"{each.kv_measured:,.0f}",
            f"{each.kv_formula:,.0f}",
            f"{100 * each.kv_error:+.2f} %",
        )
        for each in checked
    )
    values = tuple(
        (
            *(each.model, each.max_rank, each.measured / 2**20, each.formula / 2**20, each.error),
            *(each.kv_measured, each.kv_formula, each.kv_error),
        )
        for each in checked
    )
    return (
        Table(
            "one slot, measured beside the formula (vLLM 0.8.5, H100)",
            head,
            rows,
            f"measured = slope over the numbers of slots; formula = linear layers + embeddings and head, "
            f"{EXTRA_TOKENS} extra tokens; KV tokens = bytes / bytes a token; error = formula / measured - 1",
            f"data/{MEASURED}",
            values,
        ),
    )


def _by_slots(budget: Budget, *, slots: int) -> Table:
    counts = [count for count in sorted({0, 4, 8, 16, 32, 64, slots}) if budget.beside(count) >= 0]
    left = [budget.beside(count) for count in counts]
    block, blocks = budget.block * budget.per_token, math.ceil(budget.sequence / budget.block)
    return tabled(
        "KV cache beside the slots",
        (("slots", ""), ("reserved", "B"), ("KV", "B"), ("KV blocks", ""), ("sequences", "")),
        values=(
            (count, count * budget.slot, kv, budget.blocks(kv), budget.sequences(kv))
            for count, kv in zip(counts, left, strict=True)
        ),
        formula=(
            f"reserved = slots × {shown(budget.slot, 'B')}; KV = {shown(budget.free, 'B')} - reserved; "
            f"blocks = KV / ({budget.block} tokens × {budget.per_token:,} B); sequences = blocks / {blocks}"
        ),
        source=f"vLLM gives the KV cache what slots leave; a block has {block:,} B",
    )


def _chart(model: BaseModel, budget: Budget, *, assume: Mapping[str, float]) -> Chart:
    counts = range(_MOST_CAP + 1)

    def curve(rank: int) -> Curve:
        slot = reserved(model, rank, extra_tokens=int(assume["extra-tokens"])).total
        left = [budget.free - count * slot for count in counts]
        return Curve(f"rank {rank}", tuple(float(budget.sequences(kv)) if kv >= 0 else None for kv in left))

    return Chart(
        title="Sequences in flight, by highest rank",
        x="slots of a pod",
        xs=tuple(float(count) for count in counts),
        curves=tuple(curve(rank) for rank in (8, 16, 32, 64)),
    )
