"""One vLLM pod as a state machine under an argument clock (signatures are final; behaviour follows)."""

from collections.abc import Callable, Iterable

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, RequestId, Seconds, Tokens
from lorapick.pod.values import AdapterSpec, PodConfig, PodEvent, PodRequest, PodStats


class PodEngine:
    """A pod. Every method that takes `now` first lets the pod live up to `now`; `now` never goes back."""

    def __init__(
        self,
        config: PodConfig,
        adapters: Iterable[AdapterSpec] = (),
        *,
        now: Seconds,
        draw: Callable[[], float] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def registered(self) -> tuple[AdapterName, ...]:
        """Names that the front end accepts, in registration order."""
        raise NotImplementedError

    def register(self, spec: AdapterSpec) -> None:
        """Make a name known; loads nothing. A known name keeps its weights unless its spec differs."""
        raise NotImplementedError

    def unregister(self, name: AdapterName) -> None:
        """Forget a name; frees nothing in memory. Raises UnknownAdapter."""
        raise NotImplementedError

    def submit(self, request: PodRequest, now: Seconds) -> None:
        """Queue a request. Raises UnknownAdapter, PromptTooLong, RankTooLarge, BadRequest (id in use, sizes < 1)."""
        raise NotImplementedError

    def abort(self, request_id: RequestId, now: Seconds) -> None:
        """Forget a request whose client went away; no event follows for it. No-op when unknown."""
        raise NotImplementedError

    def load(self, adapter: AdapterSpec | AdapterName, now: Seconds) -> None:
        """Queue an activation; ends with SwapEnded or SwapFailed. No event when it already holds a slot.

        A name that is not registered yet becomes so when its load ends well (vLLM does the same).
        Raises UnknownAdapter (a bare name that is not registered), RankTooLarge.
        """
        raise NotImplementedError

    def unload(self, name: AdapterName, now: Seconds) -> None:
        """What vLLM's unload does: `unregister`, at `now`. Raises UnknownAdapter."""
        raise NotImplementedError

    def advance(self, now: Seconds) -> list[PodEvent]:
        """Everything that happened up to `now` and was not yet handed out, in time order. Raises ClockWentBack."""
        raise NotImplementedError

    def next_change(self) -> Seconds | None:
        """When `advance` has something to say; None: never, unless something is submitted."""
        raise NotImplementedError

    def tokens_out(self, request_id: RequestId, now: Seconds) -> Tokens:
        """Output tokens that exist at `now`. Works until the RequestFinished event was handed out.

        Raises UnknownRequest.
        """
        raise NotImplementedError

    def next_token_at(self, request_id: RequestId, now: Seconds) -> Seconds | None:
        """When the next token after `now` comes; None: not known yet (waits or loads): ask again at `next_change`."""
        raise NotImplementedError

    def stats(self, now: Seconds) -> PodStats:
        """Counters, levels and gauges at `now`."""
        raise NotImplementedError

    def restart(self, now: Seconds) -> tuple[RequestId, ...]:
        """Lose everything in flight (returned), both memory levels, the prefix cache and all statistics."""
        raise NotImplementedError

    def residency(self) -> dict[AdapterName, Tier]:
        """Tier of every registered adapter as of the last `now`."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise AssertionError with a readable story when an invariant does not hold."""
        raise NotImplementedError
