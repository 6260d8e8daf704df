"""Become a command that the kernel ends when its parent ends, however that happens.

In: `python die_with_parent.py PARENT_PID COMMAND ARGUMENT...`. The process turns into the command, keeping its pid.
A wrapper and not a function between fork and exec, because the parent has threads (gRPC) and such a function could
meet a lock that one of them held. Not here: anything on systems other than Linux, where the command just runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for SIGKILL at the parent's death, then run the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(f"{command[0]}: the process that started it is gone")
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming the command is what this program is for
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
