"""Where an adapter's weights come from: the text of `source`, as a value.

In: `source` of an adapter, `placement.sources`. Out: a path, a repository of the Hugging Face cache, or a URL; whether
it is among the places that are allowed; or `AdapterSourceError`. Not here: whether anything is there (see
`live.catalogue`).
"""

import posixpath
import re
from collections.abc import Iterable
from enum import StrEnum
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from lorapick.wire.hf_cache import CachedRepo, parse_repo

HF_CACHE = "hf-cache:"
SCHEMES = ("http", "https", "s3")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
LONGEST = 4096
"""Characters of a source."""


class SourceReason(StrEnum):
    """Why weights cannot be had, or not be used."""

    UNDECLARED = "undeclared"
    NOT_ALLOWED = "not_allowed"
    UNREADABLE = "unreadable"
    """What the source says, or what a file holds."""
    CREDENTIALS = "credentials"
    MISSING = "missing"
    CHANGED = "changed"
    """Other weights under a name that pods have loaded."""
    MISMATCH = "mismatch"
    """Files and declaration do not agree."""
    NO_STORE = "no_store"
    UNREACHABLE = "unreachable"
    TOO_LARGE = "too_large"
    TIMEOUT = "timeout"


class AdapterSourceError(Exception):
    """Nobody may load the adapter from its source now; the text says why, and what would help."""

    def __init__(self, reason: SourceReason, message: str) -> None:
        """Keep the reason beside the text."""
        super().__init__(message)
        self.reason = reason


class LocalPath(msgspec.Struct, frozen=True, kw_only=True):
    """A folder on a file system that pods see too. Relative ones start at the configuration file."""

    path: str


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A folder behind a URL, without a slash at its end."""

    url: str
    scheme: str


Source = LocalPath | CachedRepo | Remote


def parse_source(text: str) -> Source:
    """Read a source.

    Raises:
        AdapterSourceError: it is of no kind that we know, or has credentials in it (which the message does not repeat).
    """
    if not text or len(text) > LONGEST or not text.isprintable() or "\\" in text:
        raise _unreadable(f"a source of {len(text)} characters, or one with a character that no source has")
    if text.startswith("~"):
        raise _unreadable(f"source {text}: a `~` is another folder on each pod; write the whole path")
    if text.startswith(HF_CACHE):
        repo = parse_repo(text.removeprefix(HF_CACHE))
        if repo is None:
            raise _unreadable(f"source {text}: not org/name or org/name@revision after {HF_CACHE}")
        return repo
    scheme = _SCHEME.match(text)
    return LocalPath(path=text) if scheme is None else _remote(text, scheme=scheme[1].lower())


def allowed(source: Source, prefixes: Iterable[str], *, beside: str) -> bool:
    """Whether a source is one of `prefixes` (paths, URLs, `hf-cache:org`), or below one.

    Args:
        source: whose place is asked about.
        prefixes: those of `placement.sources`.
        beside: absolute folder that relative paths start from.
    """
    place = _place(source, beside=beside)
    for prefix in prefixes:
        if prefix == HF_CACHE and isinstance(source, CachedRepo):
            return True
        try:
            root = _place(_prefix(prefix), beside=beside)
        except AdapterSourceError:
            continue  # a prefix that is no source allows nothing
        if root[0] == place[0] and place[1][: len(root[1])] == root[1]:
            return True
    return False


def _prefix(text: str) -> Source:
    """As a source, but an organisation alone is good too, and one without a revision takes each."""
    if text.startswith(HF_CACHE) and "@" not in text:
        return CachedRepo(repo=text.removeprefix(HF_CACHE).rstrip("/"), revision="")
    return parse_source(text)


def _place(source: Source, *, beside: str) -> tuple[str, tuple[str, ...]]:
    """What must be equal, and the steps below it. Dots are gone: none leads out of a prefix."""
    match source:
        case LocalPath(path=path):
            whole = posixpath.normpath(posixpath.join(beside, path))
            return "path", tuple(step for step in whole.split("/") if step)
        case CachedRepo(repo=repo, revision=revision):
            return "hf", (*repo.split("/"), *([revision] if revision else []))
        case Remote(url=url):
            parts = urlsplit(url)
            steps = tuple(step for step in parts.path.split("/") if step)
            return f"{parts.scheme}://{parts.netloc.lower()}", steps


def _remote(text: str, *, scheme: str) -> Remote:
    if scheme not in SCHEMES:
        raise _unreadable(
            f"source of scheme {scheme}: only {', '.join(SCHEMES)}, {HF_CACHE}org/name and paths are read"
        )
    try:
        parts = urlsplit(text)
        _ = parts.port  # reading it checks it
    except ValueError as error:
        raise _unreadable(f"a source of scheme {scheme} that is no URL: {error}") from None
    _check_secrets(parts, scheme=scheme)
    steps = unquote(parts.path).split("/")
    if (parts.hostname or ".").startswith(".") or ".." in steps or "." in steps:
        raise _unreadable(f"source {text}: a URL names a host (or bucket), and its path has no dots for steps")
    return Remote(url=f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}", scheme=scheme)


def _check_secrets(parts: SplitResult, *, scheme: str) -> None:
    if "@" in parts.netloc or parts.query or parts.fragment:
        what = "a user or password" if "@" in parts.netloc else "a query or fragment"
        raise AdapterSourceError(
            SourceReason.CREDENTIALS,
            f"source {scheme}://{parts.hostname or ''}...: a URL with {what}; credentials come from the "
            "environment only (AWS_* for s3, NETRC for http)",
        )


def _unreadable(message: str) -> AdapterSourceError:
    return AdapterSourceError(SourceReason.UNREADABLE, message)
