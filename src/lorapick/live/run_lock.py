"""One installation per run directory.

In: a directory. Out: a lock that the system gives back when the process ends, however it ends; so none is ever stale.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Self


class RunDirectoryError(RuntimeError):
    """The directory cannot be used; the text names it, the reason and the flag that chooses another."""


class RunningError(RunDirectoryError):
    """Another process holds the directory."""


class RunLock:
    """`with RunLock(directory): ...`; the file names the pid that holds it.

    Raises:
        RunningError: another process holds it; the text names its pid.
        RunDirectoryError: the directory cannot be made or written.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "lorapick.lock"
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise RunningError(
                f"lorapick runs already in {self._path.parent} (pid {holder}); end it, or choose another --run-dir"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        self._file = file
        return self

    def _open(self) -> IO[str]:
        directory = self._path.parent
        try:
            directory.mkdir(parents=True, exist_ok=True)
            return self._path.open("a+")
        except OSError as error:
            raise RunDirectoryError(
                f"the run directory {directory} cannot be used: {error.strerror or error} ({error.filename}); "
                "choose one that can be made and written with --run-dir"
            ) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The file stays: removing it could take the lock of a process that has just opened it.
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None
