"""KV that this pod computed and holds for the pod that decodes.

In: requests that were only to be prefilled, when they are done; handshakes and releases of other pods. Out: what goes
into their answers as `kv_transfer_params`; KV let go when it was pulled, or after a while.
Not here: the blocks themselves (see `pod.engine`), who pulls (see `pulling`).

In vLLM the pod that decodes speaks to a side channel of NIXL's, and reads memory itself. Here it asks
`GET /emulator/kv/<request>` what there is, waits as long as the bytes take, and says `DELETE` when it has them.
"""

import uuid

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.handover_counts import HandoverCounts, Let
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.refusals import Json, not_found
from lorapick.live.podserver.ticket import Ticket
from lorapick.model.units import RequestId
from lorapick.wire.kv_transfer import KvOffer

ENGINE_HEADER = "x-lorapick-engine"
"""Which process is meant; a pod that restarted holds nothing of what it held."""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    offer: KvOffer
    id: RequestId
    """The model's."""


class KvHolder:
    """The KV that one pod holds for others."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, *, counts: HandoverCounts) -> None:
        self._options = options
        self._driver = driver
        self._counts = counts
        self._held: dict[str, _Held] = {}
        self._names: dict[RequestId, str] = {}
        self._blocks = 0
        self.engine_id = str(uuid.uuid4())
        counts.held = lambda: len(self._held)
        driver.kv_expired = self._expired

    def hold(self, ticket: Ticket, *, name: str, server: tuple[str, int]) -> Json | None:
        """Offer the KV of a request that is done; returns the `kv_transfer_params` of its answer.

        `name` is the request's for other pods, `server` the host and port at which this pod serves them. None: the
        model does not hold it (any more).
        """
        request = ticket.request
        kv = self._driver.held_kv(request.id)
        if kv is None:
            return None
        offer = KvOffer(
            engine_id=self.engine_id,
            request_id=name,
            base_model=self._options.base_model,
            adapter=kv.adapter,
            tokens=kv.tokens,
        )
        self._held[name] = _Held(offer=offer, id=request.id)
        self._names[request.id] = name
        self._counts.used()
        first, count = self._blocks, -(-kv.tokens // self._options.config.block_size)
        self._blocks += count
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [list(range(first, first + count))],
            "remote_engine_id": self.engine_id,
            "remote_request_id": name,
            "remote_host": server[0],
            "remote_port": server[1],
            "tp_size": 1,
            "dcp_size": 1,
            "pp_size": 1,
            "remote_num_tokens": kv.tokens,
            "remote_blocks_expiry_time": None,
            "transfer_mode": "pull",
        }

    def restarted(self) -> None:
        """The pod lost its memory."""
        for name in list(self._held):
            self._let_go(name, Let.LOST)
        self.engine_id = str(uuid.uuid4())

    def routes(self) -> list[Route]:
        """What other pods call."""
        return [Route("/emulator/kv/{name:path}", self._serve, methods=["GET", "DELETE"])]

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        self._driver.stats()  # what has expired by now is forgotten now
        held = self._held.get(name)
        # Only who was told where the KV is can name the engine: ids of requests are the clients' own.
        if held is None or request.headers.get(ENGINE_HEADER) != self.engine_id:
            raise not_found(f"no KV is held for request {name!r}: it was pulled, or expired, or the pod restarted")
        if request.method == "DELETE":
            self._let_go(name, Let.RELEASED)
            self._driver.release_kv(held.id)
        return MsgspecResponse(held.offer)

    def _expired(self, request_id: RequestId) -> None:
        if request_id in self._names:
            self._let_go(self._names[request_id], Let.EXPIRED)

    def _let_go(self, name: str, how: Let) -> None:
        del self._names[self._held.pop(name).id]
        self._counts.let_go(how)
