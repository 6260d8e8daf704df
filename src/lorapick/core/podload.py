"""What one pod is busy with: reported numbers, corrected by our own dispatches and ends since that scrape.

In: scrapes, dispatches, ends. Out: queue depth and the GPU stand-in of the pod's row. Not here: residency.

Queue depth [SPEC, words and measures]: reported waiting plus own dispatches minus own ends since the scrape,
floor 0; never scraped: in flight minus max_num_seqs. One correction (docs/adr/0004): dispatches that fit the
room the batch had at the scrape are running, not waiting; without it nine requests within one scrape interval
would fill a queue of eight on an idle pod.

Requests of other pickers are corrected for in the same way, by what these say (`core.peers.marks`).

Reports are not trusted to be sane: a negative count is 0, a share outside [0, 1] is unknown.
"""

from collections import deque

from lorapick.core.admission.pressure import Pressure
from lorapick.model.pods import GpuSource, PodLimits, PodReport
from lorapick.model.units import Ratio, Seconds, Tokens

MOST_RECENT = 4096
"""Dispatches and ends remembered one by one; far more than one scrape's round trip sees."""


class PodLoad:
    """Numbers of one pod between two scrapes."""

    __slots__ = (
        "block_tokens", "circuit_open", "dcgm", "dcgm_at", "delta", "detail", "draining", "ended_loads", "gpu",
        "gpu_source", "in_flight", "kv_blocks", "kv_usage", "last_report", "limits", "others", "others_delta",
        "preemptions", "pressure_tier", "recent", "restarts", "running", "waiting",
    )  # fmt: skip

    def __init__(self, limits: PodLimits) -> None:
        self.limits = limits
        self.in_flight = 0
        """Own requests dispatched and not ended."""
        self.delta = 0
        """Own dispatches minus own ends since the last scrape was sent."""
        self.recent: deque[tuple[Seconds, int]] = deque(maxlen=MOST_RECENT)
        """(time, +1 or -1) of those, oldest first."""
        self.ended_loads: deque[tuple[Seconds, int]] = deque(maxlen=MOST_RECENT)
        """(time, requests that waited for it) of loads that ended since the last scrape was sent."""
        self.others = 0
        """Requests that other pickers have there, as far as they say."""
        self.others_delta = 0
        """Of these, how many more than when the last scrape was sent."""
        self.waiting: int | None = None
        self.running: int | None = None
        self.kv_usage: Ratio | None = None
        self.gpu: Ratio | None = None
        self.gpu_source = GpuSource.STAND_IN
        self.dcgm: Ratio | None = None
        self.dcgm_at: Seconds = 0.0
        self.kv_blocks: int | None = None
        """KV blocks that its engine has; None: it never said."""
        self.block_tokens: Tokens | None = None
        """Tokens in one."""
        self.preemptions: int | None = None
        self.last_report: Seconds | None = None
        self.draining = False
        self.circuit_open = False
        self.pressure_tier = Pressure.NONE
        self.restarts = 0
        self.detail = ""
        """What the last failed scrape said; empty when the last one succeeded."""

    def dispatched(self, now: Seconds) -> None:
        """One more request is on its way to the pod."""
        self.in_flight += 1
        self.delta += 1
        self.recent.append((now, 1))

    def ended(self, now: Seconds) -> None:
        """One request less."""
        self.in_flight -= 1
        self.delta -= 1
        self.recent.append((now, -1))

    def reported(self, report: PodReport, *, since: Seconds, now: Seconds) -> None:
        """Take over a scrape that was sent at `since`."""
        recent = self.recent
        while recent and recent[0][0] <= since:
            recent.popleft()
        self.delta = sum([change for _, change in recent]) if recent else 0
        self.waiting = _count(report.waiting)
        self.running = _count(report.running)
        self.kv_usage = share(report.kv_usage)
        self.kv_blocks = _count(report.gpu_blocks) or self.kv_blocks
        self.block_tokens = _count(report.block_size) or self.block_tokens
        self.gpu, self.gpu_source = share(report.gpu_utilization), report.gpu_source
        self.last_report = now
        self.detail = ""
        # A scrape sent before a load ended still counts those that waited for it.
        while self.ended_loads and self.ended_loads[0][0] <= since:
            self.ended_loads.popleft()
        for _, followers in self.ended_loads:
            self._run(followers)

    def load_ended(self, followers: int, now: Seconds) -> None:
        """Requests that waited for an adapter run now; the last scrape could not know."""
        self.ended_loads.append((now, followers))
        self._run(followers)

    def _run(self, followers: int) -> None:
        if self.waiting:
            moved = min(self.waiting, followers)
            self.waiting -= moved
            self.running = (self.running or 0) + moved

    def gpu_reported(self, utilization: Ratio, now: Seconds) -> None:
        """A DCGM exporter's figure."""
        self.dcgm, self.dcgm_at = share(utilization), now

    def restarted(self) -> None:
        """The process is new: nothing runs, nothing waits."""
        self.waiting = self.running = None
        self.kv_usage = self.gpu = self.preemptions = None
        self.ended_loads.clear()
        self.restarts += 1

    def figures(self) -> tuple[float, float, Ratio, GpuSource]:
        """Queue depth, total, utilisation and its source (see below), for the pod's row."""
        # Three times per request: all in one, because calls cost more than all the rest.
        seats, waiting = self.limits.max_num_seqs, self.waiting
        if waiting is None:
            depth = self.in_flight + self.others - seats
        else:
            delta = self.delta + self.others_delta
            if delta > 0:
                room = seats - (self.running or 0)
                if room > 0:
                    delta = delta - room if delta > room else 0
            depth = waiting + delta
        reported = (self.running or 0) + (waiting or 0) + self.delta + self.others_delta
        total = max(self.in_flight + self.others, reported)
        gpu, source = (self.gpu, self.gpu_source) if self.gpu is not None else self._stand_in()
        return float(depth) if depth > 0 else 0.0, float(total), gpu, source

    def queue_depth(self) -> float:
        """Requests that wait at the pod, as far as we know."""
        return self.figures()[0]

    def total(self) -> float:
        """Requests that run or wait at the pod, as far as we know: reported ones corrected by our own since.

        Never fewer than our own: one that the scrape was too early to see is on its way all the same.
        """
        return self.figures()[1]

    def gpu_utilization(self) -> tuple[Ratio, GpuSource]:
        """Utilisation in [0, 1] and where it comes from: the pod, its DCGM exporter, or running/max_num_seqs."""
        return self.figures()[2:]

    def _stand_in(self) -> tuple[Ratio, GpuSource]:
        if self.dcgm is not None:
            return self.dcgm, GpuSource.DCGM
        if self.running is None:
            running = self.in_flight + self.others
        else:
            running = self.running + self.delta + self.others_delta
        return min(1.0, max(0, running) / max(1, self.limits.max_num_seqs)), GpuSource.STAND_IN

    def pressure(self, report: PodReport) -> Ratio:
        """Pressure [SPEC]: KV use while requests wait or preemptions rise, or what the pod itself calls pressure."""
        before, self.preemptions = self.preemptions, report.preemptions
        rising = before is not None and report.preemptions is not None and report.preemptions > before
        squeezed = (report.waiting or 0) > 0 or rising
        return max(share(report.memory_pressure) or 0.0, (share(report.kv_usage) or 0.0) if squeezed else 0.0)


def share(value: Ratio | None) -> Ratio | None:
    """The value when it is one; None otherwise (NaN too)."""
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _count(value: int | None) -> int | None:
    return max(0, value) if value is not None else None
