"""YAML text as a tree that knows where everything stands.

In: the text of one file. Out: `At`, a node with its path, through which readers look and complain; or `ConfigError`.
Not here: what any key means (see `readers` and the sections).

Bounded on purpose: size of the text, depth, and nodes after anchors are expanded (ten anchors of ten aliases each would
be ten thousand million nodes).
"""

import difflib
from collections.abc import Iterable
from typing import NoReturn

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from lorapick.model.units import Bytes
from lorapick.wire.config.problems import ConfigError, Problem

MAX_TEXT: Bytes = 4 * 1024 * 1024
"""A pods file of 4,096 pods has 0.4 MB."""
MAX_NODES = 500_000
MAX_DEPTH = 32
_SHOWN = 80
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_STR = "tag:yaml.org,2002:str"
_INT = "tag:yaml.org,2002:int"
_NULL = "tag:yaml.org,2002:null"


class Refused(Exception):  # noqa: N818 - not an error of its own: the problem is already in the report
    """A reader gave up on its node; what was wrong is in the report."""


class Report:
    """Problems of one file, as they are found."""

    def __init__(self, file: str) -> None:
        """Start with none."""
        self.file = file
        self.problems: list[Problem] = []

    def add(self, *, line: int, column: int, field: str = "", value: str = "", message: str, hint: str = "") -> None:
        """Note one problem; the same again (a node that is read twice, or has two aliases) is one."""
        problem = Problem(
            file=self.file, line=line, column=column, field=field, value=value, message=message, hint=hint
        )
        if problem not in self.problems:
            self.problems.append(problem)

    def raise_if_any(self) -> None:
        """Raise what was noted.

        Raises:
            ConfigError: there are problems.
        """
        if self.problems:
            raise ConfigError(self.problems)


class At:
    """One node of the tree and the path that leads to it."""

    __slots__ = ("field", "node", "report")

    def __init__(self, node: Node, field: str, report: Report) -> None:
        """Look at `node`; `field` is its path."""
        self.node = node
        self.field = field
        self.report = report

    @property
    def tag(self) -> str:
        """The YAML type, as YAML 1.1 resolves it."""
        return str(self.node.tag)

    @property
    def shown(self) -> str:
        """What stands here, shortened and on one line."""
        if isinstance(self.node, ScalarNode):
            text = str(self.node.value)
            quoted = f'"{text}"' if self.tag == _STR else text or "nothing"
            escaped = quoted.encode("unicode_escape").decode() if not quoted.isprintable() else quoted
            return escaped if len(escaped) <= _SHOWN else escaped[:_SHOWN] + "…"
        return "a list" if isinstance(self.node, SequenceNode) else "a mapping"

    @property
    def is_scalar(self) -> bool:
        """Whether it is a single value, neither list nor mapping."""
        return isinstance(self.node, ScalarNode)

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.node, MappingNode)

    @property
    def is_null(self) -> bool:
        """Whether nothing stands here (`key:` without a value, `~`, `null`)."""
        return self.tag == _NULL

    def note(self, message: str, *, hint: str = "", value: str | None = None) -> None:
        """Note a problem with this node and go on."""
        mark = self.node.start_mark
        self.report.add(
            line=mark.line + 1,
            column=mark.column + 1,
            field=self.field,
            value=self.shown if value is None else value,
            message=message,
            hint=hint,
        )

    def refuse(self, message: str, *, hint: str = "", value: str | None = None) -> NoReturn:
        """Note a problem with this node and give up on it.

        Raises:
            Refused: always.
        """
        self.note(message, hint=hint, value=value)
        raise Refused

    def items(self) -> list["At"]:
        """Items of a list.

        Raises:
            Refused: it is none.
        """
        if not isinstance(self.node, SequenceNode):
            self.refuse("must be a list")
        return [At(node, f"{self.field}[{index}]", self.report) for index, node in enumerate(self.node.value)]

    def entries(self, *, numbers: bool = False) -> "dict[str, Entry]":
        """Keys and values of a mapping; `<<` merges are undone, keys that stand twice are noted.

        With `numbers` whole numbers may be keys too, as they are written.

        Raises:
            Refused: it is none.
        """
        if not isinstance(self.node, MappingNode):
            self.refuse("must be a mapping (key: value)")
        merged: dict[str, Entry] = {}
        own: dict[str, Entry] = {}
        for key, value in self.node.value:
            if key.tag == _MERGE:
                merged = self._merged(value) | merged
                continue
            if not isinstance(key, ScalarNode) or key.tag not in ((_STR, _INT) if numbers else (_STR,)):
                At(key, self.field, self.report).note("a key must be text", hint="put it in quotes")
                continue
            name = str(key.value)
            path = f"{self.field}.{name}" if self.field else name
            entry = Entry(At(key, path, self.report), At(value, path, self.report))
            if name in own:
                first = own[name].key.node.start_mark.line + 1
                entry.key.note(f"stands twice; the first is in line {first}", value="")
            own.setdefault(name, entry)
        return merged | own

    def _merged(self, node: Node) -> "dict[str, Entry]":
        parts = node.value if isinstance(node, SequenceNode) else [node]
        found: dict[str, Entry] = {}
        for part in parts:
            found = At(part, self.field, self.report).entries() | found  # the first that has a key wins
        return found

    def find(self, *path: str | int) -> "At | None":
        """The node at `path` below this one; None: there is none."""
        here: At | None = self
        for step in path:
            here = here.step(step) if here is not None else None
        return here

    def nearest(self, *path: str | int) -> "At":
        """The node at `path`, or the last one on the way there that exists: for messages about it."""
        here = self
        for step in path:
            here = here.step(step) or here
        return here

    def each(self, *path: str | int) -> list["At"]:
        """Items of the list at `path`; none when there is no list."""
        place = self.find(*path)
        return place.items() if place is not None and isinstance(place.node, SequenceNode) else []

    def step(self, step: str | int) -> "At | None":
        """The node under one key or index; None: there is none."""
        if isinstance(step, int):
            items = self.node.value if isinstance(self.node, SequenceNode) else []
            return At(items[step], f"{self.field}[{step}]", self.report) if step < len(items) else None
        pairs = self.node.value if isinstance(self.node, MappingNode) else []
        value = next((value for key, value in pairs if key.value == step), None)
        path = f"{self.field}.{step}" if self.field else step
        return None if value is None else At(value, path, self.report)


class Entry:
    """One key with its value."""

    __slots__ = ("key", "value")

    def __init__(self, key: At, value: At) -> None:
        """Both have the path of the value."""
        self.key = key
        self.value = value


def nearest_word(word: str, known: Iterable[str]) -> str:
    """A hint: the known word that is meant, or all of them. Upper and lower case are alike."""
    words = sorted(set(known))
    alike = [each for each in words if each.lower() == word.lower()]
    if close := alike or difflib.get_close_matches(word, words, n=1):
        return f'did you mean "{close[0]}"?'
    return f"known: {', '.join(words)}" if len(words) <= 24 else ""


def parse_document(text: bytes | str, report: Report) -> At:
    """The root of the file's only document.

    Raises:
        ConfigError: the text is too large, no YAML, empty, or nested or expanded beyond the bounds.
    """
    try:
        root = _compose(text, report)
        _measure(root, depth=0, known={}, report=report)
    except Refused:
        raise ConfigError(report.problems) from None
    return At(root, "", report)


def _compose(text: bytes | str, report: Report) -> Node:
    data = text.encode() if isinstance(text, str) else text
    if len(data) > MAX_TEXT:
        _whole_file(report, f"the file has {len(data)} bytes; the limit is {MAX_TEXT}")
    try:
        # UTF-8 with or without a byte order mark; YAML's other encodings are not worth their surprises.
        decoded = data.decode("utf-8-sig")
        root = yaml.compose(decoded, Loader=_LOADER)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        _whole_file(report, f"not UTF-8: byte 0x{data[error.start]:02x}", line=line + 1, column=column)
    except yaml.reader.ReaderError as error:
        before = decoded[: error.position]
        column = error.position - before.rfind("\n")
        _whole_file(report, f"not YAML: {error.reason}", line=before.count("\n") + 1, column=column)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        said = ", ".join(part for part in (error.context, error.problem) if part)
        _whole_file(report, f"not YAML: {said}", line=line, column=column)
    except RecursionError:
        _whole_file(report, f"nested deeper than {MAX_DEPTH} levels")
    if root is None:
        _whole_file(report, "the file is empty")
    return root


def _whole_file(report: Report, message: str, *, line: int = 1, column: int = 1) -> NoReturn:
    report.add(line=line, column=column, message=message)
    raise Refused


def _measure(node: Node, *, depth: int, known: dict[int, tuple[int, int]], report: Report) -> tuple[int, int]:
    """Nodes and depth below `node` with aliases expanded; each node is measured once."""
    if id(node) in known:
        size, height = known[id(node)]
    elif isinstance(node, ScalarNode):
        size, height = 1, 0
    elif depth >= MAX_DEPTH:
        # A node that contains itself through an alias ends here too.
        At(node, "", report).refuse(f"nested deeper than {MAX_DEPTH} levels", value="")
    else:
        pairs = isinstance(node, MappingNode)
        children = [part for pair in node.value for part in pair] if pairs else node.value
        below = [_measure(child, depth=depth + 1, known=known, report=report) for child in children]
        size = 1 + sum(count for count, _ in below)
        height = 1 + max((high for _, high in below), default=0)
        known[id(node)] = (size, height)
    if depth + height > MAX_DEPTH:
        At(node, "", report).refuse(f"nested deeper than {MAX_DEPTH} levels", value="")
    if size > MAX_NODES:
        At(node, "", report).refuse(
            f"has {size} values after its anchors are expanded; the limit is {MAX_NODES}", value=""
        )
    return size, height
