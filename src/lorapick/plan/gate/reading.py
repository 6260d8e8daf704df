"""A rollout as people write it down: text to lists, splits, differences.

In: the text of a file, or of `--split`. Out: a `Rollout`. Not here: opening files, what follows (see `gate.rollout`).

A file is one of these:

    a list          names, or mappings with `name` and what is known of it; in plain text one name per line, and
                    behind it requests per second if they are known, after a blank or a comma (CSV, with or without
                    a head)
    a difference    plain text whose lines begin with `+` or `-`
    a split         a mapping from names to weights: `legal: 50`, `legal-experiment: 50`; or a list of such mappings
    a document      a mapping with `adapters`, `add`, `remove`, `split`
"""

import csv
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from lorapick.plan.gate.rollout import Listed, Rollout, RolloutError

_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LARGEST = 4 * 1024 * 1024
"""Bytes of a file that is still read."""
KEYS = ("adapters", "add", "remove", "split")
HEADS = ("name", "adapter", "model", "lora")
"""What a CSV may call its column of names."""


def parse(content: bytes, *, file: str) -> Rollout:
    """Read a file.

    Raises:
        RolloutError: it is none of these; the message has the file.
    """
    if len(content) > LARGEST:
        raise RolloutError(f"{file}: larger than {LARGEST} bytes, so not a list of adapters")
    try:
        text = content.decode().removeprefix("\ufeff")
        if not file.endswith((".yaml", ".yml", ".json")):
            return _lines(text)
        found = msgspec.yaml.decode(text)
        _require_once(text)
        return _document(found)
    except UnicodeDecodeError as error:
        raise RolloutError(
            f"{file} is no text (byte {error.start + 1} is none of UTF-8): name a list of adapters, one per line, or "
            "the directory that holds the files of adapters"
        ) from None
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError) as error:
        raise RolloutError(f"{file}: {error}") from None


def split_of(text: str) -> dict[str, float]:
    """`a: 50, a-experiment: 50`.

    Raises:
        RolloutError: it is not written like that.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, colon, weight = part.rpartition(":")
        name = name.strip()
        try:
            number = float(weight)
        except ValueError:
            number = None
        if not colon or not name or number is None:
            raise RolloutError(f"split {text!r}: write it as `a: 50, a-experiment: 50`")
        if name in weights:
            raise RolloutError(f"split {text!r}: {name} is there twice")
        weights[name] = number
    return weights


def _require_once(text: str) -> None:
    """Refuse mappings that have a key twice: readers of YAML and JSON keep the last one, and say nothing."""
    seen: dict[int, None] = {}
    left = [yaml.compose(text, Loader=_LOADER)]
    while left:
        node = left.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = None
        if isinstance(node, yaml.MappingNode):
            keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            twice = next((str(key) for key, count in keys.items() if count > 1), None)
            if twice is not None:
                raise RolloutError(f"{twice} is there twice in line {node.start_mark.line + 1}; name each once")
            left += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value


def _lines(text: str) -> Rollout:
    lines = [stripped for line in text.splitlines() if (stripped := line.partition("#")[0].strip())]
    lines = lines[1:] if lines and _is_head(lines[0]) else lines
    if not lines:
        raise RolloutError("lists no adapters; write one name per line")
    signed = [line for line in lines if line[0] in "+-"]
    if not signed:
        return Rollout(adapters=tuple(_line(line) for line in lines))
    if len(signed) != len(lines):
        plain = next(line for line in lines if line[0] not in "+-")
        raise RolloutError(f"{plain!r} has no sign and other lines do; a difference has + or - before each name")
    return Rollout(
        added=tuple(_line(line[1:].strip()) for line in lines if line[0] == "+"),
        removed=tuple(line[1:].strip() for line in lines if line[0] == "-"),
    )


def _line(line: str) -> Listed:
    words = _fields(line)
    if not 1 <= len(words) <= 2:
        raise RolloutError(
            f"{line!r}: a line has a name, and behind a blank or a comma requests per second if they are known"
        )
    try:
        rate = float(words[1]) if len(words) == 2 and words[1] else None
    except ValueError:
        raise RolloutError(f"{line!r}: {words[1]!r} is no number of requests per second") from None
    return Listed(name=words[0], rate=rate)


def _fields(line: str) -> list[str]:
    """Of a line, between blanks or, as no name has a comma, between commas."""
    if "," not in line:
        return line.split()
    try:
        return [field.strip() for field in next(csv.reader([line], skipinitialspace=True))]
    except csv.Error as error:
        raise RolloutError(f"{line[:60]!r}: no line of a CSV ({error}); write `name,rate`") from None


def _is_head(line: str) -> bool:
    """Whether a line has the names of a CSV's columns: one for names, one for no number."""
    words = _fields(line) if "," in line else []
    return len(words) == 2 and words[0].lower() in HEADS and words[1][:1].isalpha()


def _document(found: Any) -> Rollout:
    if isinstance(found, list):
        if found and all(_is_split(each) for each in found):
            return Rollout(splits=_splits(found))
        return Rollout(adapters=_listed(found, place="adapters"))
    if _is_split(found):
        return Rollout(splits=_splits([found]))
    if not isinstance(found, dict):
        raise RolloutError("neither a list of adapters, nor a split, nor a mapping with " + ", ".join(KEYS))
    unknown = [str(key) for key in found if key not in KEYS]
    if unknown or not found:
        raise RolloutError(f"has {', '.join(unknown) or 'nothing'}; there are {', '.join(KEYS)}")
    split = found.get("split", [])
    return Rollout(
        adapters=_listed(found["adapters"], place="adapters") if "adapters" in found else None,
        added=_listed(found.get("add", []), place="add"),
        removed=msgspec.convert(found.get("remove", []), tuple[str, ...]),
        splits=_splits(split if isinstance(split, list) else [split]),
    )


def _is_split(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and bool(found)
        and all(isinstance(value, int | float) and not isinstance(value, bool) for value in found.values())
    )


def _splits(found: Sequence[Any]) -> tuple[dict[str, float], ...]:
    wrong = [type(each).__name__ for each in found if not _is_split(each)]
    if wrong:
        # Its type alone: what YAML's aliases repeat may be larger than any memory.
        raise RolloutError(f"split: a {wrong[0]} is no mapping from names to weights")
    return tuple({str(name): float(weight) for name, weight in each.items()} for each in found)


def _listed(found: Any, *, place: str) -> tuple[Listed, ...]:
    if not isinstance(found, list):
        raise RolloutError(f"{place} is no list of adapters")
    try:
        return tuple(msgspec.convert({"name": each} if isinstance(each, str) else each, Listed) for each in found)
    except msgspec.ValidationError as error:
        raise RolloutError(f"{place}: {error}") from None
