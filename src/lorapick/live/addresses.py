"""Addresses to listen on: free ports, ports in use, socket paths that fit.

In: `host:port` or `unix:PATH`. Out: the same, checked. Not here: listening itself.
"""

import errno
import itertools
import os
import socket
from pathlib import Path

_PORTS_FROM, _PORTS_TO = 15_000, 32_000
_tried = itertools.count()

_LONGEST_SOCKET_PATH = 107
"""Bytes that the kernel takes, without the closing zero."""


def free_ports(count: int) -> list[int]:
    """Return ports on 127.0.0.1 that nobody listens on now; no port twice in one process.

    They lie below the ports that systems hand to outgoing connections (from 32,768 on Linux), since such a
    connection could take one between now and the listening. Each process starts its search at another place.

    Raises:
        ValueError: there are not so many.
    """
    found: list[int] = []
    for _ in range(_PORTS_TO):
        if len(found) == count:
            return found
        port = _PORTS_FROM + (os.getpid() * 97 + next(_tried)) % (_PORTS_TO - _PORTS_FROM)
        if not in_use(f"127.0.0.1:{port}"):
            found.append(port)
    raise ValueError(f"found {len(found)} free ports between {_PORTS_FROM} and {_PORTS_TO}, wanted {count}")


def host_and_port(address: str) -> tuple[str, int]:
    """Split `host:port`.

    Raises:
        ValueError: it is not of that form, or the port is not in 1-65535.
    """
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{address!r} is not host:port with a port in 1-65535")
    return host.strip("[]"), int(port)


def in_use(address: str) -> bool:
    """Whether somebody listens on `host:port` (or may: the address cannot be bound).

    Raises:
        ValueError: the form is wrong, or the host is none of ours.
    """
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # Connections of the last run that wait to be forgotten do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return True
            raise ValueError(f"cannot listen on {address}: {error.strerror}") from None
    return False


def unix_address(path: Path) -> str:
    """Return `unix:PATH` by the shortest name of `path` that the kernel takes.

    Raises:
        ValueError: both the absolute and the relative path are too long.
    """
    for name in (str(path.absolute()), os.path.relpath(path)):
        if len(os.fsencode(name)) <= _LONGEST_SOCKET_PATH:
            return f"unix:{name}"
    raise ValueError(
        f"socket path {path.absolute()} is longer than the {_LONGEST_SOCKET_PATH} bytes the system takes; "
        "choose a run directory with a shorter path"
    )
