"""The event log as a file: it costs no request, and what is older than a second survives a kill."""

import logging
import time
from pathlib import Path

import pytest

from lorapick.live.eventlog import FLUSH_EVERY, EventLog
from lorapick.model import events
from lorapick.model.settings import Settings
from lorapick.plan.datafiles import open_lines
from lorapick.wire.eventlog import LogReader


def tick(number, t):
    return events.Ticked(t=t, id=number)


def ids(path):
    return [step.event.id for step in LogReader(open_lines(path))]


def test_the_header_is_there_at_once_and_the_rest_within_a_second(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("an older log\n" * 99)
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


def fill_disk(log):
    """From now on there is no room for what the log writes."""
    log._file.close()
    log._file = open("/dev/full", "wb")  # noqa: SIM115 - the log closes it


def test_a_full_disk_ends_the_recording_and_nothing_else(caplog):
    with pytest.raises(OSError, match="No space left"):
        EventLog(Path("/dev/full"), settings=Settings(), seed=0)
    with EventLog(Path("/dev/null"), settings=Settings(), seed=0) as log:
        fill_disk(log)
        with caplog.at_level(logging.ERROR):
            for number in range(1, 4):
                log.record(tick(number, float(number)), [])
    assert len(caplog.records) == 1
    assert "event log /dev/null: [Errno 28] No space left on device" in caplog.text
    assert "nothing is recorded from event 1 on" in caplog.text


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


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        EventLog(tmp_path / "none" / "events.jsonl", settings=Settings(), seed=0)
