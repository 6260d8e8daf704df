"""An adapter's parameters and bytes, module by module.

In: a configuration with a base model's shape, or with the tensors of its file. Out: an `AdapterSize`. Not here: files
(see `plan.sizes.folders`), what engines reserve for a slot.

A pair of matrices for W (d × k) is A (r × k), which projects down to rank r, and B (d × r), which projects up:
r·(d + k) parameters.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from lorapick.model.units import Bytes
from lorapick.plan.sizes.patience import patience
from lorapick.wire.model_config import ModelShape
from lorapick.wire.model_modules import Projection, outer_modules, projections
from lorapick.wire.peft import PeftConfig, PeftError, Tensor, module_of
from lorapick.wire.peft_targets import USUAL_TARGETS, Targets

DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8": 1}
"""Bytes of one parameter."""
SHORT_DTYPES = {
    "fp32": "float32", "f32": "float32", "fp16": "float16", "f16": "float16", "half": "float16",
    "bf16": "bfloat16", "fp8": "float8", "f8": "float8",
}  # fmt: skip
_SAVED_UNDER = "base_model.model."
"""What PEFT puts before every name in the file."""
_ENDING = re.compile(r"(\.modules_to_save(\.default)?)?\.(weight|bias)$")
_FUSED = (".experts", ".experts.base_layer")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


class ModuleSize(msgspec.Struct, frozen=True, kw_only=True):
    """All modules of a model that differ by numbers in their names only, and have one shape."""

    module: str
    """The name, with `*` for numbers: `model.layers.*.self_attn.q_proj`."""
    count: int
    inputs: int | None
    """k; None: there is no pair of matrices, or its shape gives none."""
    outputs: int | None
    """d."""
    rank: int | None
    """None: weights that are saved as a whole."""
    scale: float | None
    """alpha/r, or alpha/√r; None: there is no alpha, or no pair."""
    dtype: str
    parameters: int
    """Of all `count` together."""
    size: Bytes

    @property
    def name(self) -> str:
        """The last part."""
        return self.module.rpartition(".")[2]


class AdapterSize(msgspec.Struct, frozen=True):
    """What an adapter takes."""

    modules: tuple[ModuleSize, ...]
    narrow: tuple[str, ...] = ()
    """Modules with an alarmingly large rank: above one of the sides, as `gate (outputs 8, rank 16)`."""
    uncounted: tuple[str, ...] = ()
    """What the configuration asks for and whose size cannot be reckoned from it."""

    @property
    def parameters(self) -> int:
        """Of all modules."""
        return sum(each.parameters for each in self.modules)

    @property
    def size(self) -> Bytes:
        """Of all tensors."""
        return sum(each.size for each in self.modules)

    @property
    def names(self) -> tuple[str, ...]:
        """Last parts of the modules that have a pair."""
        return tuple(dict.fromkeys(each.name for each in self.modules if each.rank is not None))


class _One(msgspec.Struct, frozen=True, kw_only=True):
    """One module, before those alike are put together."""

    module: str
    parameters: int
    size: Bytes
    dtype: str
    inputs: int | None = None
    outputs: int | None = None
    rank: int | None = None
    scale: float | None = None


def width_of(dtype: str) -> Bytes:
    """Bytes of one parameter of a type, by its name or a short one.

    Raises:
        ValueError: there is no such type.
    """
    name = SHORT_DTYPES.get(dtype.lower(), dtype.lower())
    if name not in DTYPES:
        raise ValueError(f"dtype {dtype!r}: there are {', '.join([*DTYPES, *SHORT_DTYPES])}")
    return DTYPES[name]


def reckoned(config: PeftConfig, shape: ModelShape, *, dtype: str, file: str) -> AdapterSize:
    """The size of an adapter that is not there yet.

    Raises:
        PeftError: a target is no module of the model, none is reached, or a rank is above a module's narrower side.
    """
    targets = Targets(config, file=file, usual=USUAL_TARGETS.get(shape.model_type, ()), left=patience())
    inner, outer = list(projections(shape)), outer_modules(shape)
    reached = [each for each in inner if targets.reach(each.module)]
    if not targets.all_linear:
        reached += [each for each in outer if targets.reach(each.module)]
    _require_known(targets, reached, modules=[*inner, *outer], file=file)
    whole = [(each.module, each) for each in (*inner, *outer) if targets.whole(each.module)]
    # PEFT saves embeddings that have a pair beside it; engines pass them over.
    whole += [(f"{each.module}.base_layer", each) for each in outer if each in reached]
    width, name = width_of(dtype), SHORT_DTYPES.get(dtype.lower(), dtype.lower())
    ones = [_pair(each, targets, width=width, dtype=name) for each in reached]
    ones += [
        _One(module=module, parameters=each.weights, size=each.weights * width, dtype=name) for module, each in whole
    ]
    return AdapterSize(
        _together(ones), tuple(_narrow(reached, targets)), tuple(_uncounted(config, [module for module, _ in whole]))
    )


def measured(config: PeftConfig, tensors: Mapping[str, Tensor], *, file: str) -> AdapterSize:
    """The size of an adapter whose file is there: every tensor in it counts, and nothing else."""
    targets = Targets(config, file=file, left=patience())
    modules: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        module = module_of(name) if ".lora_" in name else _ENDING.sub("", name)
        modules.setdefault(module.removeprefix(_SAVED_UNDER), {})[name] = tensor
    ones = [_saved(module, many, targets=targets) for module, many in modules.items()]
    sides = [(each.module, each.outputs, each.inputs, each.rank) for each in ones]
    narrow = Counter(
        f"{module.rpartition('.')[2]} ({outputs} × {inputs}, rank {rank})"
        for module, outputs, inputs, rank in sides
        if rank is not None and outputs is not None and inputs is not None and rank > min(outputs, inputs)
    )
    return AdapterSize(_together(ones), tuple(narrow))


def queries_only(shape: ModelShape, rank: int) -> int | None:
    """Parameters of an adapter on queries alone; None: the model keeps queries, keys and values in one matrix."""
    return sum(rank * each.parameters_per_rank for each in projections(shape) if each.name == "q_proj") or None


def _pair(each: Projection, targets: Targets, *, width: Bytes, dtype: str) -> _One:
    rank = targets.rank(each.module)
    extra = bool(targets.config.use_dora) + bool(targets.config.lora_bias)
    parameters = rank * each.parameters_per_rank + extra * each.outputs
    return _One(
        module=each.module,
        parameters=parameters,
        size=parameters * width,
        dtype=dtype,
        inputs=each.inputs,
        outputs=each.outputs,
        rank=rank,
        scale=targets.scale(each.module),
    )


def _saved(module: str, tensors: Mapping[str, Tensor], *, targets: Targets) -> _One:
    down = next((each.shape for name, each in tensors.items() if _is_side(name, "A") and len(each.shape) == 2), None)
    up = next((each.shape for name, each in tensors.items() if _is_side(name, "B") and len(each.shape) == 2), None)
    # Experts in one tensor have ranks times experts: neither is the rank.
    fits = down is not None and up is not None and down[0] == up[1] and not module.endswith(_FUSED)
    return _One(
        module=module,
        parameters=sum(each.elements for each in tensors.values()),
        size=sum(each.size for each in tensors.values()),
        dtype="+".join(dict.fromkeys(each.dtype for each in tensors.values())),
        inputs=down[1] if fits and down else None,
        outputs=up[0] if fits and up else None,
        rank=down[0] if fits and down else None,
        scale=targets.scale(module, rank=down[0]) if fits and down else None,
    )


def _is_side(name: str, side: str) -> bool:
    return any(part in (f"lora_{side}", f"lora_embedding_{side}") for part in name.split("."))


def _together(ones: Iterable[_One]) -> tuple[ModuleSize, ...]:
    """Those alike as one, in the order of the first of each."""
    alike: dict[tuple[object, ...], list[_One]] = {}
    for each in ones:
        key = (_NUMBER.sub("*", each.module), each.inputs, each.outputs, each.rank, each.scale, each.dtype)
        alike.setdefault(key, []).append(each)
    return tuple(
        ModuleSize(
            module=_NUMBER.sub("*", many[0].module),
            count=len(many),
            inputs=many[0].inputs,
            outputs=many[0].outputs,
            rank=many[0].rank,
            scale=many[0].scale,
            dtype=many[0].dtype,
            parameters=sum(each.parameters for each in many),
            size=sum(each.size for each in many),
        )
        for many in alike.values()
    )


def _require_known(targets: Targets, reached: list[Projection], *, modules: list[Projection], file: str) -> None:
    names = ", ".join(dict.fromkeys(each.name for each in modules))
    unknown = list(targets.unmatched([each.module for each in modules]))
    if unknown:
        raise PeftError(f"{file}: {', '.join(map(repr, unknown))}: no such module in this model; there are {names}")
    if not reached and not targets.config.target_parameters:
        if not targets.named:
            raise PeftError(f"{file}: no target_modules; name some of {names}")
        raise PeftError(f"{file}: {targets.named!r} reaches no module of this model; there are {names}")
    for each in reached:
        rank, least = targets.rank(each.module), min(each.inputs, each.outputs)
        if rank > least and not each.router:
            raise PeftError(
                f"{file}: rank {rank} for {each.module}, which is {each.outputs} × {each.inputs}: above {least} a pair "
                "of matrices is no smaller than what it changes; lower the rank"
            )


def _narrow(reached: Iterable[Projection], targets: Targets) -> Iterable[str]:
    return dict.fromkeys(
        f"{each.name} ({each.outputs} × {each.inputs}, rank {rank})"
        for each in reached
        if (rank := targets.rank(each.module)) > min(each.inputs, each.outputs)
    )


def _uncounted(config: PeftConfig, whole: list[str]) -> Iterable[str]:
    for name in config.modules_to_save or ():
        if not any(module == name or module.endswith(f".{name}") for module in whole):
            yield f"modules_to_save={name}"
    if config.target_parameters:
        yield f"target_parameters={','.join(config.target_parameters)}"
    if config.bias not in (None, "none"):
        yield f"bias={config.bias}"
    if config.layer_replication:
        yield "layer_replication"
