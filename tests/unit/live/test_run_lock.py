import os
import subprocess
import sys
from pathlib import Path

import pytest

from lorapick.live.run_lock import RunDirectoryError, RunLock, RunningError


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


@pytest.mark.parametrize(
    ("path", "why"), [("/proc/nope", "No such file or directory"), ("{tmp}/file/run", "Not a directory")]
)
def test_a_directory_that_cannot_be_is_named_with_the_reason_and_the_flag(tmp_path, path, why):
    (tmp_path / "file").write_text("")
    directory = Path(path.format(tmp=tmp_path))
    with pytest.raises(RunDirectoryError) as caught, RunLock(directory):
        raise AssertionError("the lock was given")
    assert str(caught.value).startswith(f"the run directory {directory} cannot be used: {why} (")
    assert str(caught.value).endswith("--run-dir")


def test_a_lock_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "lorapick.lock").mkdir()
    with pytest.raises(RunDirectoryError, match=r"Is a directory \(.*lorapick\.lock\)"), RunLock(tmp_path):
        raise AssertionError("the lock was given")
