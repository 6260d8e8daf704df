"""A story for metrics: what a driver would say, in few words."""

import itertools
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.metrics import Metrics
from lorapick.model.effects import Dispatch, Hold
from lorapick.model.events import RequestArrived, RequestEnded, ResponseStarted
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.tiers import Tier


class Story:
    """Says to a `Metrics` what a driver would say; ids and causes count up by themselves."""

    def __init__(self, **options) -> None:
        self.metrics = Metrics(**options)
        self._ids: Iterator[int] = itertools.count()
        self.t = 0.0

    def tell(self, kind: type, *effects, **facts) -> None:
        self.metrics.observe(kind(t=self.t, id=next(self._ids), **facts), effects)

    def dispatch(self, request_id: str, adapter: str | None, pod: str = "p1", tier: Tier | None = Tier.GPU_IDLE):
        pick = Pick(request_id=request_id, adapter=adapter, pod=pod, score=1.0, tier=tier)
        return Dispatch(cause=0, request_id=request_id, target=Target(pod=pod, address="a:1"), fallbacks=(), pick=pick)

    def hold(self, request_id: str, adapter: str, follows: str = "p1") -> Hold:
        pick = Pick(request_id=request_id, adapter=adapter, pod=None, score=None, tier=None, follows=follows)
        return Hold(cause=0, request_id=request_id, until=self.t + 9, reason=Reason.HELD_FOR_LOAD, pick=pick)

    def arrive(self, request_id: str, *effects) -> None:
        self.tell(RequestArrived, *effects, request=Request(id=request_id, model="m"))

    def serve(self, request_id: str, *, status: int = 200) -> None:
        self.tell(ResponseStarted, request_id=request_id, status=status)
        outcome = Outcome.SERVED if status < 400 else Outcome.FAILED
        self.tell(RequestEnded, request_id=request_id, outcome=outcome, status=status)

    async def samples(self) -> dict[str, float]:
        page, _ = await self.metrics.page()
        return {
            _key(sample): sample.value
            for family in text_string_to_metric_families(page.decode())
            for sample in family.samples
            if sample.name.startswith("lorapick_")
        }


def _key(sample) -> str:
    name = sample.name.removeprefix("lorapick_")
    return name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items()))
