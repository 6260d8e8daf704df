"""Run a command, and end its whole process group when it ends, when told to, or when whoever asked for it is gone.

In: `python keeper.py PARENT_PID COMMAND ARGUMENT...`, as the leader of a group. Out: nothing is left of the group.
vLLM needs it: when its API server is killed, its engine and its workers stay, and spin.
"""

import contextlib
import os
import signal
import subprocess
import sys
from types import FrameType

LOOK_EVERY, GRACE = 0.5, 8.0


def main() -> None:
    """Run until one of the three, then kill the group, this process with it."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    told: list[int] = []

    def tell(number: int, _: FrameType | None) -> None:
        told.append(number)

    signal.signal(signal.SIGTERM, tell)
    child = subprocess.Popen(command)
    while child.poll() is None and not told and os.getppid() == parent:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_EVERY)
    if child.poll() is None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
