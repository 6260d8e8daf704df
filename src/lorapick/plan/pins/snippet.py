"""The section `adapters:` of a configuration with the pins in it.

In: advice, the text of the configuration. Out: YAML. Not here: writing it to a file, checking it (see `wire.config`).

What the section had stays as it was; adapters that it names get a `pin`, others a line of their own. Pods are named
where the fleet has names; else a pin says how many.
"""

import json
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import NamedTuple

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from lorapick.model.adapters import PinSpec
from lorapick.model.units import AdapterName
from lorapick.plan.pins.values import Advice, PinFleet, Pinned, Remark

_TEXT = "tag:yaml.org,2002:str"
_Pairs = dict[str, str]
"""Keys of a mapping and their values as YAML on one line."""


class Section(NamedTuple):
    """`adapters:` of a configuration."""

    other: _Pairs
    """Keys beside `list`."""
    entries: tuple[tuple[AdapterName, _Pairs], ...]
    """Of `list`."""


def section_of(content: bytes) -> Section:
    """The section of a configuration that has been read without problems."""
    root = yaml.compose(content.decode(), Loader=yaml.SafeLoader)
    nodes = _nodes(_nodes(root).get("adapters"))
    listed = nodes.pop("list", None)
    found = []
    for each in listed.value if isinstance(listed, SequenceNode) else ():
        name = _name(each)
        if name is not None:
            found.append((name, {key: _flow(value) for key, value in _nodes(each).items()}))
    return Section({key: _flow(value) for key, value in nodes.items()}, tuple(found))


def specs(advice: Advice, fleet: PinFleet) -> dict[AdapterName, PinSpec]:
    """The new pins, as the snippet says them."""
    return {
        each.adapter: PinSpec(pods=each.pods) if fleet.named else PinSpec(replicas=len(each.pods))
        for each in advice.pins
    }


def snippet(advice: Advice, fleet: PinFleet, *, section: Section | None = None, head: str = "") -> str:
    """YAML that takes the place of the configuration's `adapters:`; empty when nothing should be pinned.

    Args:
        advice: whom to pin.
        fleet: where.
        section: `adapters:` of the configuration as it is; None: there is none.
        head: a comment above it.
    """
    if not advice.pins:
        return ""
    comment = wrap(head, 118, initial_indent="# ", subsequent_indent="# ")
    return "\n".join((*comment, *_lines(advice, specs(advice, fleet), section=section or Section({}, ())))) + "\n"


def _lines(advice: Advice, pins: Mapping[AdapterName, PinSpec], *, section: Section) -> Iterator[str]:
    remarks = {each.adapter: _remark(each) for each in advice.pins}
    entries = {name: f"pin: {_entry(spec)}" for name, spec in pins.items()}
    yield "adapters:"
    yield from (f"  {key}: {value}" for key, value in section.other.items())
    yield "  list:"
    for name, pairs in section.entries:
        # A pin that is there is that of somebody who is not pinned anew; one that has no place stays as well.
        parts = [*(f"{key}: {value}" for key, value in pairs.items()), *([entries[name]] if name in entries else [])]
        yield f"    - {{{', '.join(parts)}}}{remarks.get(name, '')}"
    there = [name for name, _ in section.entries]
    for name, entry in entries.items():
        if name not in there:
            yield f"    - {{name: {_quoted(name)}, {entry}}}{remarks[name]}"


def _entry(spec: PinSpec) -> str:
    if spec.pods:
        return f"{{pods: [{', '.join(map(_quoted, spec.pods))}]}}"
    return f"{{replicas: {spec.replicas}}}"


def _remark(pinned: Pinned) -> str:
    share = f"  # {100 * pinned.share:.1f} % of requests"
    return f"{share}; new: leave it out if it is an experiment" if pinned.remark is Remark.NEW else share


# -- YAML


def _nodes(node: Node | None) -> dict[str, Node]:
    return {str(key.value): value for key, value in node.value} if isinstance(node, MappingNode) else {}


def _name(entry: Node) -> AdapterName | None:
    """Its `name`, which may come from what it is merged with (`<<`)."""
    nodes = _nodes(entry)
    if "name" in nodes:
        return str(nodes["name"].value)
    return _name(nodes["<<"]) if "<<" in nodes else None


def _flow(node: Node) -> str:
    """A node on one line. Texts are in quotes; numbers and truths stay as they were written."""
    if isinstance(node, MappingNode):
        return "{" + ", ".join(f"{_key(key)}: {_flow(value)}" for key, value in node.value) + "}"
    if isinstance(node, SequenceNode):
        return "[" + ", ".join(map(_flow, node.value)) + "]"
    assert isinstance(node, ScalarNode)
    return _quoted(node.value) if node.tag == _TEXT else node.value or "null"


def _key(node: Node) -> str:
    return _quoted(node.value) if node.tag == _TEXT else str(node.value)


def _quoted(text: str) -> str:
    """In quotes, so that it is taken for no number, date or truth."""
    return json.dumps(text, ensure_ascii=False)
