"""A clock that stands still until a test moves it.

In: seconds from the test. Out: the time, to be given wherever a clock is asked for. Not here: an event loop's
time (tests of `live` use looptime for that).
"""

from lorapick.model.units import Seconds


class ManualClock:
    """Call it for the time."""

    __slots__ = ("now",)

    def __init__(self, now: Seconds = 0.0) -> None:
        self.now = now

    def __call__(self) -> Seconds:
        """The time."""
        return self.now

    def advance(self, seconds: Seconds) -> Seconds:
        """Move on and return the new time.

        Raises:
            ValueError: `seconds` is negative; the clock is monotonic.
        """
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back by {-seconds} s")
        self.now += seconds
        return self.now
