"""Where an adapter's weights come from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.adapter_source import AdapterSourceError, LocalPath, Remote, SourceReason, allowed, parse_source
from lorapick.wire.hf_cache import CachedRepo


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("/adapters/legal", LocalPath(path="/adapters/legal")),
        ("adapters/legal@7", LocalPath(path="adapters/legal@7")),
        ("hf-cache:acme/legal", CachedRepo(repo="acme/legal")),
        ("hf-cache:acme/legal@v2", CachedRepo(repo="acme/legal", revision="v2")),
        ("s3://bucket/a/b/", Remote(url="s3://bucket/a/b", scheme="s3")),
        ("HTTPS://example.com:8443/a", Remote(url="https://example.com:8443/a", scheme="https")),
    ],
)
def test_sources_are_read(text, source):
    assert parse_source(text) == source


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 characters"),
        ("/a\nb", "a character that no source has"),
        ("/a\\b", "a character that no source has"),
        ("~/legal", "write the whole path"),
        ("/" + "a" * 5000, "5001 characters"),
        ("hf-cache:acme/../x", "not org/name"),
        ("gs://bucket/x", "scheme gs: only http, https, s3, hf-cache:"),
        ("file:///adapters/x", "scheme file"),
        ("http:///x", "names a host"),
        ("http://host:99999/x", "no URL"),
        ("http://[::1/x", "no URL"),
        ("s3://bucket/a/../b", "no dots"),
        ("https://host/a/%2e%2e/b", "no dots"),
    ],
)
def test_other_sources_are_refused(text, message):
    with pytest.raises(AdapterSourceError, match=message) as caught:
        parse_source(text)
    assert caught.value.reason == SourceReason.UNREADABLE


@pytest.mark.parametrize(
    "text",
    ["s3://KEY:HUSH@bucket/x", "https://HUSH@host/x", "https://host/x?token=HUSH", "https://host/x#HUSH"],
)
def test_credentials_are_refused_and_not_repeated(text):
    with pytest.raises(AdapterSourceError, match="environment only") as caught:
        parse_source(text)
    assert caught.value.reason == SourceReason.CREDENTIALS
    assert "HUSH" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "prefix", "good"),
    [
        ("/adapters/legal", "/adapters", True),
        ("/adapters/legal", "/adapters/", True),
        ("/adapters/legal", "/adapters/legal", True),
        ("/adapters/legal", "/", True),
        ("/adapters-other/x", "/adapters", False),
        ("/adapters/../etc", "/adapters", False),
        ("peft/legal", "/etc/fleet/peft", True),
        ("peft/legal", "peft", True),
        ("peft/../../x", "peft", False),
        ("/adapters/legal", "s3://adapters/legal", False),
        ("s3://b/a/x", "s3://b/a", True),
        ("s3://b/ab", "s3://b/a", False),
        ("s3://other/a", "s3://b", False),
        ("https://HOST/a", "https://host/", True),
        ("http://host/a", "https://host/", False),
        ("https://host:444/a", "https://host/", False),
        ("hf-cache:acme/x@v1", "hf-cache:acme", True),
        ("hf-cache:acme/x@v1", "hf-cache:acme/", True),
        ("hf-cache:acme/x@v1", "hf-cache:acme/x", True),
        ("hf-cache:acme/x@v1", "hf-cache:acme/x@v1", True),
        ("hf-cache:acme/x", "hf-cache:acme/x@v1", False),
        ("hf-cache:acme/x", "hf-cache:acme/x@main", True),
        ("hf-cache:acmeother/x", "hf-cache:acme", False),
        ("hf-cache:acme/x", "hf-cache:", True),
        ("/x", "gs://what", False),
    ],
)
def test_places_that_are_allowed(source, prefix, good):
    assert allowed(parse_source(source), ["/nowhere", prefix], beside="/etc/fleet") is good


def test_nothing_is_allowed_by_no_prefix():
    assert not allowed(LocalPath(path="/x"), [], beside="/")


pieces = st.lists(st.sampled_from(["a", "b", "..", ".", "", "%2e%2e", "@", ":", "x y"]), max_size=6).map("/".join)


@given(st.sampled_from(["", "/", "s3://", "https://h/", "hf-cache:"]), pieces | st.text(max_size=30))
def test_nothing_gets_out_of_a_prefix(start, rest):
    try:
        source = parse_source(start + rest)
    except AdapterSourceError:
        return
    if isinstance(source, Remote):
        assert ".." not in source.url.split("/")
    if allowed(source, ["/top/in"], beside="/top/in"):
        assert isinstance(source, LocalPath)
