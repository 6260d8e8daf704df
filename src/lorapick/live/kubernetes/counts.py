"""What is counted about the API server, for metrics and the status page.

In: increments. Out: counts that only grow. Not here: how they are shown (see `families`).
"""

from collections import Counter


class KubernetesCounts:
    """By kind of objects, in the plural (`pods`, `loraadapters`, ...)."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.lists: Counter[str] = Counter()
        """Whole lists that were read."""
        self.events: Counter[str] = Counter()
        """Objects that were added, changed or deleted while watched."""
        self.failures: Counter[str] = Counter()
        """Requests that the server refused or did not answer."""
        self.relists: Counter[str] = Counter()
        """Watches that were too old to go on (410)."""
        self.malformed: Counter[str] = Counter()
        """Objects, and parts of them, that could not be read; what was known before stays."""
        self.statuses = 0
        """Statuses written."""
        self.status_conflicts = 0
        """Statuses not written because the object had changed meanwhile; they are written later."""
        self.told = 0
        """Events made."""
        self.untold = 0
        """Events left out, since there were too many."""
        self.fenced = 0
        """Commands to pods that were held back since this replica did not lead any more."""
