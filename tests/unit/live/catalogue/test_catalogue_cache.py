"""Adapters in a Hugging Face cache."""

from pathlib import Path

import pytest
from catalogue_kit import Kit

from lorapick.live.catalogue import Options, SourceReason, read_catalogue
from lorapick.live.catalogue.cache import hub_folder
from lorapick.live.ports import SourceError
from lorapick.model.adapters import Adapter
from lorapick.testing.peft_files import write_adapter
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE

FIRST, SECOND = "1" * 40, "2" * 40


def cached(hub: Path, repo: str, *, commit: str = FIRST, ref: str = "main", fill: int = 0) -> Path:
    """A snapshot as `hf download` leaves it: links into a folder of blobs."""
    root = hub / ("models--" + repo.replace("/", "--"))
    blobs = write_adapter(root / "blobs" / commit, rank=8, fill=fill)
    folder = root / "snapshots" / commit
    folder.mkdir(parents=True)
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        (folder / name).symlink_to(blobs / name)
    (root / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
    (root / "refs" / ref).write_text(commit)
    return folder


def kit(hub: Path, source: str) -> Kit:
    return Kit(hub, Adapter(name="legal", source=source), options=Options(hub=hub))


async def test_a_branch_leads_to_its_snapshot(tmp_path):
    folder = cached(tmp_path, "acme/legal")
    one = kit(tmp_path, "hf-cache:acme/legal")
    assert await one.resolve("legal") == str(folder)
    assert one.news()[0].facts.rank == 8
    assert await kit(tmp_path, f"hf-cache:acme/legal@{FIRST}").resolve("legal") == str(folder)
    tagged = cached(tmp_path, "acme/legal", commit=SECOND, ref="refs/pr/1", fill=1)
    assert await kit(tmp_path, "hf-cache:acme/legal@refs/pr/1").resolve("legal") == str(tagged)


async def test_a_branch_that_moves_under_a_live_name_is_refused(tmp_path):
    cached(tmp_path, "acme/legal")
    one = kit(tmp_path, "hf-cache:acme/legal")
    await one.resolve("legal")
    one.news()
    cached(tmp_path, "acme/legal", commit=SECOND, fill=1)
    (told,) = await one.look()
    assert "weights changed under a live name" in told.problem
    with pytest.raises(SourceError, match="changed under a live name"):
        await one.resolve("legal")


@pytest.mark.parametrize(
    ("source", "fetch"),
    [
        ("hf-cache:acme/absent", "`hf download acme/absent`"),
        ("hf-cache:acme/legal@v9", "`hf download acme/legal --revision v9`"),
        (f"hf-cache:acme/legal@{SECOND}", f"`hf download acme/legal --revision {SECOND}`"),
    ],
)
async def test_what_is_not_cached_is_not_downloaded(tmp_path, source, fetch):
    cached(tmp_path, "acme/legal")
    with pytest.raises(SourceError) as caught:
        await kit(tmp_path, source).resolve("legal")
    assert caught.value.reason == SourceReason.MISSING
    assert fetch in str(caught.value)


@pytest.mark.parametrize("ref", ["..", "../../../x", "", "x" * 5000, "\xff"])
async def test_a_ref_leads_nowhere_else(tmp_path, ref):
    cached(tmp_path, "acme/legal")
    (tmp_path / "models--acme--legal" / "refs" / "main").write_text(ref, encoding="latin-1")
    with pytest.raises(SourceError, match="not in the cache"):
        await kit(tmp_path, "hf-cache:acme/legal").resolve("legal")
    assert read_catalogue(tmp_path) == ()


def test_a_cache_is_a_catalogue(tmp_path):
    main = cached(tmp_path, "acme/legal")
    tagged = cached(tmp_path, "acme/legal", commit=SECOND, ref="v2")
    cached(tmp_path, "acme/code")
    (tmp_path / "models--acme--base" / "snapshots" / FIRST).mkdir(parents=True)
    (tmp_path / "models--acme--base" / "refs").mkdir()
    (tmp_path / "models--acme--base" / "refs" / "main").write_text(FIRST)
    (tmp_path / "datasets--acme--x").mkdir()
    _, legal, other = read_catalogue(tmp_path)
    assert (legal.name, legal.source, legal.revision, legal.rank) == ("acme/legal", str(main), FIRST, 8)
    assert (other.name, other.source, other.revision) == ("acme/legal@v2", str(tagged), SECOND)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}, "/a"),
        ({"HF_HOME": "/b"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({}, str(Path.home() / ".cache/huggingface/hub")),
    ],
)
def test_the_environment_says_where_the_cache_is(environment, folder):
    assert hub_folder(environment) == Path(folder)
