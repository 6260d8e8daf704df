"""The section `peers`.

In: a node. Out: `PeersSettings`; its defaults are there. Not here: what is said to peers (see `live.peers`).
"""

import re
from typing import Any
from urllib.parse import urlsplit

from lorapick.model.settings import PeersSettings
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, boolean, duration, record, text, word

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_EXAMPLE = 'for example "redis://127.0.0.1:6379/0"'


def _address(at: At) -> str:
    """`redis://`, `rediss://` or `unix://`, without credentials."""
    value = text(at)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        at.refuse("must be the URL of a Redis or Valkey server", hint=_EXAMPLE)
    if "@" in parts.netloc:
        hint = "name the environment variable that holds the password as `password`, and the user as `username`"
        at.refuse("must not contain a user or a password", hint=hint, value="")
    tcp = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and port != 0
    path = parts.path.strip("/")
    if not ((tcp and (not path or (path.isascii() and path.isdigit()))) or (parts.scheme == "unix" and path)):
        at.refuse("must be the URL of a Redis or Valkey server", hint=_EXAMPLE)
    return value


def _name(at: At) -> str:
    value = word(at)
    if not _NAME.fullmatch(value):
        at.refuse("must be 1 to 100 letters, digits, dots, colons, dashes or underscores")
    return value


def _variable(at: At) -> str:
    value = word(at)
    if not _VARIABLE.fullmatch(value):
        at.refuse("must be the name of an environment variable", hint='for example "REDIS_PASSWORD"', value="")
    return value


def _tls(at: At) -> dict[str, Any]:
    readers: dict[str, Reader[str]] = {"ca": text, "certificate": text, "key": text}
    return record(dict, readers)(at)


def _build(*, tls: dict[str, str] | None = None, **values: Any) -> PeersSettings:
    files: dict[str, Any] = {f"tls_{name}": file for name, file in (tls or {}).items()}
    return PeersSettings(**values, **files)


def _check(at: At, found: PeersSettings) -> None:
    files = (found.tls_ca, found.tls_certificate, found.tls_key)
    if any(files) and not found.redis.startswith("rediss://"):
        at.nearest("tls").note("has files for TLS, and redis is not a rediss:// URL", value="")
    if (found.tls_certificate is None) != (found.tls_key is None):
        at.nearest("tls").note("must have both certificate and key, or neither", value="")
    if found.claim_timeout >= found.stale_after:
        at.nearest("claim_timeout").note(f"must be shorter than stale_after, {found.stale_after:g}s")


peers: Reader[PeersSettings] = record(
    _build,
    {
        "redis": _address,
        "fleet": _name,
        "id": _name,
        "stale_after": duration(least=0.2, most=60.0),
        "claim_timeout": duration(least=0.001, most=5.0),
        "claim_ttl": duration(least=1.0, most=600.0),
        "username": word,
        "password": _variable,
        "tls": _tls,
        "leader": boolean,
    },
    required=("redis",),
    check=_check,
)
