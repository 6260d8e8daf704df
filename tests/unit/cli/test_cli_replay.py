"""`lorapick replay`: what it says, its exit codes, and the same bytes under any hash seed."""

import gzip
import json
import os
import subprocess
import sys

import msgspec
import pytest
import typer
import zstandard
from typer.testing import CliRunner

from lorapick.cli.replay import register
from lorapick.live.eventlog import EventLog
from lorapick.model import events
from lorapick.model.requests import Outcome, Request
from lorapick.testing.playbook import Playbook, plain_pod


def run(*arguments):
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def book():
    """A small fleet with every kind of answer."""
    pods = [plain_pod(name, max_num_seqs=1, max_queue=1, max_loras=1) for name in ("a", "b")]
    book = Playbook(pods=pods, adapters=["legal", "code"], seed=1)
    for number in range(31):
        book.now += 0.02
        model = ("legal", "legal", "legal", "legal", "code", "nobody")[number % 6]
        book.apply(events.RequestArrived, request=Request(id=f"r{number}", model=model))
        if number % 6 == 5:
            for flight in [*book.fleet.state.flights.values()][:4]:
                book.apply(events.RequestEnded, request_id=flight.request.id, outcome=Outcome.SERVED, status=200)
    return book


@pytest.fixture
def log(book, tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog(path, settings=book.settings, seed=1) as log:
        for event, answer in zip(book.events, book.answers, strict=True):
            log.record(event, answer)
    return path


def test_no_difference(log, book):
    result = run(log)
    assert (result.exit_code, result.stderr) == (0, "")
    first, last = result.stdout.splitlines()
    assert first.startswith(f"{len(book.events)} events over 0.6 s, ")
    assert all(word in first for word in ("dispatched", "held", "rejected"))
    assert last.startswith("no difference; effects ")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_logs_are_read_too(log, suffix):
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}[suffix]
    packed = log.with_name("events.jsonl" + suffix)
    packed.write_bytes(pack(log.read_bytes()))
    assert run(packed).stdout == run(log).stdout


def test_json(log):
    result = run(log, "--json")
    document = json.loads(result.stdout)
    assert document["same"] is True
    assert set(document["answers"]) == {"dispatch", "hold", "reject"}
    assert document["written_by"] == "0.1.0"
    assert document["difference"] is None


def change(log, kind, **fields):
    """Change the first decision of a kind in the log; the answer as it was, and its line."""
    lines = log.read_bytes().splitlines()
    for number, line in enumerate(lines):
        decided = json.loads(line)
        answers = decided.get("answers", [])
        for answer in answers:
            if answer["kind"] == kind:
                before = dict(answer)
                answer.update(fields)
                lines[number] = json.dumps(decided).encode()
                log.write_bytes(b"\n".join([*lines, b""]))
                return before, number + 1
    raise AssertionError(f"no {kind}")


def test_a_difference_is_printed_and_exits_with_1(log):
    other = {"pod": "z", "fallbacks": ["x", "y"], "model": "m", "prefill": "d", "score": 0.25}
    before, line = change(log, "dispatch", **other)
    result = run(log)
    assert result.exit_code == 1
    where, logged, again, why = result.stdout.splitlines()[-4:]
    assert where == (
        f"first difference at line {line - 1}: event 3, RequestArrived at t=0.020000 request=r0 model=legal"
    )
    assert logged == "  log:    r0 dispatched to z (else x, y, as m, prefilled by d, from disk, score 0.25)"
    there, score = f"{before['pod']} (else {before['fallbacks'][0]}", before["score"]
    assert again == f"  replay: r0 dispatched to {there}, from disk, score {score!r})"
    assert "the same version wrote the log" in why
    found = run(log, "--json")
    document = json.loads(found.stdout)
    assert (found.exit_code, document["same"]) == (1, False)
    assert document["difference"]["logged"]["answers"][0]["pod"] == "z"


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("hold", {"until": 9.0}, "held (held_for_load) until t=9.000000"),
        ("reject", {"status": 499}, "rejected (499 no_pod)"),
    ],
)
def test_other_answers_in_words(log, kind, fields, said):
    change(log, kind, **fields)
    result = run(log)
    assert (result.exit_code, said in result.stdout) == (1, True), result.stdout


def test_failures_and_other_versions_are_said(log):
    lines = log.read_bytes().replace(b'"written_by":"0.1.0"', b'"written_by":"0.0.9"').splitlines()
    at = next(number for number, line in enumerate(lines) if b'"Decided"' in line)
    failed = {"type": "Failed", "id": json.loads(lines[at])["id"], "error": "KeyError", "detail": "x"}
    lines[at] = json.dumps(failed).encode()
    log.write_bytes(b"\n".join([*lines, b""]))
    result = run(log)
    assert result.exit_code == 1
    assert "log:    failed with KeyError: x" in result.stdout
    assert "the log was written by lorapick 0.0.9, this is 0.1.0" in result.stdout


def test_failures_that_happen_again_are_counted(book, log):
    name = next(iter(book.fleet.state.flights))
    number = len(book.events) + 1
    again = events.RequestArrived(t=book.now, id=number, request=Request(id=name, model="legal"))
    failed = {"type": "Failed", "id": number, "error": "ValueError"}
    with log.open("ab") as file:
        file.write(msgspec.json.encode(again) + b"\n" + msgspec.json.encode(failed) + b"\n")
    result = run(log)
    assert result.exit_code == 0, result.stdout
    assert "1 of the events failed in the log, and failed again" in result.stdout


def test_a_log_that_was_cut_off_is_said_and_tolerated(log):
    content = log.read_bytes()
    log.write_bytes(content[:-20])
    result = run(log)
    assert result.exit_code == 0
    lines = len(content.splitlines())
    assert f"line {lines} is cut off: the picker was killed, or its disk full;" in result.stdout


def test_a_log_that_reached_its_limit_is_said(book, tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog(path, settings=book.settings, seed=1, max_bytes=8000) as log:
        for event, answer in zip(book.events, book.answers, strict=True):
            log.record(event, answer)
    result = run(path)
    assert result.exit_code == 0
    recorded = len(book.events) - log.missing
    first = book.events[recorded]
    assert f"{recorded} events over " in result.stdout
    said = f"the log has reached its size limit; what came from event {first.id} at t={first.t:.6f} on is not in it"
    assert said in result.stdout
    assert "no difference" in result.stdout
    assert json.loads(run(path, "--json").stdout)["full"] == {"type": "Full", "id": first.id, "t": first.t}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "events.jsonl is empty; an event log begins with a header"),
        (b"hello\n", "events.jsonl:1: no header of an event log: JSON is malformed"),
        (b'{"version":1}\n', "events.jsonl:1: an event log of format 1; this version reads format 2"),
        (None, "events.jsonl cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_log_exits_with_2(tmp_path, content, said):
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_bytes(content)
    result = run(path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("lorapick replay: ") and said in result.stderr


def test_garbage_in_the_middle_names_its_line(log):
    first, second, third, *rest = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([first, second, b"\0" * 50 + b"\n", third, *rest]))
    result = run(log)
    assert result.exit_code == 2
    assert "events.jsonl:3: no event: JSON is malformed" in result.stderr


def test_other_settings_are_refused(log):
    header, _, rest = log.read_bytes().partition(b"\n")
    other = msgspec.json.decode(header)
    other["settings"]["picking"]["policy"] = "random"
    log.write_bytes(msgspec.json.encode(other) + b"\n" + rest)
    result = run(log)
    assert result.exit_code == 2
    assert "a replay needs the picker's own settings" in result.stderr


def test_the_same_bytes_under_any_hash_seed(log):
    command = [sys.executable, "-m", "lorapick.cli.main", "replay", str(log), "--json"]
    outputs = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=60
        ).stdout
        for seed in ("1", "2")
    }
    (output,) = outputs
    assert json.loads(output)["same"] is True
