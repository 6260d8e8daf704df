"""The doors of one picker, as its settings want them.

In: settings, the environment. Out: `Doors`: credentials for gRPC, a `Door` for each HTTP server, the keeper of the
certificate.
Not here: listening.
"""

import os
from pathlib import Path

import grpc

from lorapick.live.tls.door import Door
from lorapick.live.tls.exposure import with_tls
from lorapick.live.tls.keeper import Keeper
from lorapick.live.tls.tokens import token_of
from lorapick.model.settings import Settings


class Doors:
    """Made once, before anything listens."""

    def __init__(self, settings: Settings, *, beside: Path) -> None:
        """Read certificates and tokens; relative paths start from `beside`.

        Raises:
            TlsError: a certificate, a key or an authority cannot be used.
            TokenError: there is no token where the settings say.
        """
        self._settings = settings
        self._beside = beside
        self._secured = with_tls(settings)
        self.keeper = Keeper(settings.tls, beside=beside, surfaces=self._secured) if self._secured else None
        """None: nothing has TLS."""
        self.metrics = self._door("metrics")
        self.admin = self._door("admin")

    def extproc(self) -> grpc.ServerCredentials | None:
        """For ext_proc; None: plain gRPC."""
        if self.keeper is None or "extproc" not in self._secured:
            return None
        return self.keeper.grpc("extproc")

    def _door(self, surface: str) -> Door:
        server, keeper = self._settings.server, self.keeper
        file = getattr(server, f"{surface}_token_file")
        token = token_of(
            getattr(server, f"{surface}_token"),
            None if file is None else self._beside / file,
            environment=os.environ,
            settings=(f"server.{surface}_token", f"server.{surface}_token_file"),
        )
        if keeper is None:
            return Door(token=token)
        secured = surface in self._secured
        return Door(
            tls=keeper.http(surface) if secured else None,
            certificate=secured and getattr(self._settings.tls, surface).client_ca is not None,
            token=token,
            problem=lambda: keeper.problem,
        )
