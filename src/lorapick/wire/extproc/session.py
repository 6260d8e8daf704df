"""One HTTP request's side of the ext_proc conversation.

In: `ProcessingRequest` messages, the picker's answer, the end of the stream. Out: lists of commands (`commands.py`).
Not here: gRPC, clocks (the time of arrival is an argument), tasks, or any choice of a pod.

    OPEN --headers--> BODY --end of body--> DECIDING --decided--> RUNNING --end of stream--> OVER
      |                |                       |
      +-- no body -----+-- refused: OVER ------+-- sent to any pod, or the gateway answered itself: RUNNING
"""

from collections.abc import Callable
from enum import Enum
from typing import ClassVar, TypeAlias

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from lorapick.model.effects import Answer, Dispatch, PassOn, Reject
from lorapick.model.reasons import Reason, status_of
from lorapick.model.requests import Outcome
from lorapick.model.units import RequestId, Seconds
from lorapick.wire.asking import model_for
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import (
    AnyCommand,
    BodyStarted,
    Decide,
    Dispatched,
    Ended,
    Finish,
    Passed,
    Prefilled,
    Refused,
    Send,
    Started,
    Withdraw,
)
from lorapick.wire.extproc.errors import error_body, error_headers, param_of
from lorapick.wire.extproc.headers import token_of
from lorapick.wire.extproc.messages import Destination
from lorapick.wire.extproc.models import list_models, no_such_model, one_model
from lorapick.wire.extproc.request import Directory, Incoming, Refusal, SessionOptions, Unrouted
from lorapick.wire.extproc.response import Renaming, Response, served_address
from lorapick.wire.extproc.routes import Route, model_in, route_of

__all__ = ["Directory", "Session", "SessionOptions"]

Commands: TypeAlias = list[AnyCommand]


_NOT_HERE = Refusal(403, Reason.PATH_REFUSED, "this path manages one pod; ask that pod itself, not the gateway")


class _Phase(Enum):
    OPEN = "before the request headers"
    BODY = "within the request body"
    DECIDING = "while the picker decides"
    RUNNING = "after the request was sent on"
    OVER = "after the end"


class Session:
    """One HTTP request. Calls after the end are harmless and return no commands."""

    def __init__(
        self,
        directory: Directory,
        options: SessionOptions,
        *,
        now: Seconds,
        identify: Callable[[str | None], RequestId],
    ) -> None:
        """Begin.

        Args:
            directory: asked for models and for any ready pod.
            options: limits and names from the configuration.
            now: time of arrival on the driver's clock; deadlines count from here.
            identify: makes the request's id from the client's `x-request-id` (None: it sent none).
        """
        self._directory = directory
        self._options = options
        self._phase = _Phase.OPEN
        self._incoming = Incoming(options, now, identify)
        self._renaming: Renaming | None = None
        self._dispatch: Dispatch | PassOn | None = None
        self._response: Response | None = None
        self._ended = False

    @property
    def request_id(self) -> RequestId:
        """Id that `identify` gave, or the picker in its answer; empty until the request headers came."""
        return self._dispatch.request_id if self._dispatch is not None else self._incoming.id

    def receive(self, message: ProcessingRequest) -> Commands:
        """Take one message of the gateway. Never raises on what a gateway may send."""
        if self._phase is _Phase.OVER:
            return []
        kind = message.WhichOneof("request")
        handler = self._HANDLERS.get(kind)
        if handler is None:
            return self._broken("a message of a kind that this picker does not know")
        return handler(self, message)

    def decided(self, answer: Answer, *, traceparent: str | None = None) -> Commands:
        """Take the picker's answer to the `Decide` command; `traceparent` replaces the client's (None: it stays)."""
        if self._phase is not _Phase.DECIDING:
            return self._decided_too_late(answer)
        if isinstance(answer, Reject):
            refusal = Refusal(answer.status, answer.reason, answer.message, answer.retry_after)
            return self._over([_immediate(refusal), Finish()])
        self._dispatch = answer
        if isinstance(answer, PassOn):
            self._renaming = self._incoming.renaming(answer.model)
            self._incoming.traceparent = traceparent
            return self._send_on(messages.NOBODY)
        wording = answer.wording
        model = answer.model if wording is None else model_for(wording, self._incoming.intake.path)
        self._renaming = self._incoming.renaming(model)
        self._incoming.traceparent = traceparent
        prefiller = answer.prefill.address if answer.prefill is not None else None
        addresses = [target.address for target in (answer.target, *answer.fallbacks)]
        port = self._options.names.primary_port
        if port is None:
            return self._send_on(Destination(",".join(addresses), prefiller))
        # The rank is that of the first address: at another pod's sidecar it would be no rank at all.
        return self._send_on(Destination(_at_port(addresses[0], port), prefiller, addresses[0]))

    def undecided(self) -> Commands:
        """The picker failed to answer: the request goes to any ready pod [R7.5]."""
        return self._pass_on("undecided") if self._phase is _Phase.DECIDING else []

    def closed(self) -> Commands:
        """The gateway ended the stream: the HTTP request is over (or its client left)."""
        return [] if self._phase is _Phase.OVER else self._over(self._end(), Finish())

    def cancelled(self) -> Commands:
        """The stream was torn down; nothing can be sent any more."""
        return [] if self._phase is _Phase.OVER else self._over(self._end())

    # --- the request, on its way in ---

    def _on_request_headers(self, message: ProcessingRequest) -> Commands:
        if self._phase is not _Phase.OPEN:
            return self._out_of_order("request_headers")
        self._phase = _Phase.BODY
        incoming = self._incoming
        refusal = incoming.take_headers(message)
        if route_of(incoming.intake.method, incoming.intake.path) is Route.MANAGEMENT:
            return self._refuse(_NOT_HERE)
        if message.request_headers.end_of_stream:
            return self._without_body()
        if refusal is not None:
            return self._refuse(refusal)
        if not incoming.readable:
            return self._pass_on("body_mode")
        return [] if incoming.full_duplex else [Send(messages.REQUEST_HEADERS_CONTINUE)]

    def _on_request_body(self, message: ProcessingRequest) -> Commands:
        incoming = self._incoming
        if self._phase is _Phase.RUNNING and not incoming.readable:
            return [Send(messages.REQUEST_BODY_CONTINUE)]
        if self._phase is not _Phase.BODY:
            return self._out_of_order("request_body")
        refusal = incoming.take_body(message.request_body.body)
        if refusal is not None:
            return self._refuse(refusal)
        # A buffered body is whole whatever the flag says: it is false when trailers follow.
        if message.request_body.end_of_stream or not incoming.full_duplex:
            return self._complete(message)
        return []

    def _on_request_trailers(self, message: ProcessingRequest) -> Commands:
        incoming = self._incoming
        if self._phase is _Phase.RUNNING:
            return [Send(messages.REQUEST_TRAILERS_CONTINUE)]
        if self._phase is _Phase.OPEN or incoming.trailers:
            return self._out_of_order("request_trailers")
        incoming.trailers = True
        return self._complete(message) if self._phase is _Phase.BODY else []

    def _complete(self, message: ProcessingRequest) -> Commands:
        """The whole request is here: refuse it, send it anywhere, or ask the picker."""
        self._incoming.take_subset(message)
        request = self._incoming.complete()
        if isinstance(request, Refusal):
            return self._refuse(request)
        if isinstance(request, Unrouted):
            return self._pass_on(request.why)
        self._phase = _Phase.DECIDING
        return [Decide(request)]

    # --- answers to the request ---

    def _without_body(self) -> Commands:
        intake = self._incoming.intake
        route = route_of(intake.method, intake.path)
        if route is Route.BY_MODEL:
            return self._refuse(Refusal(400, Reason.BODY_INVALID, "the request has no body; send a JSON object"))
        return self._models(model_in(intake.path)) if route is Route.MODELS else self._pass_on("no_body")

    def _models(self, name: str | None) -> Commands:
        cards, created = self._directory.models(), self._options.created
        if name is None:
            body = list_models(cards, created=created)
        elif (found := one_model(cards, name, created=created)) is not None:
            body = found
        else:
            near = self._directory.near_names(name)
            return self._refuse(Refusal(404, Reason.ADAPTER_UNKNOWN, no_such_model(name, near)))
        return self._over([Send(messages.immediate(200, body, [("content-type", "application/json")])), Finish()])

    def _pass_on(self, why: str) -> Commands:
        """Send the request to any ready pod, without the picker."""
        endpoint = None if self._incoming.subset == () else self._directory.any_endpoint()
        if endpoint is None:
            return self._refuse(Refusal(status_of(Reason.NO_POD), Reason.NO_POD, "no pod is ready for the request"))
        if why in ("no_body", "body_mode"):
            self._phase = _Phase.RUNNING
            return [Send(self._incoming.forward_headers(Destination(endpoint))), Passed(why)]
        self._renaming = self._incoming.renaming(None)
        return [*self._send_on(Destination(endpoint)), Passed(why)]

    def _send_on(self, destination: Destination) -> Commands:
        self._phase = _Phase.RUNNING
        wording = self._dispatch.wording if isinstance(self._dispatch, Dispatch) else None
        fields = wording.fields if wording is not None else {}
        return [Send(message) for message in self._incoming.forward(destination, self._renaming, fields=fields)]

    def _refuse(self, refusal: Refusal) -> Commands:
        """Answer the client without having asked the picker."""
        refused = Refused(refusal.status, refusal.reason, refusal.message)
        return self._over([_immediate(refusal), refused, Finish()])

    def _decided_too_late(self, answer: Answer) -> Commands:
        if isinstance(answer, Reject) or self._dispatch is not None:
            return []
        # The picker counts the request as in flight although nobody waits for it any more.
        self._dispatch = answer
        return self._end()

    # --- the response, on its way back ---

    def _on_response_headers(self, message: ProcessingRequest) -> Commands:
        if self._response is not None:
            return self._out_of_order("response_headers")
        withdrawn = self._withdraw()
        self._phase = _Phase.RUNNING
        response = self._responding()
        address, dispatch = served_address(message), self._dispatch
        if self._options.names.primary_port is not None and isinstance(dispatch, Dispatch):
            address = dispatch.target.address  # the gateway knows the sidecar's
        prefiller = dispatch.prefill.pod if isinstance(dispatch, Dispatch) and dispatch.prefill is not None else None
        pod = self._pod_at(address)
        answer = response.headers(message, pod, prefiller=prefiller, more=self._told(pod, address))
        commands: Commands = [*withdrawn, Send(answer)]
        if dispatch is not None:
            if isinstance(dispatch, Dispatch):
                address = address or dispatch.target.address
            if address is not None:  # else nobody knows which pod the gateway chose
                commands.append(Dispatched(self.request_id, address))
            if response.prefilled is not None:
                commands.append(Prefilled(self.request_id, response.prefilled, response.why_not_prefilled))
            if response.status is not None:
                commands.append(Started(self.request_id, response.status))
        if message.response_headers.end_of_stream:
            commands += self._end()
        return commands

    def _told(self, pod: str | None, address: str | None) -> tuple[tuple[str, str], ...]:
        """What profiles have the client told of who served."""
        names, dispatch = self._options.names, self._dispatch
        found = []
        if names.token is not None and pod is not None:
            found.append((names.token, token_of(pod, namespace=self._options.namespace)))
        if names.served is not None and isinstance(dispatch, Dispatch):
            found.append((names.served, address or dispatch.target.address))
        return tuple(found)

    def _pod_at(self, address: str | None) -> str | None:
        """Name of the pod that served: by its address, else as picked; None when it is not known by name."""
        dispatch = self._dispatch
        if not isinstance(dispatch, Dispatch):
            return None
        if address is None:
            return dispatch.target.pod
        targets = (dispatch.target, *dispatch.fallbacks)
        return next((target.pod for target in targets if target.address == address), None)

    def _on_response_body(self, message: ProcessingRequest) -> Commands:
        response = self._responding()
        commands = [*self._withdraw(), *self._sends(response.body(message.response_body))]
        self._phase = _Phase.RUNNING
        if self._dispatch is not None and response.begins(message.response_body):
            commands.append(BodyStarted(self.request_id))
        return commands + self._end() if message.response_body.end_of_stream else commands

    def _on_response_trailers(self, _: ProcessingRequest) -> Commands:
        response = self._responding()
        commands = [*self._withdraw(), *self._sends(response.trailers())]
        self._phase = _Phase.RUNNING
        return commands + self._end()

    def _responding(self) -> Response:
        """The response; without a status as long as the gateway has not sent us response headers."""
        if self._response is None:
            self._response = Response(self._incoming.response_mode, self._renaming, reports=self._options.names.reports)
        return self._response

    @staticmethod
    def _sends(out: list[ProcessingResponse]) -> Commands:
        return [Send(message) for message in out]

    # --- ends ---

    def _withdraw(self) -> Commands:
        """The gateway answered by itself while the picker still decides (a timeout of the route, say)."""
        return [Withdraw(self.request_id)] if self._phase is _Phase.DECIDING else []

    def _end(self) -> Commands:
        """What the end of the HTTP stream means for the request.

        Served, once response headers came with a status below 400, even if the client then left; failed, with the
        status, from 400 on (Envoy's own 503 for an upstream that cannot be reached comes this way too); abandoned,
        when the stream ended before any of the response.
        """
        if self._phase is _Phase.DECIDING:
            return self._withdraw()
        if self._dispatch is None or self._ended:
            return []
        self._ended = True
        if self._response is None:
            return [Ended(self.request_id, Outcome.ABANDONED)]
        status = self._response.status
        outcome = Outcome.FAILED if status is not None and status >= 400 else Outcome.SERVED
        return [Ended(self.request_id, outcome, status, self._response.usage)]

    def _out_of_order(self, kind: str) -> Commands:
        return self._broken(f"{kind} {self._phase.value}")

    def _broken(self, error: str) -> Commands:
        """The gateway broke the protocol: let the request go on without us, and say why."""
        commands = self._end()
        if self._response is None and self._dispatch is not None:
            commands = [Ended(self.request_id, Outcome.FAILED)]  # nobody will tell how it ends
        return self._over(commands, Finish(error))

    def _over(self, commands: Commands, *more: AnyCommand) -> Commands:
        self._phase = _Phase.OVER
        return [*commands, *more]

    _HANDLERS: ClassVar[dict[str | None, Callable[["Session", ProcessingRequest], Commands]]] = {
        "request_headers": _on_request_headers,
        "request_body": _on_request_body,
        "request_trailers": _on_request_trailers,
        "response_headers": _on_response_headers,
        "response_body": _on_response_body,
        "response_trailers": _on_response_trailers,
    }


def _at_port(address: str, port: int) -> str:
    return f"{address.rpartition(':')[0]}:{port}"


def _immediate(refusal: Refusal) -> Send:
    body = error_body(refusal.status, refusal.message, param=param_of(refusal.reason))
    headers = error_headers(refusal.reason, refusal.retry_after)
    return Send(messages.immediate(refusal.status, body, headers))
