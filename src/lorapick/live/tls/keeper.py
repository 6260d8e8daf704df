"""Keeps the certificate that our servers show, and takes a new one when its files change.

In: settings, files. Out: credentials for gRPC, contexts for HTTP; both change for new connections, those that exist go
on. Files that cannot be used change nothing: the last good stay, and that is logged and counted.
Not here: who listens by TLS at all (see `live.tls.exposure`).
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import grpc

from lorapick.live.tls.certificates import Pair, TlsError, authorities, load_pair, self_signed
from lorapick.live.tls.contexts import Changing, changing, context
from lorapick.model.tls import TlsSettings
from lorapick.model.units import Seconds

log = logging.getLogger(__name__)

Seen = tuple[tuple[int, int, int] | None, ...]
"""How the files were: changed when, size, number; None: not there."""


class Material(NamedTuple):
    """What is shown and asked for, at one time."""

    pair: Pair
    client_ca: Mapping[str, bytes]
    """By server."""
    contexts: Mapping[str, ssl.SSLContext]


class Keeper:
    """One certificate for those of `extproc`, `metrics` and `admin` that have TLS."""

    def __init__(
        self, settings: TlsSettings, *, beside: Path, surfaces: tuple[str, ...], wall: Callable[[], Seconds] = time.time
    ) -> None:
        """Read the files, or make a certificate.

        Args:
            settings: the section `tls`.
            beside: directory that relative paths start from.
            surfaces: which servers have TLS.
            wall: Unix time.

        Raises:
            TlsError: a file cannot be used.
        """
        self._settings = settings
        self._beside = beside
        self.surfaces = surfaces
        self._wall = wall
        self.reloads = 0
        """Times that changed files were taken."""
        self.failures = 0
        """Times that changed files could not be."""
        self.problem: str | None = None
        """Why the files as they are now are not what is shown; None: they are."""
        self._made = None
        if settings.certificate is None:
            self._made = self_signed(settings.self_signed, names=settings.names, wall=wall())
        self._files = self._paths()
        self._taken = self._seen()
        self._doubted: Seen | None = None
        self._refused: Seen | None = None
        self._material = self._read()
        self._changing = {name: changing(made) for name, made in self._material.contexts.items()}
        self._warn_of_time()

    @property
    def not_after(self) -> Seconds:
        """Unix time at which the certificate that is shown ends."""
        return self._material.pair.not_after

    def http(self, surface: str) -> Changing:
        """What the HTTP server of this name listens with."""
        return self._changing[surface]

    def grpc(self, surface: str) -> grpc.ServerCredentials:
        """What the gRPC server of this name listens with; gRPC asks at each handshake, in a thread of its own."""
        told = self._material

        def configuration(material: Material) -> grpc.ServerCertificateConfiguration:
            pairs = [(material.pair.key, material.pair.chain)]
            return grpc.ssl_server_certificate_configuration(pairs, root_certificates=material.client_ca.get(surface))

        def changed() -> grpc.ServerCertificateConfiguration | None:
            nonlocal told
            material = self._material
            if material is told:
                return None
            told = material
            return configuration(material)

        asked = surface in self._material.client_ca
        return grpc.dynamic_ssl_server_credentials(configuration(told), changed, require_client_authentication=asked)

    async def run(self) -> None:
        """Look at the files for ever."""
        while True:
            await asyncio.sleep(self._settings.reload_every)
            self.look()

    def look(self) -> None:
        """Take the files if they have changed and can be used."""
        seen = self._seen()
        if seen == self._taken:
            self.problem = None
            return
        if seen == self._refused:
            return
        try:
            material = self._read()
            self._check_time(material.pair)
        except TlsError as error:
            # Who writes two files writes one of them first: only what is still so at the next look is wrong.
            if seen == self._doubted:
                self._refuse(str(error), seen)
            self._doubted = seen
            return
        self._take(material, seen)

    def _take(self, material: Material, seen: Seen) -> None:
        self._material = material
        for name, made in material.contexts.items():
            self._changing[name].current = made
        self._taken, self._doubted, self._refused, self.problem = seen, None, None, None
        self.reloads += 1
        log.info("new certificate for %s, valid until %s", ", ".join(self.surfaces), _date(self.not_after))

    def _refuse(self, why: str, seen: Seen) -> None:
        self._refused, self.problem = seen, why
        self.failures += 1
        log.error("%s; the certificate from before stays, which is valid until %s", why, _date(self.not_after))

    def _check_time(self, pair: Pair) -> None:
        """Refuse one that is out of its time, unless the one that is shown is so too."""
        now = self._wall()
        if self.not_after > now and not pair.not_before <= now < pair.not_after:
            valid = f"{_date(pair.not_before)} to {_date(pair.not_after)}"
            raise TlsError(f"tls.certificate: {self._settings.certificate} is valid from {valid} only")

    def _warn_of_time(self) -> None:
        # Gateways mostly take any certificate: no picker at all would be worse for them than an old one.
        now, pair = self._wall(), self._material.pair
        if not pair.not_before <= now < pair.not_after:
            valid = f"{_date(pair.not_before)} to {_date(pair.not_after)}"
            log.error("tls.certificate: %s is valid from %s only; who checks it refuses us", self._files[0], valid)

    def _paths(self) -> list[Path]:
        named = [self._settings.certificate, self._settings.key]
        named += [getattr(self._settings, surface).client_ca for surface in self.surfaces]
        return [self._beside / name for name in named if name is not None]

    def _seen(self) -> Seen:
        return tuple(_state(file) for file in self._files)

    def _read(self) -> Material:
        settings, client_ca = self._settings, {}
        for surface in self.surfaces:
            name = getattr(settings, surface).client_ca
            if name is not None:
                client_ca[surface] = authorities(self._beside / name, setting=f"tls.{surface}.client_ca")
        pair = self._made
        if settings.certificate is not None and settings.key is not None:
            pair = load_pair(self._beside / settings.certificate, self._beside / settings.key)
        if pair is None:
            raise TlsError("tls.key: there is no key for tls.certificate; set both or neither")
        contexts = {
            surface: context(pair, client_ca=client_ca.get(surface), min_version=settings.min_version)
            for surface in self.surfaces
        }
        return Material(pair, client_ca, contexts)


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _date(wall: Seconds) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(wall))
