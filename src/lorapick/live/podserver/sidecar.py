"""The two steps of prefill on one pod and decode on another, as llm-d's routing sidecar makes them (`nixlv2`).

In: requests whose header `x-prefiller-host-port` names a pod. Out: the same request to that pod, for one token; then
the request itself to this pod, with the `kv_transfer_params` of the first answer. When the prefill fails, or this pod
refuses its KV, this pod computes the prompt; the answer's header says why.
Not here: KV (see `handover`), the choice of the pods.

Of the prefiller's answers, 4xx go to the client, as in llm-d's sidecar; after anything else but 2xx the prompt is
computed here. (So did llm-d-router at 45c3854; at 0545789 it asks a few times more and then fails the request.)
"""

import uuid
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorapick.live.podserver.handover import CACHED_ELSEWHERE
from lorapick.live.podserver.handover_counts import HandoverCounts, Prefilled, Pulled
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.leaving import unless_gone
from lorapick.live.podserver.options import HandoverOptions
from lorapick.live.podserver.pod_calls import LongAnswerError, PodAnswer, PodCallError, PodCalls, PodTimeoutError
from lorapick.live.podserver.refusals import KV_REFUSED, RefusalError, bad_request
from lorapick.model.units import AdapterName
from lorapick.wire.kv_transfer import (
    LOCAL_PREFILL,
    OUTPUT_LIMITS,
    PREFILLED_BY,
    PREFILLER,
    Fields,
    KvTransferError,
    PrefillAnswer,
    decode_step,
    prefill_step,
    read_fields,
    read_model,
    read_prefill_answer,
    read_prefiller,
)

_REQUEST_ID = "x-request-id"
_NOT_FORWARDED = frozenset(
    {PREFILLER, "host", "content-length", "accept-encoding", "connection", "keep-alive", "transfer-encoding", "expect"}
)


class Sidecar:
    """ASGI wrapper that lets requests be prefilled elsewhere."""

    def __init__(
        self,
        app: ASGIApp,
        options: HandoverOptions,
        *,
        may_ask: Callable[[str], bool],
        calls: PodCalls,
        counts: HandoverCounts,
        reserved: Callable[[AdapterName], AbstractContextManager[None]],
    ) -> None:
        """`may_ask` says of an `ip:port` whether it may prefill, `reserved` keeps an adapter in memory for a block."""
        self._app = app
        self._options = options
        self._may_ask = may_ask
        self._calls = calls
        self._counts = counts
        self._reserved = reserved

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one exchange."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in OUTPUT_LIMITS:
            await self._app(scope, receive, send)
            return
        try:
            prefiller = self._prefiller(Headers(scope=scope).getlist(PREFILLER))
        except RefusalError as error:
            await MsgspecResponse(error.body(), status_code=error.status)(scope, receive, send)
            return
        if prefiller is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            await self._serve(request, send, prefiller=prefiller)
        except ClientDisconnect:
            self._counts.prefilled(Prefilled.CLIENT_GONE)

    def _prefiller(self, values: list[str]) -> str | None:
        try:
            prefiller = read_prefiller(values)
        except KvTransferError as error:
            raise bad_request(f"{PREFILLER}: {error}") from None
        if prefiller is not None and not self._may_ask(prefiller):
            message = f"{PREFILLER}: {prefiller} is not among the prefillers that this pod may ask (--prefillers)"
            raise RefusalError(403, "Forbidden", message)
        return prefiller

    async def _serve(self, request: Request, send: Send, *, prefiller: str) -> None:
        step = _Step(request, await request.body())
        fields = read_fields(step.body)
        if fields is None:  # the pod says what is wrong with it
            await self._app(step.scope(), step.receive, send)
            return
        with self._reserved(read_model(fields)):
            await self._in_two_steps(step, fields, prefiller=prefiller, send=send)

    async def _in_two_steps(self, step: "_Step", fields: Fields, *, prefiller: str, send: Send) -> None:
        prefilled = await unless_gone(step.request, self._prefill(step, fields, prefiller=prefiller))
        if isinstance(prefilled, Prefilled):
            await self._here(step, send, reason=prefilled)
        elif isinstance(prefilled, PodAnswer):
            await _passed_on(prefilled)(step.request.scope, step.receive, send)
        else:
            assert prefilled.params is not None, "an answer without KV is NO_KV"
            second = step.with_body(decode_step(fields, prefilled.params))
            second.extra = {CACHED_ELSEWHERE: prefilled.cached_tokens}
            watched = _Watched(send, prefiller)
            await self._app(second.scope(), second.receive, watched)
            if watched.refused is not None:
                await self._here(step, send, reason=watched.refused)

    async def _here(self, step: "_Step", send: Send, *, reason: Prefilled | Pulled) -> None:
        """Let this pod do all of it."""
        self._counts.computed_here(reason)

        async def told(message: Message) -> None:
            await send(_with_header(message, name=LOCAL_PREFILL, value=reason.value))

        await self._app(step.scope(), step.receive, told)

    async def _prefill(self, step: "_Step", fields: Fields, *, prefiller: str) -> PrefillAnswer | PodAnswer | Prefilled:
        """The first step: what it gave, the prefiller's refusal for the client, or why this pod has to do it."""
        asked = step.request.url
        url = f"http://{prefiller}{asked.path}" + (f"?{asked.query}" if asked.query else "")
        body = prefill_step(fields, asked.path)
        try:
            patience = self._options.prefill_timeout
            answer = await self._calls.call("POST", url, headers=step.headers, within=patience, body=body)
        except PodTimeoutError:
            return self._ended(Prefilled.TIMEOUT)
        except LongAnswerError:
            return self._ended(Prefilled.BAD_ANSWER)
        except PodCallError:
            return self._ended(Prefilled.UNREACHABLE)
        if 400 <= answer.status < 500:
            self._ended(Prefilled.REFUSED)
            return answer
        if not 200 <= answer.status < 300:
            return self._ended(Prefilled.ERROR)
        try:
            read = read_prefill_answer(answer.body)
        except KvTransferError:
            return self._ended(Prefilled.BAD_ANSWER)
        self._ended(Prefilled.OK if read.params is not None else Prefilled.NO_KV)
        return Prefilled.NO_KV if read.params is None else read

    def _ended(self, result: Prefilled) -> Prefilled:
        self._counts.prefilled(result)
        return result


class _Step:
    """A request to this pod with a body of ours: a scope and a `receive`, each time anew."""

    def __init__(self, request: Request, body: bytes) -> None:
        self.request = request
        self.body = body
        self.headers = _identified(request)
        """Those of both steps."""
        self.extra: Mapping[str, object] = {}
        self._told = False

    def with_body(self, body: bytes) -> "_Step":
        """The same request with another body."""
        other = _Step(self.request, body)
        other.headers = self.headers
        return other

    def scope(self) -> MutableMapping[str, object]:
        """An ASGI scope; what the routes put into it stays there."""
        self._told = False
        scope = {**self.request.scope, **self.extra, "headers": list(self.request.scope["headers"])}
        headers = MutableHeaders(scope=scope)
        del headers[PREFILLER]
        headers["content-length"] = str(len(self.body))
        headers[_REQUEST_ID] = self.headers[_REQUEST_ID]
        return scope

    async def receive(self) -> Message:
        """The body; then what the client does."""
        if not self._told:
            self._told = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        return await self.request.receive()


class _Watched:
    """A `send` that keeps back an answer which refuses KV."""

    def __init__(self, send: Send, prefiller: str) -> None:
        self._send = send
        self._prefiller = prefiller
        self.refused: Pulled | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            reason = Headers(raw=message["headers"]).get(KV_REFUSED)
            if reason is not None:
                self.refused = Pulled(reason)
        if self.refused is None:
            await self._send(_with_header(message, name=PREFILLED_BY, value=self._prefiller))


def _with_header(message: Message, *, name: str, value: str) -> Message:
    if message["type"] == "http.response.start":
        MutableHeaders(raw=message["headers"])[name] = value
    return message


def _identified(request: Request) -> dict[str, str]:
    """The client's headers for the prefiller; both steps have one `x-request-id`."""
    headers = {name: value for name, value in request.headers.items() if name not in _NOT_FORWARDED}
    headers.setdefault(_REQUEST_ID, str(uuid.uuid4()))
    return headers


def _passed_on(answer: PodAnswer) -> Response:
    headers = {name: value for name, value in answer.headers.items() if name.lower().startswith("x-lorapick-")}
    media_type = answer.headers.get("content-type")
    return Response(answer.body, status_code=answer.status, headers=headers, media_type=media_type)
