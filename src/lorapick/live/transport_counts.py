"""What the ext_proc server, the event log, the ledger and the KV events' followers count, for the views that show it.

In: increments. Out: counts that only ever grow. Not here: what the picker counts (see `core.state.Tally`).
"""

from collections import Counter
from collections.abc import Callable


class TransportCounts:
    """What a server did without the picker, and what went wrong."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.refused: Counter[str] = Counter()
        """Requests refused before the picker was asked, by reason (`body_invalid`, ...)."""
        self.passed: Counter[str] = Counter()
        """Requests sent to any ready pod, by why (`no_body`, `no_model`, `undecided`, `body_mode`)."""
        self.decide_failures = 0
        """Decisions that raised or did not come in time."""
        self.protocol_errors = 0
        """Streams that the gateway broke."""
        self.stream_errors = 0
        """Streams that ended with an error of ours."""
        self.events_lost = 0
        """Events that are not in the event log because it could not be written."""
        self.kv_events_missed = 0
        """Messages of KV events that pods numbered and that never came."""
        self.kv_events_malformed = 0
        """Messages, or events in them, that could not be read."""

        self.ledger_faults: Callable[[], int] = lambda: 0
        """Writes of the ledger that failed, and rows that were lost by it."""

        self.spans_lost: Callable[[], int] = lambda: 0
        """Spans of traced requests that no collector got."""

    def event_lost(self) -> None:
        """Count one."""
        self.events_lost += 1

    def faults(self) -> dict[str, int]:
        """The last eight by kind, in the words of `lorapick_faults_total`."""
        return {
            "decide_failure": self.decide_failures,
            "protocol_error": self.protocol_errors,
            "stream_error": self.stream_errors,
            "event_log": self.events_lost,
            "kv_events_missed": self.kv_events_missed,
            "kv_events_malformed": self.kv_events_malformed,
            "ledger": self.ledger_faults(),
            "spans_lost": self.spans_lost(),
        }
