import os
import subprocess
import sys

import pytest

from lorapick.live.run_lock import RunLock, RunningError


def test_a_second_one_is_refused_with_the_pid_of_the_first(tmp_path):
    with RunLock(tmp_path / "run"):
        with pytest.raises(RunningError, match=rf"pid {os.getpid()}\).*--run-dir"):
            with RunLock(tmp_path / "run"):
                pass
    with RunLock(tmp_path / "run"):
        pass


def test_a_lock_goes_with_its_process(tmp_path):
    code = (
        "import os; from pathlib import Path; from lorapick.live.run_lock import RunLock\n"
        f"RunLock(Path({str(tmp_path)!r})).__enter__(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    assert (tmp_path / "lorapick.lock").read_text() != ""
    with RunLock(tmp_path):
        assert (tmp_path / "lorapick.lock").read_text() == f"{os.getpid()}\n"
