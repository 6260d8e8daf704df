"""The section `ledger`.

In: a node. Out: `LedgerSettings`; its defaults are there. Not here: the file that it names (see `live.ledger`).
"""

from lorapick.model.settings import LedgerSettings
from lorapick.wire.config.readers import Reader, duration, record, size, text

LEAST_SIZE = 1024 * 1024
"""Less would hold some thousand requests."""

ledger: Reader[LedgerSettings] = record(
    LedgerSettings,
    {
        "path": text,
        "max_size": size(least=LEAST_SIZE),
        "keep": duration(least=60.0),
        "write_every": duration(least=0.05, most=60.0),
    },
)
