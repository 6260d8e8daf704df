"""Keys that are read and checked, and that no part acts on yet: the one list of them.

In: the text of a good configuration. Out: where such keys stand in it, with what does not happen.
Not here: keys that are refused because their part does not exist at all (see `settings.RESERVED`, `readers.not_yet`).

Who builds a part takes its keys off `LATER`; a test holds that no decision reads a setting that is listed here.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lorapick.wire.config.document import At, Refused, Report, parse_document

LATER: dict[str, str] = {
    "adapters.list[].size": "loads are expected to take load_times whatever their size",
}
"""Path of each key (`[]`: every item of a list), and what does not happen although it is set."""
HEADING = "parsed, not yet acted on"


class Later(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a file that changes nothing yet. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    field: str
    """Path in the file, such as `adapters.list[2].weekend`."""
    key: str
    """The same for all items of a list: a key of `LATER`."""
    message: str
    """What does not happen."""

    def __str__(self) -> str:
        """One line, in the form of `Problem`."""
        return f"{self.file}:{self.line}:{self.column}: {self.field}: {self.message}"


def later_keys(content: bytes | str, *, file: str) -> tuple[Later, ...]:
    """Keys of a good configuration that no part acts on yet, in the order of the file.

    Args:
        content: the YAML text.
        file: what messages call it.

    Raises:
        ConfigError: the text is no YAML document. What its keys say is not checked here.
    """
    root = parse_document(content, Report(file))
    found = [_later(file, key, place) for key in LATER for place in _places(root, _steps(key))]
    return tuple(sorted(found, key=lambda later: (later.line, later.column, later.field)))


def one_per_key(found: Iterable[Later]) -> tuple[str, ...]:
    """One line for each key of `LATER`: its first place, and how many more there are."""
    by_key: dict[str, list[Later]] = {}
    for later in found:
        by_key.setdefault(later.key, []).append(later)
    return tuple(f"{places[0]}{_more(len(places) - 1)}" for places in by_key.values())


def _more(count: int) -> str:
    return f" (and {count} more of this key)" if count else ""


def _later(file: str, key: str, place: At) -> Later:
    mark = place.node.start_mark
    return Later(file=file, line=mark.line + 1, column=mark.column + 1, field=place.field, key=key, message=LATER[key])


def _steps(key: str) -> list[str]:
    return key.replace("[]", ".[]").split(".")


def _places(at: At, steps: Sequence[str]) -> Iterator[At]:
    """The keys below `at` that `steps` lead to; merged (`<<`) ones too, where they stand."""
    step, *rest = steps
    with contextlib.suppress(Refused):
        if step == "[]":
            for item in at.items():
                yield from _places(item, rest)
        elif (entry := at.entries().get(step)) is not None:
            if rest:
                yield from _places(entry.value, rest)
            else:
                yield entry.key
