"""The section `ledger`."""

import pytest

from lorapick.model.settings import LedgerSettings
from lorapick.wire.config import ConfigError, parse_settings

POLICIES = ("weighted",)


def read(text: str) -> LedgerSettings:
    return parse_settings(text, file="lorapick.yaml", policies=POLICIES).ledger


def test_by_default_nothing_is_kept() -> None:
    assert read("seed: 0") == LedgerSettings(path=None)


def test_all_of_it() -> None:
    text = "ledger: {path: run/ledger.sqlite, max_size: 256MiB, keep: 30d, write_every: 1s}"
    assert read(text) == LedgerSettings(
        path="run/ledger.sqlite", max_size=256 * 2**20, keep=30 * 86_400.0, write_every=1.0
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{max_size: 10KiB}", "max_size"),
        ("{keep: 1s}", "keep"),
        ("{write_every: 0s}", "write_every"),
        ("{path: ''}", "path"),
        ("{file: x}", "file"),
    ],
)
def test_what_cannot_be(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read(f"ledger: {text}")
