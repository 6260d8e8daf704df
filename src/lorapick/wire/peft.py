"""A PEFT adapter's two files, as values: `adapter_config.json`, and the header of `adapter_model.safetensors`.

In: bytes. Out: `PeftConfig`, `Tensors`, and both as `AdapterFacts`. Not here: reading files (see
`live.catalogue.files`), weights (never read), and what engines make of it (see `core.placement.compat`).

A safetensors file begins with the header's length (8 bytes, little-endian), then the header: JSON that gives each
tensor's dtype, shape and place among the bytes that follow. Their bytes lie side by side, without gaps.
"""

import hashlib
import math
from collections.abc import Iterable

import msgspec

from lorapick.model.placement import AdapterFacts
from lorapick.model.units import Bytes

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
LARGEST_CONFIG: Bytes = 1024 * 1024
"""Bytes of an `adapter_config.json` that is still believed."""
LARGEST_HEADER: Bytes = 32 * 1024 * 1024
"""A mixture of 128 experts in 48 layers has a header of 7 MB; the format's own limit is 100 MB."""
LENGTH_BYTES = 8
HIGHEST_RANK = 4096
MOST_SIDES = 8
HIGHEST_SIDE = 2**40
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "U16": 16, "I16": 16, "F16": 16,
    "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
"""Bits of one element. Others may come: what they take is not checked."""
_PLAIN_INITS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
"""Of `init_lora_weights`: those that leave the base model's weights as they are (vLLM 0.32 loads these)."""


class PeftError(ValueError):
    """A file is not what it should be; the message names file, value and what would be right."""


class PeftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What matters of `adapter_config.json`; names are PEFT's own."""

    r: int
    lora_alpha: float | None = None
    target_modules: list[str] | str | None = None
    """Names of modules, or a regular expression; `all-linear` is a word of its own."""
    rank_pattern: dict[str, int] | None = None
    alpha_pattern: dict[str, float] | None = None
    exclude_modules: list[str] | str | None = None
    layers_to_transform: list[int] | int | None = None
    """Numbers of the layers that have the targets; None: all."""
    layers_pattern: list[str] | str | None = None
    """Name of the list of layers, when it is not the first one."""
    target_parameters: list[str] | None = None
    """Tensors of the base model that are no modules: experts in one."""
    use_rslora: bool | None = None
    """Whether what the adapter adds is scaled by alpha/√r instead of alpha/r."""
    use_dora: bool | None = None
    use_qalora: bool | None = None
    lora_bias: bool | None = None
    bias: str | None = None
    modules_to_save: list[str] | None = None
    layer_replication: list[msgspec.Raw] | None = None
    alora_invocation_tokens: list[int] | None = None
    init_lora_weights: bool | str | None = None
    base_model_name_or_path: str | None = None
    peft_type: str | None = None

    @property
    def largest_rank(self) -> int:
        """Of any module that the file speaks of."""
        return max(self.r, *(self.rank_pattern or {}).values(), 1)

    @property
    def scale(self) -> float | None:
        """What the product of both matrices is multiplied by; None: the file names no alpha."""
        if self.lora_alpha is None:
            return None
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)

    @property
    def digest(self) -> str:
        """SHA-256 of what changes answers; two saves of one adapter have the same."""
        targets = self.target_modules
        acting = msgspec.structs.replace(
            self,
            base_model_name_or_path=None,
            peft_type=None,
            target_modules=sorted(targets) if isinstance(targets, list) else targets,
        )
        return hashlib.sha256(msgspec.json.encode(acting, order="sorted")).hexdigest()


class Tensors(msgspec.Struct, frozen=True, kw_only=True):
    """What the header of a safetensors file says."""

    count: int
    size: Bytes
    """Of the tensors, without the header."""
    rank: int | None
    """The largest of any pair of matrices; None: there is no pair whose shape gives one."""
    targets: tuple[str, ...]
    """Last parts of the names of modules that have a pair, in the file's order."""
    whole: tuple[str, ...] = ()
    """Modules whose weights are in the file as a whole."""
    magnitudes: bool = False
    """Whether there are vectors of DoRA."""


class Tensor(msgspec.Struct):
    """One tensor, by the header."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]
    """Where it begins and ends among the bytes after the header."""

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def size(self) -> Bytes:
        """What it takes in the file."""
        return self.data_offsets[1] - self.data_offsets[0]


def parse_config(content: bytes, *, file: str) -> PeftConfig:
    """Read an `adapter_config.json`.

    Raises:
        PeftError: it is none, is not LoRA's, or has a rank that cannot be.
    """
    if len(content) > LARGEST_CONFIG:
        raise PeftError(f"{file}: larger than {LARGEST_CONFIG} bytes, so not an adapter_config.json of PEFT")
    try:
        # Editors on Windows write a byte order mark; PEFT's own files have none.
        config = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=PeftConfig)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeftError(f"{file}: {error}; a PEFT adapter_config.json has at least `r` (the rank)") from None
    if config.peft_type not in (None, "LORA"):
        raise PeftError(f"{file}: peft_type is {config.peft_type!r}; only LORA can be served")
    ranks = {"r": config.r, **{f"rank_pattern[{key!r}]": rank for key, rank in (config.rank_pattern or {}).items()}}
    for name, rank in ranks.items():
        if not 1 <= rank <= HIGHEST_RANK:
            raise PeftError(f"{file}: {name} is {rank}; a rank is from 1 to {HIGHEST_RANK}")
    return config


def header_length(first: bytes, *, file: str, file_size: Bytes) -> Bytes:
    """Length of the header, from the first 8 bytes of a safetensors file.

    Raises:
        PeftError: the file cannot have such a header.
    """
    if len(first) < LENGTH_BYTES:
        raise PeftError(f"{file}: {file_size} bytes, too short for a safetensors file; copy or download it again")
    length = int.from_bytes(first[:LENGTH_BYTES], "little")
    if length > min(LARGEST_HEADER, file_size - LENGTH_BYTES):
        raise PeftError(
            f"{file}: a header of {length} bytes in a file of {file_size}, where {LARGEST_HEADER} are the most; "
            "this is no safetensors file, or a part of one: copy or download it again"
        )
    return length


def parse_tensors(header: bytes, *, file: str, file_size: Bytes) -> dict[str, Tensor]:
    """Read each tensor's name, type, shape and place from the header (without the 8 bytes before it).

    Raises:
        PeftError: it is none, or the tensors that it names are not what the file has room for.
    """
    try:
        raw = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        tensors = {name: msgspec.json.decode(each, type=Tensor) for name, each in raw.items() if name != "__metadata__"}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeftError(f"{file}: its header is not one of safetensors: {error}") from None
    _check_places(tensors, size=file_size - LENGTH_BYTES - len(header), file=file)
    return tensors


def parse_header(header: bytes, *, file: str, file_size: Bytes) -> Tensors:
    """Read what the header says of the adapter as a whole.

    Raises:
        PeftError: as `parse_tensors`.
    """
    tensors = parse_tensors(header, file=file, file_size=file_size)
    pairs = {name: module_of(name) for name in tensors if _is_pair(name)}
    whole = [_whole(name) for name in tensors if name not in pairs and _is_whole(name)]
    return Tensors(
        count=len(tensors),
        size=file_size - LENGTH_BYTES - len(header),
        rank=max((rank for name in pairs if (rank := _rank(name, tensors[name].shape)) is not None), default=None),
        targets=tuple(dict.fromkeys(module.rpartition(".")[2] for module in pairs.values())),
        whole=tuple(dict.fromkeys(whole)),
        magnitudes=any("lora_magnitude_vector" in name for name in tensors),
    )


def facts(config: PeftConfig, tensors: Tensors | None, *, file: str) -> AdapterFacts:
    """Both files as what is known of the adapter; `tensors` None: its weights are in no file that we read.

    Raises:
        PeftError: the tensors have a larger rank than the configuration; `file` is whose configuration it is.
    """
    rank = config.largest_rank
    if tensors is not None and tensors.rank is not None and not config.use_qalora:
        if tensors.rank > rank:
            raise PeftError(
                f"{file}: r is {rank}, and the weights beside it have rank {tensors.rank}; "
                "the two are not of one adapter: save it again"
            )
        rank = tensors.rank
    declared = config.target_modules
    targets = tuple(declared) if isinstance(declared, list) else (declared,) if declared else ()
    return AdapterFacts(
        rank=rank,
        alpha=config.lora_alpha,
        targets=tensors.targets if tensors is not None and tensors.targets else targets,
        size=None if tensors is None else tensors.size,
        base_model=config.base_model_name_or_path or None,
        needs=tuple(dict.fromkeys(_needs(config, tensors))),
    )


def _needs(config: PeftConfig, tensors: Tensors | None) -> Iterable[str]:
    """What an engine has to do beyond a pair of matrices for each module."""
    if config.use_dora or (tensors is not None and tensors.magnitudes):
        yield "use_dora"
    if config.use_qalora:
        yield "use_qalora"
    if config.lora_bias:
        yield "lora_bias"
    if config.bias not in (None, "none"):
        yield "bias"
    if config.layer_replication:
        yield "layer_replication"
    if config.alora_invocation_tokens:
        yield "alora_invocation_tokens"
    init = config.init_lora_weights
    if isinstance(init, str) and init.lower() not in _PLAIN_INITS:
        yield f"init_lora_weights={init}"
    for module in (*(config.modules_to_save or ()), *(tensors.whole if tensors is not None else ())):
        yield f"modules_to_save={module}"


def _check_places(tensors: dict[str, Tensor], *, size: Bytes, file: str) -> None:
    """That tensors fill the file from end to end, each as long as its shape says."""
    at = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        begin, end = tensor.data_offsets
        bits = _BITS.get(tensor.dtype)
        if begin != at or end < begin or not _has_shape(tensor):
            raise PeftError(f"{file}: tensor {name!r} is at {begin} to {end}, where {at} comes next; save it again")
        if bits is not None and math.prod(tensor.shape) * bits != (end - begin) * 8:
            raise PeftError(
                f"{file}: tensor {name!r} of shape {tensor.shape} and type {tensor.dtype} has {end - begin} bytes; "
                "save it again"
            )
        at = end
    if at != size:
        raise PeftError(f"{file}: {size} bytes of tensors, {at} by its header; it was cut off: copy it again")


def _has_shape(tensor: Tensor) -> bool:
    return len(tensor.shape) <= MOST_SIDES and all(0 <= side <= HIGHEST_SIDE for side in tensor.shape)


def _is_pair(name: str) -> bool:
    return any(part in ("lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B") for part in name.split("."))


def _is_whole(name: str) -> bool:
    """Embeddings that PEFT saved beside a pair of theirs (`base_layer`) do no harm: engines pass them over."""
    return "lora_" not in name and "base_layer" not in name and name.endswith(".weight")


def _whole(name: str) -> str:
    return name.removesuffix(".weight").removesuffix(".modules_to_save").rpartition(".")[2]


def module_of(name: str) -> str:
    """The module of a tensor that LoRA made: its name up to the first part that begins with `lora_`."""
    parts = name.split(".")
    return ".".join(parts[: next(place for place, part in enumerate(parts) if part.startswith("lora_"))])


def _rank(name: str, shape: list[int]) -> int | None:
    """From the matrix that projects down: one row for each rank. Experts in one tensor have ranks times experts."""
    if ".lora_A" not in name and ".lora_embedding_A" not in name:
        return None
    fused = module_of(name).endswith((".experts", ".experts.base_layer"))
    return shape[0] or None if len(shape) == 2 and not fused else None
