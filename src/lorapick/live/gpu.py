"""Ask a DCGM exporter for a pod's GPU utilisation.

In: its URL, on the schedule of `live.scrape`. Out: `GpuReported`. Not here: what a pod's own page says of its GPU.
"""

import logging
from typing import TYPE_CHECKING

import aiohttp

from lorapick.live.page import MAX_BODY, PageError
from lorapick.model.events import GpuReported
from lorapick.model.pods import SilentWhy
from lorapick.model.units import PodName, Seconds
from lorapick.wire.engines import dcgm

if TYPE_CHECKING:
    from lorapick.live.scrape import Scraper

log = logging.getLogger(__name__)


class GpuWatcher:
    """Asks a DCGM exporter for one pod's GPU utilisation. The URL may need DNS or TLS: hence the full client."""

    unseen: Seconds = 500e-6

    def __init__(self, pod: PodName, url: str, *, scraper: "Scraper") -> None:
        self._pod = pod
        self._url = url
        self._session: aiohttp.ClientSession | None = None
        self._scraper = scraper
        self._failing = False

    async def scrape(self) -> None:
        """Ask once; a figure is submitted. Failures are logged when they begin: the core has a stand-in."""
        try:
            page = await self._get()
            with self._scraper.budget:
                found = dcgm.parse(page, pod=self._pod)
        except Exception as error:  # noqa: BLE001 - whatever a URL or a page does to a library, the pods are watched on
            if not self._failing:
                reason = str(error) or type(error).__name__
                log.warning("pod %s: no GPU utilisation from %s: %s", self._pod, self._url, reason)
            self._failing = True
            return
        self._failing = False
        if found is not None:
            self._scraper.submit(lambda t, i: GpuReported(t=t, id=i, pod=self._pod, utilization=found))

    async def aclose(self) -> None:
        """Drop the connection."""
        if self._session is not None:
            await self._session.close()

    async def _get(self) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._scraper.timeout))
        async with self._session.get(self._url, allow_redirects=False) as response:
            if response.status != 200:
                raise PageError(SilentWhy.STATUS, f"status {response.status}")
            chunks: list[bytes] = []
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                if sum(map(len, chunks)) > MAX_BODY:
                    raise PageError(SilentWhy.GARBAGE, f"the body has more than {MAX_BODY} bytes")
            return b"".join(chunks)
