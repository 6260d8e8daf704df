"""Which sources pods may be told: by whole parts of paths, with nothing that could mean another place."""

import posixpath
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lorapick.live.control import AllowedSources, StaticSources
from lorapick.live.control.sources import LONGEST_NAME, LONGEST_SOURCE, no_sources
from lorapick.live.ports import NoSourceError, SourceError
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod

POD = Pod(name="a", address="127.0.0.1:1")
PREFIXES = ("/mnt/loras", "s3://bucket/team", "https://Weights.example", "my-org", "/srv/one/")


def why_not(source, *, name="ad", **settings):
    """Why a source is refused; empty: it is not."""
    try:
        AllowedSources(**settings)(name, source)
    except SourceError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "source",
    [
        "/mnt/loras/a",
        "/mnt/loras/a b/ü@2",
        "/mnt/loras",
        "/mnt/loras//a",
        "//mnt/loras/a",
        "/mnt/loras/..a/...",
        "/mnt/loras/~x",
        "/srv/one/a",
        "s3://bucket/team/a",
        "S3://Bucket/team/a",
        "https://weights.example/a/b",
        "my-org/a",
    ],
)
def test_what_lies_under_a_prefix_is_allowed(source):
    assert why_not(source, prefixes=PREFIXES) == ""


@pytest.mark.parametrize(
    "source",
    [
        "/mnt/loras-of-others/a",
        "/mnt/lora",
        "/mnt",
        "/",
        "/etc/passwd",
        "mnt/loras/a",
        "other-org/a",
        "my-org-too/a",
        "s3://bucket/teams/a",
        "s3://bucket2/team/a",
        "s3://bucket/TEAM/a",
        "http://weights.example/a",
        "https://weights.example.evil/a",
        "https://weights.example:81/a",
        "file:///mnt/loras/a",
    ],
)
def test_all_else_is_refused(source):
    assert "under no prefix of placement.sources" in why_not(source, prefixes=PREFIXES)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("", "empty"),
        ("/mnt/loras/a\0", "NUL"),
        ("/mnt/loras/a\nb", "character"),
        ("/mnt/loras/\ud800", "character"),
        ("/mnt/loras/a\u202eb", "character"),
        ("/mnt/loras\\..\\x", "character"),
        ("/mnt/loras/../x", "`..`"),
        ("/mnt/loras/..", "`..`"),
        ("/mnt/loras/./x", "`.`"),
        ("..", "`..`"),
        ("s3://bucket/team/../x", "`..`"),
        ("s3://bucket/team/%2e%2E/x", "`..`"),
        ("s3://bucket/team/%252e%252e/x", "`..`"),
        ("s3://bucket/team/..%2fx", "hides a sign"),
        ("s3://bucket/team/%00", "hides a sign"),
        ("s3://bucket/team/a?x=/..", "a query"),
        ("s3://bucket/team/a#x", "fragment"),
        ("https://user:secret@weights.example/a", "a user"),
        ("~/loras", "`~`"),
        ("~root/loras", "`~`"),
        ("s3:bucket/team/a", "without `//`"),
        ("C:/loras", "without `//`"),
        ("/mnt/loras/" + "a" * LONGEST_SOURCE, "longer than"),
    ],
)
def test_what_could_mean_another_place_is_refused_even_where_everything_is_allowed(source, why):
    for settings in ({"prefixes": [*PREFIXES, "/"]}, {"declared": lambda _: source}):
        assert why in why_not(source, **settings)


@pytest.mark.parametrize("name", ["", "a,b", ",", "a\0", "a\n", "\ud800", "x" * (LONGEST_NAME + 1)])
def test_names_that_no_engine_should_learn(name):
    assert "is no name to load" in why_not("/mnt/loras/a", name=name, prefixes=PREFIXES)


def test_without_prefixes_what_is_declared_is_allowed_and_what_the_catalogue_has():
    settings = {"declared": {"ad": "org/ad"}.get, "catalogue": "/adapters"}
    assert why_not("org/ad", **settings) == why_not("/adapters/x", **settings) == ""
    assert "not what the configuration declares" in why_not("org/ad2", **settings)
    assert "not what the configuration declares" in why_not("org/ad", name="other", **settings)
    assert "not what the configuration declares" in why_not("/mnt/loras/a")


def test_with_prefixes_only_they_count_and_the_store():
    settings = {"prefixes": PREFIXES, "declared": {"ad": "org/ad"}.get, "catalogue": "/adapters", "store": "/store"}
    assert why_not("org/ad", **settings) and why_not("/adapters/x", **settings)
    assert why_not("/store/sha/x", **settings) == why_not("/store/x", store="/store") == ""


@pytest.mark.parametrize("prefix", ["", "/a/../b", "~", "s3:", "a\0"])
def test_a_prefix_that_means_nothing_is_refused_at_once(prefix):
    with pytest.raises(SourceError):
        AllowedSources(prefixes=[prefix])


def under(path, prefix):
    """The plain way to say it, for paths without any trick in them."""
    return posixpath.commonpath([posixpath.normpath(path), prefix]) == prefix


parts = st.one_of(
    st.sampled_from(["", ".", "..", "mnt", "loras", "a", "%2e%2e", "%2f", "~", "..%5c", "loras-x", "%25"]),
    st.text(max_size=3),
)


@given(st.lists(parts, max_size=6).map(lambda each: "/" + "/".join(each)))
@example("/mnt/loras/%2e%2e/x")
def test_a_path_that_is_allowed_lies_where_it_should_however_it_is_read(path):
    if why_not(path, prefixes=["/mnt/loras"]) == "":
        decoded = path
        for _ in range(len(path)):
            assert under(decoded.replace("\\", "/").replace("//", "/"), "/mnt/loras") and "\0" not in decoded
            decoded = unquote(decoded)
    elif all(part.isalnum() and part.isascii() for part in path.split("/")[1:]):
        assert not under(path, "/mnt/loras")


@given(st.lists(parts, max_size=5), st.sampled_from(["s3", "https", "S3", "file", "x+y"]))
def test_a_url_that_is_allowed_is_of_a_listed_scheme_host_and_path(path, scheme):
    url = f"{scheme}://bucket/" + "/".join(path)
    if why_not(url, prefixes=["s3://bucket/mnt", "s3://bucket/a"]) == "":
        split = urlsplit(url)
        assert (split.scheme, split.netloc, split.query, split.fragment) == ("s3", "bucket", "", "")
        assert any(under(posixpath.normpath("/" + unquote(split.path).lstrip("/")), each) for each in ("/mnt", "/a"))


@given(st.text(max_size=40), st.lists(st.sampled_from([*PREFIXES, "/"])))
def test_any_text_is_allowed_or_refused_and_nothing_else(text, prefixes):
    why_not(text, prefixes=prefixes, declared=lambda _: text)


async def test_declared_sources():
    sources = StaticSources({"ad": Adapter(name="ad", source="/x"), "bare": Adapter(name="bare")}.get)
    assert await sources("ad", POD) == "/x"
    for name in ("bare", "unheard"):
        with pytest.raises(NoSourceError, match=f"nobody said where {name} is loaded from"):
            await sources(name, POD)
    with pytest.raises(NoSourceError):
        await no_sources("ad", POD)
