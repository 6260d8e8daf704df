"""What the section `tls` says: who listens by TLS, with which certificate, and whose certificates callers must show.

In: nothing. Out: values. Not here: reading files, or listening (see `live.tls`).
"""

import msgspec

from lorapick.model.units import Seconds


class SurfaceTls(msgspec.Struct, frozen=True, kw_only=True):
    """One of our servers."""

    enabled: bool | None = None
    """None: ext_proc does on TCP beyond loopback; and each server does that has a `client_ca`."""
    client_ca: str | None = None
    """File of authorities; callers must show a certificate of one of them. None: none is asked for."""


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One certificate for all servers; paths are relative to the configuration."""

    certificate: str | None = None
    """PEM, the whole chain, ours first. None: self-signed, made anew at each start."""
    key: str | None = None
    self_signed: str = "ecdsa"
    """Its key: `ecdsa` (P-256) or `rsa` (3072 bits)."""
    names: tuple[str, ...] = ()
    """Host names and IP addresses of a self-signed one, beside this machine's own."""
    min_version: str = "1.2"
    """Lowest version that metrics and admin take; gRPC always takes 1.2 and 1.3."""
    reload_every: Seconds = 5.0
    """How often the files are looked at."""
    extproc: SurfaceTls = SurfaceTls()
    metrics: SurfaceTls = SurfaceTls()
    admin: SurfaceTls = SurfaceTls()
