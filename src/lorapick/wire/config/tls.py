"""The section `tls`.

In: a node; of the whole file, what listens where. Out: `TlsSettings`; its defaults are there.
Not here: whether the files are there and fit each other (see `live.tls`).
"""

import re
from typing import Any

from lorapick.model.settings import ServerSettings
from lorapick.model.tls import SurfaceTls, TlsSettings
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, boolean, choice, duration, list_of, record, text

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Names that a Kubernetes Secret of type `kubernetes.io/tls` has, and llm-d's `--cert-path`."""

_NAME = re.compile(r"(\*\.)?[A-Za-z0-9._:-]{1,253}", re.ASCII)


def _name(at: At) -> str:
    value = text(at)
    if not _NAME.fullmatch(value):
        at.refuse("must be a host name or an IP address", hint='for example "lorapick.llm.svc"')
    return value


def _check_surface(at: At, found: SurfaceTls) -> None:
    if found.enabled is False and found.client_ca is not None:
        hint = "remove client_ca, or enabled: false"
        at.nearest("client_ca").note("asks for certificates where TLS is off", hint=hint, value="")


_surface: Reader[SurfaceTls] = record(SurfaceTls, {"enabled": boolean, "client_ca": text}, check=_check_surface)


def _build(*, folder: str | None = None, **values: Any) -> TlsSettings:
    if folder is not None:
        values |= {"certificate": f"{folder.rstrip('/')}/{CERTIFICATE}", "key": f"{folder.rstrip('/')}/{KEY}"}
    return TlsSettings(**values)


def _check(at: At, found: TlsSettings) -> None:
    folder, certificate, key = at.find("folder"), at.find("certificate"), at.find("key")
    if folder is not None and (certificate is not None or key is not None):
        folder.note(f"names {CERTIFICATE} and {KEY} in it, and there are certificate or key too", hint="keep one")
    elif (certificate is None) != (key is None):
        at.nearest("certificate" if key is None else "key").note("must have both certificate and key, or neither")
    if found.certificate is not None:
        for name in ("names", "self_signed"):
            if (place := at.find(name)) is not None:
                place.note("is of a self-signed certificate, and there are files", hint="remove it", value="")


tls: Reader[TlsSettings] = record(
    _build,
    {
        "folder": text,
        "certificate": text,
        "key": text,
        "self_signed": choice("ecdsa", "rsa"),
        "names": list_of(_name),
        "min_version": choice("1.2", "1.3"),
        "reload_every": duration(least=0.05, most=3600.0),
        "extproc": _surface,
        "metrics": _surface,
        "admin": _surface,
    },
    check=_check,
)


def check_tls(root: At, found: TlsSettings, *, server: ServerSettings) -> None:
    """Note what TLS cannot be for: sockets in the file system."""
    wanted = found.extproc.enabled or found.extproc.client_ca is not None
    if wanted and server.extproc.startswith("unix:"):
        place = root.nearest("tls", "extproc")
        hint = "set server.extproc to host:port, or remove this; the socket file's folder says who may connect"
        place.note(f"wants TLS on the socket {server.extproc}, which only has plain gRPC", hint=hint, value="")
