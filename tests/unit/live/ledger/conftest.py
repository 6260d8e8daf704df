"""Every ledger that a test opened is closed after it."""

from collections.abc import Iterator

import live_ledger_kit
import pytest


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for made in live_ledger_kit.MADE:
        made.close()
    live_ledger_kit.MADE.clear()
