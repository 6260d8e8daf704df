"""Base models: a table of common ones, and `config.json` files.

In: a name or a path. Out: a `BaseModel` with its dimensions and where they come from. Not here: how a `config.json` is
read (see `wire.model_config`).

The table, `models.json`, has what each repository's `config.json` says of sizes, under the model's name without its
publisher and without words such as Instruct, which change nothing here.
"""

import difflib
import functools
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec

from lorapick.wire.model_config import CONFIG_FILE, LARGEST_CONFIG, ModelConfigError, ModelShape, parse_model_config

_SAME_SHAPE = ("instruct", "chat", "it", "pt", "base", "hf", "meta", "thinking", "2507")
"""Words of a name that say how a model was trained, not how large it is."""


class UnknownModelError(ValueError):
    """No model has this name, and there is no such file; the message has near names."""


class BaseModel(NamedTuple):
    """A model that adapters are made for."""

    name: str
    shape: ModelShape
    source: str
    """Where its dimensions come from: an address, or the file."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the table."""

    name: str
    repository: str
    config: msgspec.Raw
    aliases: tuple[str, ...] = ()


def model_names() -> tuple[str, ...]:
    """Names of the table, in its order."""
    return tuple(each.name for each in _table())


def built_in(name: str) -> BaseModel | None:
    """A model of the table, by its name, an alias, or its repository's name; None: it is not there."""
    entry = _by_name().get(_plain(name))
    if entry is None:
        return None
    source = f"https://huggingface.co/{entry.repository}/blob/main/{CONFIG_FILE}"
    return BaseModel(entry.name, parse_model_config(bytes(entry.config), file=entry.name), source)


def read_model(name: str) -> BaseModel:
    """A model of the table, or of a `config.json` or a folder that has one.

    Raises:
        UnknownModelError: it is none of these.
        ModelConfigError: the file does not describe a model that can be read.
    """
    path = Path(name)
    if path.suffix != ".json" and (found := built_in(name)) is not None:
        return found
    file = path / CONFIG_FILE if path.is_dir() else path
    if not file.is_file():
        raise UnknownModelError(_unknown(name))
    if file.stat().st_size > LARGEST_CONFIG:
        raise ModelConfigError(f"{file}: larger than {LARGEST_CONFIG} bytes, so not a model's {CONFIG_FILE}")
    return BaseModel(file.parent.name or str(file), parse_model_config(file.read_bytes(), file=str(file)), str(file))


def guessed(model: BaseModel) -> Iterator[str]:
    """Words for layers that are not known, or are not all counted."""
    kind = model.shape.model_type
    if model.shape.guessed:
        yield (
            f"model_type {kind!r} is not known here: read by its keys, with q, k, v, o and gate, up, down as Llama has "
            "them. Types with the same keys may have other layers; compare the names with the model's"
        )
    if kind == "gpt_oss":
        yield "attention only: experts of gpt_oss are tensors, no linear layers; PEFT takes them by target_parameters"


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(_plain(name), _by_name(), n=3, cutoff=0.5)
    hint = f"near: {', '.join(dict.fromkeys(_by_name()[each].name for each in near))}" if near else "none is near"
    return (
        f"{name!r}: no model of this name is built in, nor is there such a file; {hint}. "
        f"Give a {CONFIG_FILE}, or one of: {', '.join(model_names())}"
    )


def _plain(name: str) -> str:
    words = name.rpartition("/")[2].lower().replace("_", "-").split("-")
    return "-".join(word for word in words if word not in _SAME_SHAPE)


@functools.cache
def _table() -> tuple[_Entry, ...]:
    content = resources.files(__package__).joinpath("models.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[_Entry, ...])


@functools.cache
def _by_name() -> dict[str, _Entry]:
    return {_plain(name): entry for entry in _table() for name in (entry.repository, *entry.aliases, entry.name)}
