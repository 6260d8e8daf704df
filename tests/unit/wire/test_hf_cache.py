"""The layout of a Hugging Face cache, as names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.hf_cache import CachedRepo, parse_repo, repo_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "repo", "revision", "folder"),
    [
        ("acme/legal", "acme/legal", "main", "models--acme--legal"),
        ("acme/legal.v2@v1.0", "acme/legal.v2", "v1.0", "models--acme--legal.v2"),
        ("acme/legal@refs/pr/1", "acme/legal", "refs/pr/1", "models--acme--legal"),
        (f"gpt2@{COMMIT}", "gpt2", COMMIT, "models--gpt2"),
    ],
)
def test_repositories_are_read(text, repo, revision, folder):
    found = parse_repo(text)
    assert found == CachedRepo(repo=repo, revision=revision)
    assert (found.folder, found.is_commit) == (folder, revision == COMMIT)
    assert repo_of(found.folder) == repo


@pytest.mark.parametrize(
    "text",
    ["", "acme/", "/legal", "a/b/c", "../x", "acme/..", "acme/x@", "acme/x@..", "acme/x@../..", "acme/x@/a", "a--b/c",
     ".a/b", "acme/x@a//b", "a-/b", "a/b.", "acme/x y", "acme/x@" + "r" * 256],
)  # fmt: skip
def test_what_could_lead_out_of_the_cache_is_refused(text):
    assert parse_repo(text) is None


@pytest.mark.parametrize("folder", ["datasets--acme--x", "models--", "models----x", "models--a--b--c", "legal"])
def test_other_folders_are_no_repositories(folder):
    assert repo_of(folder) is None


@given(st.text(max_size=40) | st.from_regex(r"[a-z./@-]{1,20}", fullmatch=True))
def test_a_folder_is_one_step(text):
    found = parse_repo(text)
    if found is not None:
        assert "/" not in found.folder
        assert ".." not in found.revision.split("/")
        assert repo_of(found.folder) == found.repo
