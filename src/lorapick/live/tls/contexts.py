"""TLS for servers of Python's own: a context that may change under a server.

In: a pair, authorities, the lowest version. Out: `ssl.SSLContext`. Not here: gRPC, which has its own TLS.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lorapick.live.tls.certificates import Pair, TlsError

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class Changing(ssl.SSLContext):
    """Hands every new connection to the context that is current; connections that exist keep theirs."""

    current: ssl.SSLContext

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        """As asyncio and uvloop ask for each connection that they take."""
        return self.current.wrap_bio(*args, **named)


def changing(first: ssl.SSLContext) -> Changing:
    """One that begins with `first`."""
    made = Changing(ssl.PROTOCOL_TLS_SERVER)
    made.current = first
    return made


def context(pair: Pair, *, client_ca: bytes | None, min_version: str) -> ssl.SSLContext:
    """A server's context; with `client_ca` callers must show a certificate. Raises TlsError: OpenSSL refuses."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = _VERSIONS[min_version]
    try:
        with _as_file(pair.key + b"\n" + pair.chain) as name:
            made.load_cert_chain(name)
        if client_ca is not None:
            made.load_verify_locations(cadata=client_ca.decode("ascii"))
            made.verify_mode = ssl.CERT_REQUIRED
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"tls: OpenSSL does not take the certificate, its key or client_ca ({error})") from None
    return made


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """The name of a file with this content, for as long as the block runs.

    Python reads keys from files alone. What was checked must be what is used, so it is not read from disk again; and
    a root file system may be read-only, so the file is in memory where the system can do that.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tls")
        name = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, name = tempfile.mkstemp()
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield name
    finally:
        os.close(descriptor)
        if not name.startswith("/proc/"):
            with suppress(OSError):
                os.unlink(name)
