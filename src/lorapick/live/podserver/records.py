"""What vLLM would have counted: turns the pod model's events into the histograms and series of a metrics page.

In: the stages of each request, with model times. Out: what `wire.vllm_page` shows beside the model's own statistics.
Not here: clocks, the model itself, HTTP.

As in vLLM, an adapter is in `lora_requests_info` from the first token of its first request to the end of its last one,
an aborted request counts nowhere, and the page speaks real seconds whatever the pod's speed.
"""

from collections import Counter

from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.ticket import Ticket
from lorapick.model.units import AdapterName, Seconds, Tokens
from lorapick.wire.vllm_page import LoraRequestsInfo, RequestHistograms

_LAST_STEP: Seconds = 1e-3
"""Real seconds before its end at which a request was last in flight; the closed form knows no steps between changes."""


class PodRecords:
    """Counts since the pod's start or its last restart."""

    def __init__(self, clock: ModelClock, max_model_len: Tokens) -> None:
        self._clock = clock
        self._active: dict[AdapterName, int] = {}
        self.histograms = RequestHistograms(max_model_len)
        self.finished: Counter[str] = Counter()
        self.received_tokens: Tokens = 0
        """Prompt tokens whose KV came from other pods."""
        self.lora_requests = LoraRequestsInfo()

    def first_token(self, ticket: Ticket, at: Seconds) -> None:
        """The first token of a request exists."""
        self._observe("time_to_first_token_seconds", at - ticket.arrived)
        if ticket.request.kv is not None:
            self.received_tokens += ticket.request.prompt_tokens - ticket.cached_tokens
        adapter = ticket.request.adapter
        if adapter is not None:
            self._active[adapter] = self._active.get(adapter, 0) + 1
        self.step(at)

    def ended(self, ticket: Ticket, at: Seconds, reason: str) -> None:
        """A request finished for `reason` (vLLM's `finished_reason`)."""
        self.finished[reason] += 1
        self.left(ticket, at)
        if reason != "error":
            self._counts(ticket)
            self._times(ticket, at)

    def left(self, ticket: Ticket, at: Seconds) -> None:
        """A request is no longer in flight, for whatever reason."""
        adapter = ticket.request.adapter
        if adapter is not None and ticket.first_token_at is not None:
            self.lora_requests.renew(self._active, wall=self._clock.wall(at) - _LAST_STEP)
            self._active[adapter] -= 1
            if not self._active[adapter]:
                del self._active[adapter]
        self.step(at)

    def step(self, at: Seconds) -> None:
        """An engine step ended at `at`: the current label set of `lora_requests_info` gets its time."""
        self.lora_requests.step(self._active, wall=self._clock.wall(at))

    def _counts(self, ticket: Ticket) -> None:
        request = ticket.request
        output = float(request.output_tokens)
        histograms = self.histograms
        histograms["request_prompt_tokens"].observe(float(request.prompt_tokens))
        computed = 0 if request.kv is not None else request.prompt_tokens - ticket.cached_tokens
        histograms["request_prefill_kv_computed_tokens"].observe(float(computed))
        histograms["request_params_n"].observe(1.0)
        for name in ("request_generation_tokens", "request_max_num_generation_tokens", "request_params_max_tokens"):
            histograms[name].observe(output)

    def _times(self, ticket: Ticket, at: Seconds) -> None:
        started, first = ticket.started_at, ticket.first_token_at
        assert started is not None and first is not None, f"{ticket.request.id} ended before it began"
        self._observe("e2e_request_latency_seconds", at - ticket.arrived)
        self._observe("request_queue_time_seconds", started - ticket.arrived)
        self._observe("request_prefill_time_seconds", first - started)
        self._observe("request_decode_time_seconds", at - first)
        self._observe("request_inference_time_seconds", at - started)
        gaps = ticket.request.output_tokens - 1
        # The closed form knows when an answer began and ended, not each step between: every gap gets the mean.
        gap = (at - first) / gaps if gaps else 0.0
        self._observe("request_time_per_output_token_seconds", gap)
        if gaps:
            self._observe("inter_token_latency_seconds", gap, times=gaps)

    def _observe(self, name: str, span: Seconds, times: int = 1) -> None:
        self.histograms[name].observe(self._clock.real(span), times)
