"""YAML that is changed in places and written again, with every number as its author wrote it.

In: the text of a good configuration. Out: a document of dicts, lists and values to change, and its text again.
Not here: whether it is good (see `wire.config`).

A number may be text where it stands (`revision: 1.10`, `{generation: 010}`): read as a number and written again it
would be another (1.1, 8).
"""

import re
from collections.abc import Mapping
from typing import Any, Self

import yaml

_PLAIN = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
"""Whole numbers that are written as they were read."""


class Number(str):
    """A number by its text; written without quotes."""

    def __new__(cls, text: str, tag: str) -> Self:
        """Keep the text; `tag` is YAML's type of it."""
        self = super().__new__(cls, text)
        self.tag = tag
        return self

    tag: str


class _Loader(yaml.SafeLoader):
    """YAML's types but for numbers."""


class _Dumper(yaml.SafeDumper):
    """As `yaml.SafeDumper`, with `Number`."""


def _number(_loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | Number:
    text = str(node.value)
    return int(text) if _PLAIN.fullmatch(text) else Number(text, str(node.tag))


def _plain(dumper: yaml.SafeDumper, value: Number) -> yaml.ScalarNode:
    return dumper.represent_scalar(value.tag, str(value))


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)
_Dumper.add_representer(Number, _plain)


def read(content: bytes) -> dict[str, Any]:
    """The document of a text that has been checked (nothing is bounded here).

    Numbers that would be written otherwise than they were read are `Number`.

    Raises:
        yaml.YAMLError: no YAML.
    """
    loader = _Loader(content.decode("utf-8-sig"))
    try:
        return dict(loader.get_single_data() or {})
    finally:
        loader.dispose()


def write(document: Mapping[str, Any]) -> bytes:
    """The document's text; keys keep their order."""
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text.encode()
