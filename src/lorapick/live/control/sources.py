"""Where adapters are loaded from, as far as the configuration says, and where pods may be told to load from at all.

In: declared adapters; paths and references that somebody wants a pod to be told. Out: them, or why not.
Not here: fetching and checking weights (see `live.catalogue`). Whether a path that is allowed leads elsewhere by a
symbolic link is for the pod's file system alone to say: nobody can see that from here.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from lorapick.live.ports import NoSourceError, SourceError
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName

LONGEST_SOURCE = 4096
"""Bytes; PATH_MAX of Linux."""
LONGEST_NAME = 512
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class StaticSources:
    """The `source` that an adapter was declared with, as it stands."""

    def __init__(self, find: Callable[[AdapterName], Adapter | None]) -> None:
        """Ask `find` for what is known of an adapter; None: nothing."""
        self._find = find

    async def __call__(self, adapter: AdapterName, pod: Pod) -> str:
        """What pods are told; the same for all.

        Raises:
            NoSourceError: nobody declared a source.
        """
        del pod
        known = self._find(adapter)
        if known is None or known.source is None:
            raise NoSourceError(f"nobody said where {adapter} is loaded from: give it a `source` in adapters.list")
        return known.source


async def no_sources(adapter: AdapterName, pod: Pod) -> str:
    """Sources when there are none; raises NoSourceError."""
    del pod
    raise NoSourceError(f"nobody said where {adapter} is loaded from")


def check_name(name: AdapterName) -> None:
    """Refuse names that engines cannot tell apart in lists, or that no log line can hold.

    Raises:
        SourceError: the name is such a one.
    """
    if not name or "," in name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise SourceError(
            f"adapter name {name[:LONGEST_NAME]!r} is no name to load: it must have 1 to {LONGEST_NAME} printable "
            "characters and no comma (vLLM joins names with one)"
        )


class AllowedSources:
    """Which sources pods may be told. A relative one (`org/name`) is a reference: vLLM would fetch it from the Hub."""

    def __init__(
        self,
        *,
        prefixes: Sequence[str] = (),
        catalogue: str | None = None,
        store: str | None = None,
        declared: Callable[[AdapterName], str | None] = lambda _: None,
    ) -> None:
        """Allow what lies under `prefixes`; when there are none, what is declared and what the catalogue has.

        Args:
            prefixes: `placement.sources`: paths, references and URLs, by whole parts (`/a/b` allows `/a/b/c`, never
                `/a/bc`).
            catalogue: directory of `adapters.catalogue`; None: there is none.
            store: `placement.store`, allowed whatever the prefixes: what is fetched is put there. None: there is none.
            declared: the source that the configuration gives an adapter; None: it gives none.

        Raises:
            SourceError: a prefix could never be the beginning of a source; the message names it.
        """
        self._named = bool(prefixes)
        self._declared = declared
        places = [*prefixes] if prefixes else [] if catalogue is None else [catalogue]
        self._places = [_place(each) for each in [*places, *([] if store is None else [store])]]

    def __call__(self, adapter: AdapterName, source: str) -> None:
        """Refuse an adapter's name or source.

        Raises:
            SourceError: pods may not be told so; the message says why, and what to do.
        """
        check_name(adapter)
        place = _place(source)
        if any(each.holds(place) for each in self._places):
            return
        if not self._named and source == self._declared(adapter):
            return
        where = "under no prefix of placement.sources" if self._named else "not what the configuration declares"
        raise SourceError(f"source {source!r} of {adapter} is {where}: name its place in placement.sources")


class _Place(NamedTuple):
    """A source, taken apart."""

    root: str
    """`/`, the scheme and host of a URL, or nothing for a reference."""
    parts: tuple[str, ...]

    def holds(self, other: "_Place") -> bool:
        """Whether the other one is this, or under it."""
        return other.root == self.root and other.parts[: len(self.parts)] == self.parts


def _place(source: str) -> _Place:
    """Take a source apart.

    Raises:
        SourceError: it could mean another place than it says.
    """
    _check_characters(source)
    scheme = _SCHEME.match(source)
    if scheme is None:
        root, path = ("/", source[1:]) if source.startswith("/") else ("", source)
    else:
        host, path = _host(source, after=scheme.end())
        root = f"{scheme[1].lower()}://{host}"
    parts = tuple(part for part in path.split("/") if part)
    if not all(_plain(part) for part in parts):
        raise SourceError(f"source {source!r} has a `.` or `..` in it, or hides a sign: write the place that it means")
    return _Place(root, parts)


def _plain(part: str) -> bool:
    """Whether a part of a path is a name, however often somebody decodes it."""
    decoded = unquote(part)
    if decoded != part:
        return decoded.isprintable() and not any(sign in decoded for sign in "/\\") and _plain(decoded)
    return part not in (".", "..")


def _check_characters(source: str) -> None:
    if not source or not source.isprintable() or "\\" in source:
        raise SourceError(f"source {source!r} is empty, or has a character that no source may have (NUL, \\, ...)")
    if len(source.encode()) > LONGEST_SOURCE:
        raise SourceError(f"source {source[:80]!r}... is longer than {LONGEST_SOURCE} bytes")
    if source.startswith("~"):
        raise SourceError(f"source {source!r} begins with a `~`, which each pod takes for another directory")


def _host(source: str, *, after: int) -> tuple[str, str]:
    """Host and path of a URL whose scheme ends at `after`."""
    rest = source[after:]
    if not rest.startswith("//"):
        raise SourceError(f"source {source!r} has a scheme without `//`: write a URL, or a path that begins with `/`")
    host, _, path = rest[2:].partition("/")
    if any(sign in rest for sign in "?#") or "@" in host:
        raise SourceError(f"source {source!r} has a user, a query or a fragment: credentials come from the environment")
    return host.lower(), path
