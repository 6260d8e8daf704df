"""This pod's part in prefill on one pod and decode on another, as vLLM's NixlConnector has it.

In: requests with `kv_transfer_params`. Out: what the pod model is asked, and where KV is pulled from; what an answer
says of KV that stays.
Not here: the two steps themselves (see `sidecar`), which any sidecar may make, llm-d's own too.
"""

from msgspec import structs
from starlette.requests import Request

from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.handover_counts import HandoverCounts, Pulled
from lorapick.live.podserver.holding import KvHolder
from lorapick.live.podserver.leaving import unless_gone
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.pod_calls import PodCalls
from lorapick.live.podserver.pulling import KvPuller, KvSource
from lorapick.live.podserver.refusals import Json, bad_request
from lorapick.live.podserver.ticket import Ticket
from lorapick.pod.values import PodRequest
from lorapick.wire.kv_transfer import PARAMS, KvTransferError, KvTransferParams, read_params

CACHED_ELSEWHERE = "lorapick.cached_elsewhere"
"""Entry of an ASGI scope: prompt tokens that the prefiller had cached. llm-d's sidecar puts this number into the answer
of the pod that decodes; ours shares a process with it."""


class Handover:
    """One pod's part."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, *, clock: ModelClock) -> None:
        self._options = options
        self.counts = HandoverCounts(options)
        self.counts.broken = lambda: driver.broken_reservations
        self.counts.awaited = lambda: driver.awaited_evictions
        self.calls = PodCalls()
        self.holder = KvHolder(options, driver, counts=self.counts)
        self.puller = KvPuller(options, driver, clock=clock, calls=self.calls, counts=self.counts)

    async def prepare(
        self, request: Request, asked: PodRequest, *, params: KvTransferParams | None
    ) -> tuple[PodRequest, KvSource | None]:
        """What to ask the pod model, and the KV to wait for before that; None: there is none to wait for.

        Raises:
            RefusalError: the KV is not there, or was computed for something else.
            ClientDisconnect: the client went away.
        """
        if params is not None and params.do_remote_decode:
            return structs.replace(asked, prefill_only=True), None
        if params is None or not params.do_remote_prefill:
            return asked, None
        source = await unless_gone(request, self.puller.ask(params, asked))
        if source is None:
            self.counts.computed_here(Pulled.INCOMPLETE)
        return asked, source

    def keep(self, request: Request, ticket: Ticket, *, name: str) -> Json | None:
        """Offer the KV of a request that is done to other pods: `kv_transfer_params` of its answer."""
        server = request.scope.get("server") or (self._options.host, self._options.port)
        return self.holder.hold(ticket, name=f"{name}-{ticket.request.id}", server=server)

    async def close(self) -> None:
        """End what is under way."""
        await self.puller.close()
        await self.calls.close()


def read_handover(given: dict[str, object] | None) -> KvTransferParams | None:
    """`kv_transfer_params` of a body.

    Raises:
        RefusalError: 400, they make no sense.
    """
    try:
        return read_params(given)
    except KvTransferError as error:
        raise bad_request(str(error), param=PARAMS) from None
