"""The observer: rows of what happens; a fault of its own is never the picker's."""

from pathlib import Path

import pytest
from live_ledger_kit import Clock, rows, writer

from lorapick.live.ledger.keeper import Ledger
from lorapick.testing.playbook import Playbook


def test_what_happens_is_written(tmp_path: Path) -> None:
    book, made = Playbook(pods=["a"], adapters=["x"]), writer(tmp_path / "ledger.sqlite", Clock())
    ledger = Ledger(made, lambda: book.fleet.changes)
    for verb in (lambda: book.arrive("x"), lambda: book.start("r1"), lambda: book.end("r1", status=200)):
        verb()
        ledger.observe(book.events[-1], book.answers[-1])
    made.turn()
    assert rows(made.path, "SELECT id, adapter, pod, status FROM requests") == [("r1", "x", "a", 200)]
    assert rows(made.path, "SELECT adapter, caused_by, request FROM loads") == [("x", "request", "r1")]


def test_a_fault_ends_the_ledger_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    book, made = Playbook(pods=["a"], adapters=["x"]), writer(tmp_path / "ledger.sqlite", Clock())
    ledger = Ledger(made, lambda: [None])  # type: ignore[list-item]  # what no core gives
    for _ in range(3):
        book.arrive("x")
        ledger.observe(book.events[-1], book.answers[-1])
    assert made.faults() == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
