"""What one HTTP server listens with, and what callers must show.

In: nothing. Out: `Door`. Not here: who makes it (see `live.tls.doors`), who minds it (`live.web`, `live.admin_token`).
"""

import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

from lorapick.live.tls.tokens import Token


class Door(NamedTuple):
    """Without anything: plain HTTP, and nobody is asked."""

    tls: ssl.SSLContext | None = None
    certificate: bool = False
    """TLS lets only those in that showed a certificate."""
    token: Token | None = None
    problem: Callable[[], str | None] = lambda: None
    """What is wrong with the certificate's files, for the doctor; None: nothing."""


PLAIN: Final = Door()
