"""Parquet, read back by DuckDB."""

import sys
from pathlib import Path

import duckdb
import pytest
from live_ledger_kit import OFFSET, load, request, write

from lorapick.live.ledger.export import export
from lorapick.live.ledger.file import LedgerError
from lorapick.model.ledger import MarkKind, MarkRow

ODD = 'a,"b\\N\n\t\u2028é'


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with odd words in it."""
    mark = MarkRow(t=90.0, kind=MarkKind.ALERT, subject="thrash", facts={"pods": "a, b"})
    write(tmp_path / "ledger.sqlite", [request(1, 99.0, model=ODD, prefill=None), request(2, 98.0), load(1), mark])
    return tmp_path / "ledger.sqlite"


def test_every_table_is_a_file(ledger: Path, tmp_path: Path) -> None:
    written = export(ledger, tmp_path / "out")
    assert {place.name: rows for place, rows in written.items()} == {
        "requests.parquet": 2,
        "loads.parquet": 1,
        "residencies.parquet": 0,
        "marks.parquet": 1,
        "occupancy.parquet": 0,
    }
    ask = duckdb.sql
    assert ask(f"SELECT id, model, ended, prefill FROM '{tmp_path}/out/requests.parquet' ORDER BY id").fetchall() == [
        ("r1", ODD, OFFSET + 99.0, None),
        ("r2", "x", OFFSET + 98.0, None),
    ]
    assert ask(f"SELECT * FROM '{tmp_path}/out/residencies.parquet'").fetchall() == []
    assert ask(f"SELECT facts FROM '{tmp_path}/out/marks.parquet'").fetchall() == [('{"pods":"a, b"}',)]


def test_requests_alone(ledger: Path, tmp_path: Path) -> None:
    assert export(ledger, tmp_path / "deep" / "r.parquet") == {tmp_path / "deep" / "r.parquet": 2}


def test_without_duckdb_it_is_said(ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(LedgerError, match=r"pip install 'lorapick\[parquet\]'"):
        export(ledger, tmp_path / "out")


def test_a_place_that_is_none(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        export(ledger, tmp_path / "file")
