"""Why a command came to nothing, and how it ended, for events and counts.

Not here: what an engine's answers mean (see `vllm`, `sglang`).
"""

from enum import StrEnum


class Outcome(StrEnum):
    """How a command for one adapter ended."""

    DONE = "done"
    ALREADY = "already"
    """Nothing was loaded, or unloaded: the pod knew the name, or it did not."""
    REFUSED = "refused"
    """By us; the pod was not asked."""
    FAILED = "failed"
    """The pod refused, cannot be reached, or made no sense."""
    UNANSWERED = "unanswered"
    """Not in time. What was asked for may still come about."""
    DROPPED = "dropped"
    """Its turn never came: too many waited, or for too long, or the pod or the picker left."""


class ProblemError(Exception):
    """A command came to nothing; the message says why."""

    def __init__(self, why: str, *, lasting: bool = False, outcome: Outcome = Outcome.FAILED) -> None:
        """Asking again is of no use while nothing changes, if `lasting`."""
        super().__init__(why)
        self.lasting = lasting
        self.outcome = outcome


class UnknownNameError(ProblemError):
    """The pod does not serve the adapter."""
