"""One request on its way through the pod model, as its HTTP handler sees it.

In: stages, from the driver. Out: a coroutine that returns when there is more to send.
Not here: the model, HTTP.
"""

import asyncio

from lorapick.live.podserver.refusals import RefusalError
from lorapick.live.podserver.reservations import Wait
from lorapick.model.units import Seconds, Tokens
from lorapick.pod.values import PodRequest


class Ticket:
    """A request in flight. Times are model seconds; None: not yet."""

    def __init__(self, request: PodRequest, *, arrived: Seconds, finish_reason: str, streams: bool) -> None:
        self.request = request
        self.arrived = arrived
        self.finish_reason = finish_reason
        """vLLM's reason for the end that this request will come to: `length` or `stop`."""
        self.streams = streams
        """Whether its handler wants to know of every token."""
        self.started_at: Seconds | None = None
        self.first_token_at: Seconds | None = None
        self.tier: str | None = None
        """`hit`, or the tier that its adapter was loaded from; None: not started, or the base model."""
        self.cached_tokens: Tokens = 0
        self.tokens: Tokens = 0
        """Output tokens that exist, as of the driver's last look."""
        self.done = False
        self.failure: RefusalError | None = None
        self.pulling: asyncio.Task[None] | None = None
        """Brings its KV here from the pod that prefilled; None: nothing to bring, or done."""
        self.wait: Wait | None = None
        """Its wait for a slot that is reserved for it; None: another pod had no part in it."""
        self._news = asyncio.Event()

    def tell(self) -> None:
        """Wake the handler."""
        self._news.set()

    def fail(self, why: RefusalError) -> None:
        """End without an answer."""
        self.failure = why
        self.done = True
        self.tell()

    async def tokens_after(self, seen: Tokens) -> Tokens:
        """Output tokens once there are more than `seen`, or all of them when the request is done.

        Raises:
            RefusalError: the engine gave up.
        """
        while not self.done and self.tokens <= seen:
            self._news.clear()
            await self._news.wait()
        if self.failure is not None:
            raise self.failure
        return self.tokens

    async def all_tokens(self) -> Tokens:
        """Output tokens when the request is done.

        Raises:
            RefusalError: the engine gave up.
        """
        return await self.tokens_after(self.request.output_tokens)
