"""The event log as a file: it costs no request, and what is older than a second survives a kill."""

import time
from pathlib import Path

import pytest

from lorapick.live.eventlog import FLUSH_EVERY, EventLog, older
from lorapick.model import events
from lorapick.model.settings import Settings
from lorapick.plan.datafiles import open_lines
from lorapick.wire.eventlog import Full, LogReader


def tick(number, t):
    return events.Ticked(t=t, id=number)


def ids(path):
    return [step.event.id for step in LogReader(open_lines(path))]


def test_the_header_is_there_at_once_and_the_rest_within_a_second(tmp_path):
    path = tmp_path / "events.jsonl"
    before = time.time() - time.monotonic()
    with EventLog(path, settings=Settings(seed=4), seed=4) as log:
        header = LogReader(open_lines(path)).header
        assert (header.settings.seed, header.seed) == (4, 4)
        assert header.epoch == pytest.approx(before, abs=5.0)
        for number, t in enumerate((10.0, 10.5, 10.0 + FLUSH_EVERY - 0.01), start=1):
            log.record(tick(number, t), [])
        assert ids(path) == [1]
        log.record(tick(4, 10.0 + FLUSH_EVERY), [])
        assert ids(path) == [1, 2, 3, 4]
        log.record(tick(5, 11.1), [])
    assert ids(path) == [1, 2, 3, 4, 5]
    log.close()
    log.record(tick(6, 12.0), [])
    assert ids(path) == [1, 2, 3, 4, 5]


def test_the_log_before_is_kept_once(tmp_path):
    path = tmp_path / "events.jsonl"
    for seed in (1, 2, 3):
        with EventLog(path, settings=Settings(), seed=seed):
            pass
    assert [LogReader(open_lines(each)).header.seed for each in (path, older(path))] == [3, 2]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.jsonl", "events.jsonl.1"]


# -- where nothing can be written


def fill_disk(log):
    """From now on there is no room for what the log writes."""
    log._file.close()
    log._file = open("/dev/full", "wb")  # noqa: SIM115 - the log closes it


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("/dev/full", "No space left on device"),
        ("none/events.jsonl", "No such file or directory"),
        ("file/events.jsonl", "Not a directory"),
        (".", "Is a directory"),
    ],
)
def test_a_log_that_cannot_begin_is_said_once_and_counted(tmp_path, caplog, place, why):
    (tmp_path / "file").touch()
    lost = []
    with EventLog(tmp_path / place, settings=Settings(), seed=0, on_lost=lambda: lost.append(1)) as log:
        for number in range(1, 4):
            log.record(tick(number, float(number)), [])
    assert (len(lost), log.missing) == (3, 3)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert f"event log {tmp_path / place}: {why}; nothing is recorded" in caplog.text
    assert caplog.messages[-1].endswith(": 3 events are not in it")


def test_a_full_disk_ends_the_recording_and_nothing_else(caplog):
    lost = []
    with EventLog(Path("/dev/null"), settings=Settings(), seed=0, on_lost=lambda: lost.append(1)) as log:
        log.record(tick(1, 1.0), [])
        fill_disk(log)
        for number in range(2, 5):
            log.record(tick(number, float(number)), [])
    assert (len(lost), log.missing) == (3, 3)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "event log /dev/null: No space left on device; nothing is recorded from event 2 on" in caplog.text
    assert caplog.messages[-1] == "event log /dev/null: 3 events are not in it"


def test_a_disk_that_is_full_at_the_end_is_said(caplog):
    with EventLog(Path("/dev/null"), settings=Settings(), seed=0) as log:
        fill_disk(log)
        log._flush_at = 9.0
        log.record(tick(1, 1.0), [])
    assert "No space left on device; its end is missing" in caplog.text


def test_an_event_that_cannot_be_written_ends_the_recording(tmp_path, caplog):
    path = tmp_path / "events.jsonl"
    with EventLog(path, settings=Settings(), seed=0) as log:
        log.record(tick(1, 1.0), [])
        log.record(events.PodGone(t=2.0, id=2, pod="\ud800"), [])
        log.record(tick(3, 3.0), [])
    assert ids(path) == [1]
    assert "nothing is recorded from event 2 on" in caplog.text


# -- the limit


@pytest.mark.parametrize("most", [5000, 6000, 6001, 6500])
def test_a_log_at_its_limit_ends_with_a_line_that_says_so(tmp_path, caplog, most):
    path = tmp_path / "events.jsonl"
    lost = []
    with EventLog(path, settings=Settings(), seed=0, max_bytes=most, on_lost=lambda: lost.append(1)) as log:
        for number in range(1, 100):
            log.record(tick(number, number / 10), [])
    reader = LogReader(open_lines(path))
    found = [step.event.id for step in reader]
    assert reader.full == Full(id=found[-1] + 1, t=(found[-1] + 1) / 10)
    assert found == [*range(1, 100 - log.missing)]
    assert most - 200 < path.stat().st_size <= most
    assert lost == []
    assert f"has reached its limit; nothing is recorded from event {reader.full.id} on" in caplog.messages[0]
    assert caplog.messages[1:] == [f"event log {path}: {log.missing} events are not in it"]


def test_a_limit_below_the_header_leaves_the_header_and_the_last_line(tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog(path, settings=Settings(), seed=0, max_bytes=1) as log:
        log.record(tick(1, 1.0), [])
        log.record(tick(2, 2.0), [])
    reader = LogReader(open_lines(path))
    assert (list(reader), reader.full) == ([], Full(id=1, t=1.0))
