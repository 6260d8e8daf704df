"""Adapters in a Hugging Face cache on disk.

In: a repository and a revision, or the cache's folder. Out: folders of snapshots. Blocks: call it in a thread. Nothing
is downloaded: `hf download ORG/NAME` fills the cache. Not here: the layout's names (see `wire.hf_cache`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lorapick.wire.adapter_source import AdapterSourceError, SourceReason
from lorapick.wire.hf_cache import DEFAULT_REVISION, CachedRepo, repo_of
from lorapick.wire.peft import CONFIG_FILE

_LONGEST_COMMIT = 64


class Snapshot(NamedTuple):
    """One state of a repository, on disk."""

    repo: CachedRepo
    commit: str
    folder: Path


def hub_folder(environment: Mapping[str, str]) -> Path:
    """Where the cache is: `HF_HUB_CACHE`, `HF_HOME/hub`, or the default of Hugging Face's own libraries."""
    if environment.get("HF_HUB_CACHE"):
        return Path(environment["HF_HUB_CACHE"]).expanduser()
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]).expanduser() / "hub"
    caches = environment.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path("~/.cache")).expanduser() / "huggingface" / "hub"


def snapshot(repo: CachedRepo, *, hub: Path) -> Snapshot:
    """The folder of a repository's revision.

    Raises:
        AdapterSourceError: the cache does not have it.
    """
    root = hub / repo.folder
    commit = repo.revision if repo.is_commit else _read_ref(root / "refs" / repo.revision)
    if commit is None or not (root / "snapshots" / commit).is_dir():
        fetch = f"hf download {repo.repo}" + (
            "" if repo.revision == DEFAULT_REVISION else f" --revision {repo.revision}"
        )
        raise AdapterSourceError(
            SourceReason.MISSING,
            f"hf-cache:{repo}: not in the cache {hub}; fill it with `{fetch}`, or set HF_HUB_CACHE to where it is",
        )
    return Snapshot(repo, commit, root / "snapshots" / commit)


def snapshots(hub: Path) -> Iterator[Snapshot]:
    """Every adapter that a cache has under a branch or tag, `main` first, in the order of names."""
    for root in sorted(hub.glob("models--*")):
        repo = repo_of(root.name)
        refs = root / "refs"
        if repo is None or not refs.is_dir():
            continue
        names = sorted(file.relative_to(refs).as_posix() for file in refs.rglob("*") if file.is_file())
        for name in sorted(names, key=lambda each: each != DEFAULT_REVISION):
            commit = _read_ref(refs / name)
            folder = root / "snapshots" / (commit or "-")
            if commit is not None and (folder / CONFIG_FILE).is_file():
                yield Snapshot(CachedRepo(repo=repo, revision=name), commit, folder)


def is_hub(folder: Path) -> bool:
    """Whether a folder is a Hugging Face cache."""
    return any(repo_of(each.name) is not None for each in folder.glob("models--*"))


def _read_ref(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            commit = stream.read(2 * _LONGEST_COMMIT).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return commit if commit.isalnum() and len(commit) <= _LONGEST_COMMIT else None
