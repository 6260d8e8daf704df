"""Serve generating requests: check the model and the lengths, run the request in the pod model, answer.

In: HTTP requests to the generating routes. Out: responses, whole or streamed; aborts when the client goes away.
Not here: the shapes of bodies (see `dialects`), the model's time (see `driver`).

As in vLLM, the headers of a streamed answer leave when the request is admitted, before its first token, so they say
nothing about a load; those of a whole answer leave when it is complete.
"""

import string
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from lorapick.live.podserver.answers import Answer, fingerprint
from lorapick.live.podserver.bodies import Body, check_stream, read_body
from lorapick.live.podserver.dialects import Dialect
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.handover import CACHED_ELSEWHERE, Handover, read_handover
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.leaving import unless_gone
from lorapick.live.podserver.meanings import Meaning
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.prompts import Prompt, Voice
from lorapick.live.podserver.refusals import (
    RefusalError,
    bad_request,
    internal,
    output_too_long,
    prompt_too_long,
    unknown_model,
)
from lorapick.live.podserver.ticket import Ticket
from lorapick.model.units import AdapterName, Tokens
from lorapick.pod.errors import PodError, RankTooLarge, UnknownAdapter
from lorapick.pod.values import PodRequest
from lorapick.wire.kv_transfer import KvTransferParams

B = TypeVar("B", bound=Body)
Endpoint = Callable[[Request], Awaitable[Response]]


_IN_HEADERS = "".join(letter for letter in string.punctuation if letter != "%")
"""What stands in headers as it is, beside letters and digits of ASCII."""


class Generator:
    """Runs requests on one pod."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, *, handover: Handover, meant: Meaning) -> None:
        """`meant`: whom a request means."""
        self.options = options
        self.meant = meant
        self._driver = driver
        self._handover = handover
        self._served = 0

    def route(self, kind: type[B], dialect: Dialect[B]) -> Endpoint:
        """An endpoint that reads bodies of `kind` and speaks `dialect`."""

        async def endpoint(request: Request) -> Response:
            body = read_body(kind, request.headers.get("content-type", ""), await request.body())
            check_stream(body)
            meant = await self.meant(body)
            adapter = meant.adapter
            prompt, limit = dialect.read(body)
            voice = Voice(adapter, prompt)
            natural = min(voice.natural_length(), max(1, self.options.config.max_model_len - prompt.tokens))
            ticket = await self._take(
                request,
                self._pod_request(adapter, prompt, output=natural if limit is None else limit),
                params=read_handover(body.kv_transfer_params),
                finish_reason="stop" if limit is None else "length",
                streams=bool(body.stream),
            )
            answer = self._answer(dialect.prefix, request, ticket, shown=meant.shown)
            if not body.stream:
                return await self._whole(request, ticket, dialect=dialect, answer=answer, voice=voice)
            options = body.stream_options
            usage = options is not None and bool(options.include_usage)
            events = self._events(ticket, answer, dialect=dialect, voice=voice, include_usage=usage)
            return _Stream(events, self.headers(adapter), release=lambda: self._driver.release(ticket))

        return endpoint

    def submit(self, adapter: AdapterName | None, prompt: Prompt, *, output: Tokens, finish_reason: str) -> Ticket:
        """Put a request into the pod model.

        Raises:
            RefusalError: it does not fit, or the model refuses it.
        """
        with self._model_refusals():
            asked = self._pod_request(adapter, prompt, output=output)
            return self._driver.submit(asked, finish_reason=finish_reason, streams=False)

    async def _take(
        self,
        request: Request,
        asked: PodRequest,
        *,
        params: KvTransferParams | None,
        finish_reason: str,
        streams: bool,
    ) -> Ticket:
        """Put a request into the pod model, when its KV has come if another pod has it."""
        asked, source = await self._handover.prepare(request, asked, params=params)
        with self._model_refusals():
            if source is None:
                return self._driver.submit(asked, finish_reason=finish_reason, streams=streams)
            ticket = self._driver.expect(asked, finish_reason=finish_reason, streams=streams)
        self._handover.puller.start(ticket, source)
        return ticket

    def _pod_request(self, adapter: AdapterName | None, prompt: Prompt, *, output: Tokens) -> PodRequest:
        limit = self.options.config.max_model_len
        if prompt.tokens >= limit:
            raise prompt_too_long(prompt.tokens, limit)
        if prompt.tokens + output > limit:
            raise output_too_long(prompt.tokens, output, limit)
        self._served += 1
        return PodRequest(
            id=str(self._served),
            adapter=adapter,
            prompt_tokens=max(1, prompt.tokens),
            output_tokens=output,
            blocks=prompt.blocks(adapter, block_size=self.options.config.block_size),
        )

    @contextmanager
    def _model_refusals(self) -> Iterator[None]:
        try:
            yield
        except UnknownAdapter as error:
            raise unknown_model(error.name, self.options.base_model) from None
        except RankTooLarge as error:
            raise internal(str(error)) from None
        except PodError as error:
            raise bad_request(str(error)) from None

    async def finish(self, request: Request, ticket: Ticket) -> None:
        """Wait for all tokens; a client that goes away aborts the request.

        Raises:
            RefusalError: the engine gave up.
            ClientDisconnect: nobody waits for the answer.
        """
        try:
            await unless_gone(request, ticket.all_tokens())
        finally:
            self._driver.release(ticket)

    def headers(self, adapter: AdapterName | None, tier: str | None = None) -> dict[str, str]:
        """Who serves, as headers that no vLLM sends; what is not known yet is left out.

        Names are percent-encoded where a header cannot hold them.
        """
        facts = {"x-lorapick-pod": self.options.name, "x-lorapick-adapter": adapter, "x-lorapick-tier": tier}
        return {name: quote(value, safe=_IN_HEADERS) for name, value in facts.items() if value is not None}

    def answer_id(self, prefix: str, request: Request) -> str:
        """The client's `x-request-id` becomes the id, as in vLLM."""
        return prefix + (request.headers.get("x-request-id") or uuid.uuid4().hex)

    def _answer(self, prefix: str, request: Request, ticket: Ticket, *, shown: str) -> Answer:
        return Answer(
            id=self.answer_id(prefix, request),
            created=int(time.time()),
            model=shown,
            prompt_tokens=ticket.request.prompt_tokens,
            cached_elsewhere=request.scope.get(CACHED_ELSEWHERE),
            finish_reason=ticket.finish_reason,
        )

    def _note(self, answer: Answer, ticket: Ticket) -> None:
        if answer.cached_elsewhere is not None:
            answer.cached_tokens = answer.cached_elsewhere
        elif ticket.request.kv is not None:
            # vLLM counts what was received as cached; its last token is computed again for the first of the answer.
            answer.cached_tokens = ticket.request.prompt_tokens - 1
        else:
            answer.cached_tokens = ticket.cached_tokens
        answer.fingerprint = fingerprint(self.options.name, ticket.request.adapter, ticket.tier)

    async def _whole(
        self, request: Request, ticket: Ticket, *, dialect: Dialect[B], answer: Answer, voice: Voice
    ) -> Response:
        await self.finish(request, ticket)
        self._note(answer, ticket)
        if ticket.request.prefill_only:
            answer.kv_transfer_params = self._handover.keep(request, ticket, name=answer.id)
        answer.output_tokens = ticket.tokens
        answer.text = voice.text(0, ticket.tokens)
        return MsgspecResponse(dialect.whole(answer), headers=self.headers(ticket.request.adapter, ticket.tier))

    async def _events(
        self, ticket: Ticket, answer: Answer, *, dialect: Dialect[B], voice: Voice, include_usage: bool
    ) -> AsyncIterator[bytes]:
        total = ticket.request.output_tokens
        try:
            while answer.output_tokens < total:
                tokens = await ticket.tokens_after(answer.output_tokens)
                self._note(answer, ticket)
                said = voice.text(answer.output_tokens, tokens)
                opening = b"" if answer.output_tokens else b"".join(dialect.first(answer))
                answer.output_tokens = tokens
                answer.text += said
                reason = ticket.finish_reason if tokens == total else None
                yield opening + b"".join(dialect.delta(answer, said, reason))
        except RefusalError as error:
            yield b"".join(dialect.broken(error.body()))
            return
        yield b"".join(dialect.last(answer, include_usage=include_usage))


class _Stream(StreamingResponse):
    """Server-sent events that give their request back however the response ends, even before its first event."""

    def __init__(self, events: AsyncIterator[bytes], headers: dict[str, str], *, release: Callable[[], None]) -> None:
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
