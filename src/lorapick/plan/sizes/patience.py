"""How long the patterns of one adapter's configuration may be matched.

In: nothing. Out: a function that says what is left. Not here: matching (see `wire.peft_targets`).
"""

import time
from collections.abc import Callable

from lorapick.model.units import Seconds
from lorapick.wire.peft_targets import PATIENCE


def patience(whole: Seconds = PATIENCE) -> Callable[[], Seconds]:
    """Seconds that are left of `whole`, which begins now; 0 or less: none."""
    end = time.monotonic() + whole
    return lambda: end - time.monotonic()
