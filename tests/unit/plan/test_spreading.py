"""Work in parallel processes: order, progress, errors."""

import os
import time

import pytest

from lorapick.plan.spreading import WorkerDied, cores, spread


def square(number, progress):
    progress(0.5)
    if number < 0:
        raise ValueError(f"{number} has no business here")
    progress(1.0)
    return number * number


def where(number, progress):
    return number, os.getpid()


def test_one_worker_works_here():
    told = []
    assert spread(square, [1, 2], workers=1, progress=told.append) == (1, 4)
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert spread(where, [0], workers=8) == ((0, os.getpid()),)


def test_more_workers_work_elsewhere_and_keep_the_order():
    told = []
    assert spread(square, [3, 2, 1], workers=2, progress=told.append) == (9, 4, 1)
    assert told[-1] == 1.0
    assert all(process != os.getpid() for _, process in spread(where, [1, 2], workers=2))


def test_an_error_comes_back():
    with pytest.raises(ValueError, match="-1 has no business here"):
        spread(square, [1, -1, 2], workers=2)
    with pytest.raises(ValueError, match="-1 has no business here"):
        spread(square, [-1], workers=1)


def dies(number, progress):
    os._exit(9)


def test_a_process_that_dies_is_told():
    with pytest.raises(WorkerDied, match="one of 2 processes ended without an answer"):
        spread(dies, [1, 2], workers=2)


def sleeps_or_fails(number, progress):
    if not number:
        raise ValueError("no")
    time.sleep(60)


def test_nobody_waits_for_the_others_when_one_failed():
    begun = time.monotonic()
    with pytest.raises(ValueError, match="no"):
        spread(sleeps_or_fails, [1, 0], workers=2)
    # Not a measurement: the other one would have slept for a minute.
    assert time.monotonic() - begun < 55


def test_cores_are_counted():
    assert 1 <= cores() <= (os.cpu_count() or 1)
