"""The section `peers`: strict, without secrets."""

import pytest

from lorapick.model.settings import PeersSettings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.settings import parse_settings


def parsed(text):
    return parse_settings(f"peers: {text}\n", file="f", policies=[]).peers


def test_everything_may_be_set():
    text = (
        "{redis: 'rediss://store:6380/2', fleet: west, id: picker-0, stale_after: 3s, claim_timeout: 20ms, "
        "claim_ttl: 30s, username: lorapick, password: REDIS_PASSWORD, leader: false, "
        "tls: {ca: ca.pem, certificate: me.pem, key: me.key}}"
    )
    assert parsed(text) == PeersSettings(
        redis="rediss://store:6380/2", fleet="west", id="picker-0", stale_after=3.0, claim_timeout=0.02, claim_ttl=30.0,
        username="lorapick", password="REDIS_PASSWORD", leader=False,
        tls_ca="ca.pem", tls_certificate="me.pem", tls_key="me.key",
    )  # fmt: skip
    assert parsed("{redis: 'unix:///run/redis.sock'}") == PeersSettings(redis="unix:///run/redis.sock")
    assert parse_settings("base_model: b\n", file="f", policies=[]).peers is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", 'the key "redis" is missing'),
        ("{redis: 'http://store'}", "must be the URL of a Redis or Valkey server"),
        ("{redis: 'redis://store:99999'}", "must be the URL of a Redis or Valkey server"),
        ("{redis: 'redis://store/x'}", "must be the URL of a Redis or Valkey server"),
        ("{redis: 'unix://'}", "must be the URL of a Redis or Valkey server"),
        ("{redis: 'redis://me:secret@store'}", "must not contain a user or a password"),
        ("{redis: 'redis://store', password: 'not a name'}", "must not contain blanks"),
        ("{redis: 'redis://store', password: 'a-b'}", "must be the name of an environment variable"),
        ("{redis: 'redis://store', fleet: 'a/b'}", "must be 1 to 100 letters"),
        ("{redis: 'redis://store', tls: {ca: ca.pem}}", "redis is not a rediss:// URL"),
        ("{redis: 'rediss://store', tls: {key: key.pem}}", "must have both certificate and key, or neither"),
        ("{redis: 'redis://store', claim_timeout: 3s}", "must be shorter than stale_after"),
        ("{redis: 'redis://store', flet: x}", 'did you mean "fleet"?'),
    ],
)
def test_problems_are_told_with_their_place(text, problem):
    with pytest.raises(ConfigError) as raised:
        parsed(text)
    assert problem in str(raised.value) and "f:1:" in str(raised.value)
    assert "secret" not in str(raised.value)
