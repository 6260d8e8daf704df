import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

from lorapick.live.processes import Child, ChildSpec, becomes_true, bound_log

SLEEP = "import time; print('here', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


def spec(tmp_path, code, **changes):
    return ChildSpec(
        **{
            "name": "child",
            "argv": (sys.executable, "-c", code),
            "log": tmp_path / "child.log",
            "restart_after": 0.01,
            **changes,
        }
    )


async def said(child, text):
    async def check():
        return text in child.log_tail()

    assert await becomes_true(check, within=10.0), child.log_tail()


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def gone_or_zombie(pid):
    """Nobody of ours can reap an orphan."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def test_output_goes_to_the_log_and_stop_ends_it(tmp_path):
    exits = []
    child = Child(spec(tmp_path, SLEEP), on_exit=exits.append)
    pid = await child.start()
    await said(child, "here")
    assert child.pid == pid
    assert os.getpgid(pid) == pid
    await child.stop()
    await child.stop()
    assert gone(pid)
    assert child.pid is None
    assert [(e.pid, e.code, e.wanted) for e in exits] == [(pid, -signal.SIGTERM, True)]


async def test_one_that_ignores_sigterm_is_killed(tmp_path):
    child = Child(spec(tmp_path, STUBBORN))
    pid = await child.start()
    await said(child, "here")
    await child.stop(grace=0.2)
    assert gone(pid)


async def test_a_stopped_one_ends_too(tmp_path):
    child = Child(spec(tmp_path, SLEEP))
    pid = await child.start()
    await said(child, "here")
    os.kill(pid, signal.SIGSTOP)
    await child.stop(grace=0.2)
    assert gone(pid)


async def test_death_brings_another_with_growing_pauses(tmp_path):
    exits = []
    child = Child(spec(tmp_path, "raise SystemExit(3)", restart_at_most=0.05), on_exit=exits.append)
    await child.start()

    async def four_lives():
        return len(exits) >= 4

    assert await becomes_true(four_lives, within=20.0)
    await child.stop()
    assert {(e.code, e.wanted) for e in exits[:4]} == {(3, False)}
    assert len({e.pid for e in exits}) == len(exits)


async def test_a_replacement_does_not_wait_for_earlier_deaths(tmp_path):
    child = Child(spec(tmp_path, SLEEP, restart_after=0.05, restart_at_most=3600.0))
    await child.start()
    seen = [child.pid]

    async def another():
        return child.pid not in (None, *seen)

    for _ in range(20):  # doubled each time, the last pause would be 7 hours
        child.replace()
        assert await becomes_true(another, within=10.0, every=0.01)
        seen.append(child.pid)
    await child.stop()


async def test_without_restarts_it_stays_dead(tmp_path):
    child = Child(spec(tmp_path, SLEEP, restart_after=None))
    await child.start()
    child.kill()

    async def given_up():
        return child.given_up

    assert await becomes_true(given_up, within=5.0)
    assert (child.pid, child.starts) == (None, 1)
    await child.stop()


async def test_a_command_that_does_not_exist_says_so(tmp_path):
    child = Child(ChildSpec(name="x", argv=("/no/such/command",), log=tmp_path / "x.log", restart_after=None))
    await child.start()
    await said(child, "/no/such/command: No such file or directory")
    await child.stop()


async def test_a_child_dies_with_its_parent_and_so_do_its_own(tmp_path):
    parent = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from lorapick.live.processes import Child, ChildSpec\n"
        "async def main():\n"
        f"    spec = ChildSpec(name='c', argv=(sys.executable, '-c', {SLEEP!r}), log=Path({str(tmp_path / 'c')!r}))\n"
        "    print(await Child(spec).start(), flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent, stdout=asyncio.subprocess.PIPE)
    pid = int(await process.stdout.readline())
    process.kill()
    await process.communicate()

    async def is_gone():
        return gone_or_zombie(pid)

    assert await becomes_true(is_gone, within=5.0)


def test_a_log_that_grew_is_moved_and_written_on(tmp_path):
    log = tmp_path / "child.log"
    with log.open("a") as writer:
        writer.write("x" * 100)
        writer.flush()
        bound_log(log, limit=200)
        assert log.stat().st_size == 100
        bound_log(log, limit=50)
        assert log.stat().st_size == 0
        writer.write("next")
        writer.flush()
    assert log.read_text() == "next"
    assert (tmp_path / "child.log.1").read_text() == "x" * 100
    bound_log(tmp_path / "absent.log", limit=1)


async def test_supervision_outlives_a_missing_directory_a_deaf_listener_and_a_log_that_cannot_be_kept(tmp_path):
    def deaf(_):
        raise BrokenPipeError

    log = tmp_path / "logs" / "child.log"
    child = Child(spec(tmp_path, SLEEP, log=log, log_limit=1), on_exit=deaf)
    first = await child.start()
    await said(child, "here")
    log.with_name("child.log.1").mkdir()
    bound_log(log, limit=1)
    assert log.stat().st_size == 0
    shutil.rmtree(log.parent)
    child.kill()

    async def again():
        return child.pid not in (None, first)

    assert await becomes_true(again, within=10.0)
    await child.stop()
