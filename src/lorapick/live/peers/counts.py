"""What is counted of the agreement with peers. Not here: claims (the core counts those), how it is shown."""

from collections import Counter


class PeersCounts:
    """Counts that only grow."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.said = 0
        """Messages of ours."""
        self.heard = 0
        """Messages of others that counted."""
        self.missed = 0
        """Of these, the ones that only a look at the store brought."""
        self.malformed = 0
        """Messages that could not be read."""
        self.too_large = 0
        """Messages of ours that were not sent."""
        self.dropped = 0
        """Claims and releases that found too many before them."""
        self.losses: Counter[str] = Counter()
        """Times that the store was lost, by the error's class."""
        self.connects = 0
        self.fenced = 0
        """Commands to pods that were held back since this picker did not lead any more."""
