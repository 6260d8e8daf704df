"""The emulated pod's time: real time, stretched or squeezed by one factor.

In: the process's clocks. Out: model seconds, real delays, unix times.
Not here: waiting (see `driver`).
"""

import time

from lorapick.model.units import Seconds


class ModelClock:
    """Seconds since this clock was made, times `speed`."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._start = time.monotonic()
        self.started_wall: Seconds = time.time()
        """Unix time of model second 0; later jumps of the wall clock do not matter."""

    def now(self) -> Seconds:
        """Model seconds; never goes back."""
        return (time.monotonic() - self._start) * self.speed

    def wall(self, at: Seconds) -> Seconds:
        """Unix time of model second `at`."""
        return self.started_wall + at / self.speed

    def real(self, span: Seconds) -> Seconds:
        """Real seconds that `span` model seconds take."""
        return span / self.speed
