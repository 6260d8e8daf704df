"""Read chosen families out of a Prometheus text page.

In: the bytes of a `/metrics` page, the names of the families that matter.
Out: their samples, in page order; or `ExpositionError` with the line.
Not here: what a family means (see `wire.engines`); validation of other families' lines, which are never looked at (that
is where the speed comes from); the quoted-name syntax of Prometheus 3 (`{"a b"}`), which servers send only to clients
that ask for it.

The format asks that all lines of one family stand together; samples after another family's lines are not read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NoReturn

import msgspec

from lorapick.model.units import Bytes

MAX_PAGE: Bytes = 8 * 1024 * 1024
"""A vLLM 0.32 page has 57 kB; it grows by a series for each combination of adapters ever in flight together."""
MAX_SAMPLES = 100_000
"""Samples of one family; each costs about a microsecond."""
_CACHED: Bytes = 4096
"""Longest label text that is remembered; bounds the cache at 8 MB."""
_SHORT: Bytes = 1024 * 1024
"""Longest group that is read in one go."""
_SHOWN = 120
_NEWLINE, _COMMENT = b"\n#"
_AFTER_NAME = frozenset((b"{", b" ", b"\t", b"\n", b"\r", b""))

# No group is possessive: before 3.11.5 Python mismatches those that can backtrack inside (cpython#106052). One
# character tells each time which branch goes on, so what is left to try again is linear.
_SAMPLE = re.compile(
    rb"""[ \t]*+
    (?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?  # a brace inside quotes does not close
    [ \t]*+(?P<value>[^ \t{}]++)
    (?:[ \t]++-?[0-9.eE+]++)?                          # timestamp
    (?:[ \t]++\#.*)?                                   # exemplar (OpenMetrics)
    [ \t]*+""",
    re.VERBOSE,
)
_LABEL = re.compile(rb'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\]|\\.)*)"[ \t]*+(?:,|\Z)')
_ESCAPE = re.compile(rb'\\([\\n"])')
_UNESCAPED = {b"\\": b"\\", b"n": b"\n", b'"': b'"'}


class ExpositionError(ValueError):
    """A page that is not what its reader expects; the message names the line where there is one."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One series of a family. Labels are parsed when asked for: most readers need only the value."""

    value: float
    label_text: bytes = b""
    """What stands between the braces; empty when there are none."""

    def labels(self) -> Mapping[str, str]:
        """Labels with escapes undone.

        Raises:
            ExpositionError: the text between the braces is malformed.
        """
        return parse_labels(self.label_text)


def select(page: bytes, families: Sequence[str]) -> dict[str, list[Sample]]:
    """Samples of the wanted families. A family that the page only declares (`# TYPE`) maps to an empty list.

    For gauges, counters (`x_total`) and untyped families: the parts of histograms and summaries stand mixed, label set
    by label set, and are not for this reader. Names in the order in which the page has them are found in a single pass
    over it; any order is correct.

    Raises:
        ExpositionError: the page is too large, or a line of a wanted family is malformed.
    """
    if len(page) > MAX_PAGE:
        raise ExpositionError(f"the page has {len(page)} bytes; the limit is {MAX_PAGE}")
    found: dict[str, list[Sample]] = {}
    cursor = 0
    for family in families:
        name = family.encode()
        group, declared = _find(page, name, cursor)
        if group is None and cursor:
            group, before = _find(page, name, 0)
            declared = declared or before
        if group is not None:
            found[family], cursor = _read(page, name, group)
        elif declared:
            found[family] = []
    return found


def samples(page: bytes, families: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Every sample of the wanted families as (name, labels, value).

    Raises:
        ExpositionError: as `select` and `Sample.labels`.
    """
    for name, found in select(page, families).items():
        for sample in found:
            yield name, sample.labels(), sample.value


def parse_labels(text: bytes) -> Mapping[str, str]:
    """Labels from the text between the braces.

    Raises:
        ExpositionError: malformed text, or a label twice.
    """
    return _remembered(text) if len(text) <= _CACHED else _parse_labels(text)


def _parse_labels(text: bytes) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    at = 0
    while match := _LABEL.match(text, at):
        name, value = match.group(1).decode(), match.group(2)
        if name in labels:
            raise ExpositionError(f'label "{name}" stands twice in {{{_shown(text)}}}')
        labels[name] = _text(value)
        at = match.end()
    if text[at:].strip():
        raise ExpositionError(f"malformed labels {{{_shown(text)}}} near {_shown(text[at:])}")
    return MappingProxyType(labels)


_remembered = lru_cache(maxsize=2048)(_parse_labels)


def _text(value: bytes) -> str:
    if b"\\" in value:
        # Other escapes stay as they are, as in Prometheus's own parser.
        value = _ESCAPE.sub(lambda match: _UNESCAPED[match.group(1)], value)
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ExpositionError(f"label value {_shown(value)} is not UTF-8") from error


def _find(page: bytes, name: bytes, start: int) -> tuple[int | None, bool]:
    """Where the first line that carries `name` begins, from `start` on; and whether a comment declares it before."""
    declared = False
    at = page.find(name, start)
    while at >= 0:
        after = at + len(name)
        if page[after : after + 1] in _AFTER_NAME:
            if at == 0 or page[at - 1] == _NEWLINE:
                return at, declared
            line = page.rfind(b"\n", 0, at) + 1
            lead = page[line:at].strip()
            if not lead:
                return line, declared
            declared = declared or lead in (b"# TYPE", b"# HELP")
        at = page.find(name, after)
    return None, declared


@lru_cache(maxsize=256)
def _usual(name: bytes) -> re.Pattern[bytes]:
    """Nearly all lines: `name{labels} number`. A `#` may begin an exemplar, whose braces are not the labels'."""
    return re.compile(rb"^" + re.escape(name) + rb"(?:\{([^#\n]*)\})? ([^ \t\r\n_]+)$", re.MULTILINE)


def _read(page: bytes, name: bytes, start: int) -> tuple[list[Sample], int]:
    """Samples from `start` on while lines carry `name`, and where they end."""
    end = page.find(b"\n# HELP ", start)
    end = len(page) if end < 0 else end
    if end - start < _SHORT and not page.startswith(name + b" ", end + 8):
        block = page[start:end].rstrip()
        rows = _usual(name).findall(block)
        if len(rows) == block.count(b"\n") + 1 <= MAX_SAMPLES:
            try:
                return [Sample(float(value), labels) for labels, value in rows], end
            except ValueError:
                pass  # read again, line by line, for the message
    return _read_lines(page, name, start)


def _read_lines(page: bytes, name: bytes, start: int) -> tuple[list[Sample], int]:
    """`_read` for whatever the format allows; comments and empty lines between samples are passed over."""
    found: list[Sample] = []
    size, at = len(page), start
    while at < size:
        stop = page.find(b"\n", at)
        end = stop + 1 if stop >= 0 else size
        line = page[at:end].strip()
        if line.startswith(name) and line[len(name) : len(name) + 1] in _AFTER_NAME:
            found.append(_sample(page, line, len(name), at=at))
        elif line and line[0] != _COMMENT:
            break
        at = end
        if len(found) > MAX_SAMPLES:
            raise ExpositionError(f"{name.decode()} has more than {MAX_SAMPLES} series; that is the limit")
    return found, at


def _sample(page: bytes, line: bytes, start: int, *, at: int) -> Sample:
    """One line, whose name ends at `start`."""
    match = _SAMPLE.fullmatch(line, start)
    if match is None:
        _refuse(page, line, at=at, why="is not a sample")
    return Sample(_number(page, match.group("value"), at=at), match.group("labels") or b"")


def _number(page: bytes, value: bytes, *, at: int) -> float:
    """A value of the format. Python's own digit separators are no part of it."""
    try:
        return float(value if b"_" not in value else b"")
    except ValueError:
        line = page[at:].partition(b"\n")[0]
        _refuse(page, line, at=at, why=f"has the value {_shown(value)}, which is not a number")


def _refuse(page: bytes, line: bytes, *, at: int, why: str) -> NoReturn:
    number = page.count(b"\n", 0, at) + 1
    raise ExpositionError(f"line {number} {why}: {_shown(line)}")


def _shown(text: bytes) -> str:
    """Foreign bytes for a message: one line, bounded, printable."""
    shown = text[:_SHOWN].decode(errors="backslashreplace").encode("unicode_escape").decode()
    return shown + ("…" if len(text) > _SHOWN else "")
