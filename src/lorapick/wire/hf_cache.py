"""The layout of a Hugging Face cache, as names: `models--ORG--NAME/{refs/BRANCH, snapshots/COMMIT/FILE}`.

In: `org/name@revision`, names of folders. Out: the other one. Not here: looking into a cache (see
`live.catalogue.cache`).
"""

import re

import msgspec

DEFAULT_REVISION = "main"
_PART = r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"{_PART}(/{_PART})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PREFIX = "models--"


class CachedRepo(msgspec.Struct, frozen=True, kw_only=True):
    """A repository of models, and which state of it."""

    repo: str
    revision: str = DEFAULT_REVISION
    """A branch, a tag or a commit."""

    @property
    def folder(self) -> str:
        """Its folder in a cache."""
        return _PREFIX + self.repo.replace("/", "--")

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a snapshot's own name, which never comes to mean another one."""
        return _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}"


def parse_repo(text: str) -> CachedRepo | None:
    """`org/name` or `org/name@revision`; None: it is neither, or would lead out of the cache."""
    repo, at, revision = text.partition("@")
    revision = revision if at else DEFAULT_REVISION
    fits = _REPO.fullmatch(repo) and _REVISION.fullmatch(revision)
    if not fits or "--" in repo or ".." in text or len(revision) > 255:
        return None
    return CachedRepo(repo=repo, revision=revision)


def repo_of(folder: str) -> str | None:
    """The repository of a cache's folder; None: it holds no models."""
    if not folder.startswith(_PREFIX):
        return None
    found = parse_repo(folder.removeprefix(_PREFIX).replace("--", "/"))
    return None if found is None or found.folder != folder else found.repo
