"""What `lorapick plan size` says: figures, tables and notes.

In: an `AdapterSize` with what it was reckoned from. Out: a `Report`. Not here: how it is printed (see `plan.work`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from lorapick.plan.sizes.adapters import DTYPES, AdapterSize, ModuleSize, queries_only, reckoned
from lorapick.plan.sizes.advice import rule_of_thumb, scales, warnings
from lorapick.plan.sizes.asked import asked
from lorapick.plan.sizes.folders import AdapterFolder
from lorapick.plan.sizes.models import BaseModel, guessed
from lorapick.plan.work import GIVEN, Chart, Curve, Figure, Report, Table, shown, tabled
from lorapick.wire.peft import PeftConfig, PeftError

HU = "W' = W + (alpha/r)·B·A with W d × k, B d × r, A r × k: Hu et al. 2021, arXiv:2106.09685"
_HEADER = "header of adapter_model.safetensors"
_ARTICLE = {
    (16, ("q_proj", "v_proj")): ("32.8M", "65.6 MB"),
    (64, ("k_proj", "q_proj", "v_proj")): ("178.4M", "356.8 MB"),
}
"""Parameters and bytes that the article prints for Llama-3.1-70B, rounded at each step."""
_ARTICLE_SHAPE = (8192, 80, 64, 8, 128)
_RANKS = (4, 8, 16, 32, 64, 128)
_KINDS = ("q", "q,v", "q,k,v", "q,k,v,o", "all-linear")


class Sized(NamedTuple):
    """What a report is about."""

    title: str
    config: PeftConfig
    size: AdapterSize
    dtype: str
    """That sizes were reckoned with; of a file, the types of its tensors."""
    model: BaseModel | None = None
    folder: AdapterFolder | None = None
    by_configuration: AdapterSize | None = None
    """What the configuration comes to, beside what the file has."""


def report(sized: Sized) -> Report:
    """Figures, modules, bytes by type, and what to look at again."""
    return Report(
        sized.title,
        tuple(_figures(sized)),
        tuple(_notes(sized)),
        tuple(_assumptions(sized)),
        (_modules(sized.size, source=_source(sized)), _dtypes(sized.size)),
        tuple(_charts(sized)),
    )


def _figures(sized: Sized) -> Iterator[Figure]:
    size, source = sized.size, _source(sized)
    parameters, memory = _article(sized)
    yield Figure("parameters", size.parameters, "", _sum(size), source, parameters)
    width, where = "sum over its tensors", source
    if sized.dtype in DTYPES:
        width, where = f"{size.parameters:,} × {DTYPES[sized.dtype]} bytes", f"width of {sized.dtype}"
    yield Figure(f"bytes ({sized.dtype})", size.size, "bytes", width, where, memory)
    if sized.by_configuration is not None:
        by = sized.by_configuration
        yield Figure("parameters by the configuration", by.parameters, "", _sum(by), HU)
    queries = _queries(sized)
    exact = None if queries is None else size.parameters / queries
    formula = "there is no q_proj" if queries is None else f"{size.parameters:,} / {queries:,}"
    rule = rule_of_thumb(size.names)
    yield Figure("times an adapter on queries alone", exact, "times", formula, HU, rule)
    yield from _scale(sized)


def _source(sized: Sized) -> str:
    return HU if sized.folder is None or sized.folder.tensors is None else _HEADER


def _article(sized: Sized) -> tuple[str, str] | tuple[None, None]:
    if sized.model is None or sized.dtype not in ("float16", "bfloat16"):
        return (None, None)
    shape = sized.model.shape
    if (shape.hidden, shape.layers, shape.heads, shape.kv_heads, shape.head_dim) != _ARTICLE_SHAPE:
        return (None, None)
    return _ARTICLE.get((sized.config.r, tuple(sorted(sized.size.names))), (None, None))


def _sum(size: AdapterSize) -> str:
    return " + ".join(_term(each) for each in size.modules)


def _term(each: ModuleSize) -> str:
    pair = None if each.rank is None else each.count * each.rank * ((each.inputs or 0) + (each.outputs or 0))
    if pair != each.parameters:
        return f"{each.parameters:,} ({each.name})"
    return f"{each.count} × {each.rank} × ({each.outputs} + {each.inputs}) ({each.name})"


def _queries(sized: Sized) -> int | None:
    """Of the adapter's own queries, in the layers and of the rank that it has there; else of the model's."""
    own = sum(each.parameters for each in sized.size.modules if each.name == "q_proj" and each.rank)
    if own or sized.model is None:
        return own or None
    return queries_only(sized.model.shape, sized.config.r)


def _scale(sized: Sized) -> Iterator[Figure]:
    config = sized.config
    name = "effective alpha/√r" if config.use_rslora else "effective alpha/r"
    found = scales(sized.size)
    if not found:
        yield Figure(name, None, "", "no alpha is given; PEFT's own default is 8", GIVEN)
    elif len(found) == 1:
        formula = (
            f"{config.lora_alpha:g} / {'√' if config.use_rslora else ''}{config.r}"
            if config.lora_alpha is not None
            else ""
        )
        yield Figure(name, found[0], "", formula, HU)
    else:
        yield Figure(f"least {name}", found[0], "", "by rank_pattern and alpha_pattern, see the table", HU)
        yield Figure(f"largest {name}", found[-1], "", "by rank_pattern and alpha_pattern, see the table", HU)


def _notes(sized: Sized) -> Iterator[str]:
    yield from warnings(sized.size, sized.config)
    folder, by = sized.folder, sized.by_configuration
    if folder is not None and folder.tensors is None:
        yield "no adapter_model.safetensors: sizes are what the configuration comes to"
    if folder is not None and folder.file_size is not None:
        header = folder.file_size - sized.size.size
        yield f"the file has {folder.file_size:,} bytes: {sized.size.size:,} of tensors, {header:,} of header"
    if by is not None and by.parameters != sized.size.parameters:
        yield (
            f"the configuration comes to {by.parameters:,} parameters on {sized.model.name if sized.model else '?'}, "
            f"the file has {sized.size.parameters:,}: it is of another model, or not all of it is there"
        )
    if sized.model is not None and sized.model.shape.prefix != "model":
        yield "the model's text part only; targets by last name also reach its vision part in PEFT"
    if sized.model is not None:
        yield from guessed(sized.model)
    if sized.model is not None and sized.model.shape.experts:
        yield "experts have linear layers of their own, as in Transformers 4; Transformers 5 keeps them in one tensor"


def _assumptions(sized: Sized) -> Iterator[Figure]:
    source = GIVEN if sized.folder is None else "adapter_config.json"
    if sized.model is not None:
        shape, where = sized.model.shape, sized.model.source
        yield Figure("base model", sized.model.name, "", f"model_type {shape.model_type}", where)
        for name, value, key in (
            ("layers", shape.layers, "num_hidden_layers"), ("hidden", shape.hidden, "hidden_size"),
            ("heads", shape.heads, "num_attention_heads"), ("key-value heads", shape.kv_heads, "num_key_value_heads"),
            ("head width", shape.head_dim, "head_dim, or hidden_size / heads"),
            ("feed-forward", shape.intermediate, "intermediate_size"),
            ("experts", shape.experts or None, "of each layer that has any"),
        ):  # fmt: skip
            if value is not None:
                yield Figure(name, value, "", key, where)
    yield Figure("rank", sized.config.r, "", "r, of every pair that no pattern names", source)
    yield Figure("alpha", sized.config.lora_alpha, "", "lora_alpha", source)
    kind = GIVEN if sized.folder is None or sized.folder.tensors is None else _HEADER
    yield Figure("type", sized.dtype, "", "of every parameter", kind)


def _modules(size: AdapterSize, *, source: str) -> Table:
    return Table(
        "modules",
        ("module", "count", "d × k", "rank", "scale", "type", "parameters", "bytes"),
        tuple(
            (
                each.module,
                f"{each.count:,}",
                "–" if each.rank is None else f"{each.outputs} × {each.inputs}",
                shown(each.rank, ""),
                shown(each.scale, ""),
                each.dtype,
                f"{each.parameters:,}",
                f"{each.size:,}",
            )
            for each in size.modules
        ),
        "parameters = count × rank × (d + k), of whole weights d × k; bytes = parameters × width of the type; "
        "scale = alpha / rank, or alpha / √rank",
        source,
        tuple(
            (
                *(each.module, each.count, None if each.rank is None else f"{each.outputs} × {each.inputs}"),
                *(each.rank, each.scale, each.dtype, each.parameters, each.size),
            )
            for each in size.modules
        ),
    )


def _dtypes(size: AdapterSize) -> Table:
    return tabled(
        "all of it in one type",
        (("type", ""), ("bytes", ""), ("", "B")),
        values=((name, size.parameters * width, size.parameters * width) for name, width in DTYPES.items()),
        formula=f"{size.parameters:,} parameters × {', '.join(map(str, DTYPES.values()))} bytes",
        source="widths of the types",
    )


def _charts(sized: Sized) -> Iterator[Chart]:
    """Megabytes by rank, for the usual sets of targets."""
    if sized.model is None:
        return
    curves = [Curve(kind, values) for kind in _KINDS if (values := _by_rank(sized.model, kind)) is not None]
    if curves:
        yield Chart(title="megabytes by rank (float16)", x="rank", xs=_RANKS, curves=tuple(curves), log=True)


def _by_rank(model: BaseModel, targets: str) -> tuple[float, ...] | None:
    """None: this model has no such targets, or is narrower than a rank."""
    try:
        one = reckoned(asked(model.shape, rank=1, alpha=None, targets=targets), model.shape, dtype="float16", file="")
    except PeftError:
        return None
    return tuple(rank * one.size / 1e6 for rank in _RANKS)
