"""KV that another pod computed, brought to the pod that decodes.

In: `kv_transfer_params` of a request. Out: a handshake that fits or a refusal; then a wait as long as the bytes take,
after which the request joins the batch without computing its prompt.
Not here: what the other pod holds (see `holding`), who falls back to what (see `sidecar`).

A real vLLM asks nobody which adapter computed the KV: it decodes with what it gets. When a transfer breaks off, the
prompt is computed here, as vLLM does with `kv_load_failure_policy` set to `recompute` (its default fails the request).
"""

import asyncio
from urllib.parse import quote

import msgspec

from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.handover_counts import HandoverCounts, Pulled
from lorapick.live.podserver.holding import ENGINE_HEADER
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.pod_calls import PodCallError, PodCalls
from lorapick.live.podserver.refusals import RefusalError, kv_refusal
from lorapick.live.podserver.ticket import Ticket
from lorapick.model.units import AdapterName, Bytes, Seconds
from lorapick.pod.values import PodRequest, ReceivedKv
from lorapick.wire.kv_transfer import KvOffer, KvTransferError, KvTransferParams, read_offer

_PATIENCE: Seconds = 5.0
"""Real seconds for a handshake or a release: the other pod looks into a table."""
_STATUS = {
    Pulled.MISMATCH: 409,
    Pulled.UNKNOWN: 404,
    Pulled.UNREACHABLE: 502,
    Pulled.FORBIDDEN: 403,
}


class KvSource(msgspec.Struct, frozen=True, kw_only=True):
    """KV that is there and fits."""

    url: str
    """Where the pod that has it tells of it."""
    engine: str
    """Id of the engine that has it; without it nobody is told of KV, or lets it go."""
    adapter: AdapterName | None
    """Under which it was computed."""

    @property
    def headers(self) -> dict[str, str]:
        """Of every call."""
        return {ENGINE_HEADER: self.engine}


class KvPuller:
    """Pulls of one pod."""

    def __init__(
        self,
        options: PodServerOptions,
        driver: PodDriver,
        *,
        clock: ModelClock,
        calls: PodCalls,
        counts: HandoverCounts,
    ) -> None:
        self._options = options
        self._driver = driver
        self._clock = clock
        self._calls = calls
        self._counts = counts
        self._releases: set[asyncio.Task[None]] = set()

    async def ask(self, params: KvTransferParams, request: PodRequest) -> KvSource | None:
        """Whether the KV is there and fits, and where; None: the parameters lack what is needed.

        Raises:
            RefusalError: it is not there, cannot be reached, or was computed for something else.
        """
        try:
            source = params.source
        except KvTransferError as error:
            raise self._refuse(Pulled.FORBIDDEN, str(error)) from None
        if source is None or not params.is_complete:
            self._counts.pulled(Pulled.INCOMPLETE)
            return None
        if not self._options.may_ask(source):
            raise self._refuse(Pulled.FORBIDDEN, f"{source} is not among this pod's prefillers (--prefillers)")
        url = f"http://{source}/emulator/kv/{quote(params.remote_request_id or '', safe='')}"
        place = KvSource(url=url, engine=params.remote_engine_id or "", adapter=None)
        try:
            offer = await self._handshake(place, params)
        except asyncio.CancelledError:  # the client left
            self._let_go(place)
            raise
        base_model = self._options.base_model
        why = offer.mismatch(base_model=base_model, adapter=request.adapter, tokens=request.prompt_tokens)
        if why is not None:
            self._let_go(place)
            raise self._refuse(Pulled.MISMATCH, why)
        return msgspec.structs.replace(place, adapter=offer.adapter)

    async def _handshake(self, place: KvSource, params: KvTransferParams) -> KvOffer:
        try:
            answer = await self._calls.call("GET", place.url, headers=place.headers, within=_PATIENCE)
            if answer.status == 404:
                raise self._refuse(Pulled.UNKNOWN, f"{params.source} does not hold it (any more)")
            return read_offer(answer.body)
        except (PodCallError, KvTransferError) as error:
            raise self._refuse(Pulled.UNREACHABLE, str(error)) from None

    def _refuse(self, why: Pulled, message: str) -> RefusalError:
        self._counts.pulled(why)
        return kv_refusal(_STATUS[why], message, reason=why.value)

    def start(self, ticket: Ticket, source: KvSource) -> None:
        """Bring the KV of an expected request here, then let it begin."""
        ticket.pulling = asyncio.create_task(self._pull(ticket, source), name=f"pull {source.url}")

    async def _pull(self, ticket: Ticket, source: KvSource) -> None:
        request = ticket.request
        size: Bytes = (
            request.prompt_tokens - self._driver.cached_tokens(request)
        ) * self._options.config.kv_bytes_per_token
        handover = self._options.handover
        seconds = self._clock.real(handover.kv_latency + size / handover.kv_bandwidth)
        try:
            await asyncio.sleep(seconds)
            answer = await self._calls.call("DELETE", source.url, headers=source.headers, within=_PATIENCE)
            there = answer.status == 200
        except PodCallError:
            there = False
        except asyncio.CancelledError:
            self._counts.pulled(Pulled.ABORTED)
            self._let_go(source)
            raise
        self._counts.pulled(Pulled.OK if there else Pulled.LOST)
        if there:
            self._counts.moved(size, seconds)
        else:
            self._counts.computed_here(Pulled.LOST)
        self._driver.begin(ticket, ReceivedKv(adapter=source.adapter) if there else None)

    def _let_go(self, place: KvSource) -> None:
        """Tell the other pod that nobody will pull; what it does not hear it finds out when the KV expires."""
        telling = asyncio.create_task(self._tell(place), name=f"let go {place.url}")
        self._releases.add(telling)
        telling.add_done_callback(self._releases.discard)

    async def _tell(self, place: KvSource) -> None:
        try:
            await self._calls.call("DELETE", place.url, headers=place.headers, within=_PATIENCE)
        except PodCallError:
            return

    async def close(self) -> None:
        """Wait for what is still being told."""
        await asyncio.gather(*self._releases, return_exceptions=True)
