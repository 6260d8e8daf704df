"""The picker's feed for `lorapick top`, read in a thread of its own.

In: the admin API's URL. Out: frames and what went wrong, in a queue. It connects again for as long as it runs: pickers
are restarted. Not here: what frames mean (see `cli.top_board`).
"""

import queue
import threading
from collections.abc import Iterator

from lorapick.cli import admin_client
from lorapick.live.admin_views import Frame
from lorapick.model.units import Seconds

PATH = "/v1/stream"
AGAIN: Seconds = 1.0
"""Time between two tries to connect."""
SILENCE: Seconds = 12.0
"""Time without a frame after which the picker counts as away; a busy one sends one every four seconds."""
_DATA = b"data: "


def frames(admin: str) -> Iterator[Frame]:
    """Frames of one connection, the first whole, until the picker ends it. Raises AdminError."""
    for line in admin_client.lines(admin, PATH, timeout=SILENCE):
        if line.startswith(_DATA):
            yield admin_client.decode(line[len(_DATA) :], Frame, admin)


class Follower:
    """Reads on and on; `queue` has each `Frame`, and a text whenever the feed broke off."""

    def __init__(self, admin: str, *, again: Seconds = AGAIN) -> None:
        self.queue: queue.Queue[Frame | str] = queue.Queue(maxsize=64)
        self._admin = admin
        self._again = again
        self._stop = threading.Event()
        self._anew = threading.Event()
        # It may be waiting for the next line when the program ends.
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def anew(self) -> None:
        """A frame was missed: connect again, for a whole one."""
        self._anew.set()

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._anew.clear()
            try:
                for frame in frames(self._admin):
                    self._tell(frame)
                    if self._stop.is_set() or self._anew.is_set():
                        break
                else:
                    self._tell("the picker ended the feed")
            except admin_client.AdminError as error:
                self._tell(str(error))
            self._stop.wait(self._again)

    def _tell(self, news: Frame | str) -> None:
        try:
            self.queue.put_nowait(news)
        except queue.Full:
            self._anew.set()  # nobody has looked for a minute; what was missed comes whole
