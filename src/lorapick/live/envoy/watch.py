"""Envoy's counters, read every few seconds for the pages that show them.

In: the address of Envoy's admin API (`server.envoy_admin`). Out: `EnvoyWatch.counters`, None while they are not known.
Not here: what they mean (see `live.envoy.counters`), any request of its own to a gateway.
"""

import asyncio
import logging

import msgspec

from lorapick.live.envoy.counters import EnvoyCounters, read_counters
from lorapick.model.units import Seconds

log = logging.getLogger(__name__)

EVERY: Seconds = 2.0


class EnvoyWatch:
    """Reads until it is cancelled."""

    def __init__(self, admin: str, *, every: Seconds = EVERY) -> None:
        """`admin`: `unix:PATH` or `host:port`."""
        self.counters: EnvoyCounters | None = None
        """As read last; None: never yet, or Envoy did not answer then, or it has no gateway and picker of our names."""
        self._admin = admin
        self._every = every

    async def run(self) -> None:
        """Read again and again."""
        while True:
            await self.look()
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        """Read once."""
        before = self.counters
        try:
            self.counters = await read_counters(self._admin)
        except msgspec.DecodeError as error:
            self.counters = None
            log.warning("server.envoy_admin %s is no admin API of Envoy: %s", self._admin, error)
        if (before is None) != (self.counters is None):
            log.info("Envoy's counts at %s are %s", self._admin, "unknown" if self.counters is None else "known")
