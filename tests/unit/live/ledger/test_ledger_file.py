"""The file: what is no ledger is left alone, a damaged one is kept, and the log beside it is bounded."""

from pathlib import Path

import pytest
from live_ledger_kit import query, request, rows, write

from lorapick.live.ledger import file as file_module
from lorapick.live.ledger.file import MOST_DAMAGED, LedgerError, open_to_read


def spoil(path: Path) -> bytes:
    """Damage a ledger behind its header."""
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"?" * (len(whole) - 100))
    return path.read_bytes()


def test_a_damaged_ledger_is_moved_aside_and_those_before_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ledger.sqlite"
    spoiled = []
    for number in range(MOST_DAMAGED + 1):
        write(path, [request(number, 99.0)]).close()
        spoiled.append(spoil(path))
        made = write(path, [request(number, 99.0)])
        if number < MOST_DAMAGED:
            assert made.failures == 1
            made.turn()
            assert rows(path, "SELECT count(*) FROM requests") == [(1,)]
        made.close()
    assert path.with_name("ledger.sqlite.damaged").read_bytes() == spoiled[0]
    assert path.with_name("ledger.sqlite.damaged-2").read_bytes() == spoiled[1]
    assert path.read_bytes() == spoiled[-1]
    assert "moved to ledger.sqlite.damaged-5, and begun anew" in caplog.text
    assert "5 damaged ones are kept beside it already; remove some" in caplog.text


@pytest.mark.parametrize("content", [b"important: file\n" * 200, b"hi", b"SQLite format 3\0" + b"important" * 500])
def test_what_is_no_ledger_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    path = tmp_path / "important.yaml"
    path.write_bytes(content)
    made = write(path, [request(1, 99.0)])
    made.turn()
    made.close()
    assert path.read_bytes() == content
    assert not [*tmp_path.glob("*.damaged*")]
    assert (made.written, made.failures) == (0, 2)
    told = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 1 and "is left alone; name another file in ledger.path" in told[0].message


def test_a_ledger_that_lacks_a_table_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "ledger.sqlite"
    for spoil_by in ("DROP TABLE occupancy", "ALTER TABLE requests DROP COLUMN drain_most"):
        write(path, [request(1, 99.0)]).close()
        with query(path) as ask:
            ask(spoil_by)
        with pytest.raises(LedgerError, match=r"lacks .*; move it away"):
            open_to_read(path)
        made = write(path, [request(2, 99.0)])
        made.turn()
        made.close()
    assert rows(path, "SELECT id FROM requests") == [("r2",)]
    assert "lacks table occupancy" in caplog.text
    assert "lacks column requests.drain_most" in caplog.text


def test_a_place_for_no_file_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for path in (Path("/"), tmp_path):
        made = write(path, [request(1, 99.0)])
        assert (made.failures, made.lost) == (1, 0)
        assert f"{path} is a directory; name a file in ledger.path" in caplog.text
    assert not [*tmp_path.iterdir()]


def test_the_log_is_bounded_while_somebody_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_module, "WAL_LIMIT", 2**18)
    path, log = tmp_path / "ledger.sqlite", tmp_path / "ledger.sqlite-wal"
    made = write(path, [request(1, 99.0)])
    with query(path) as ask:
        ask("BEGIN")
        ask("SELECT count(*) FROM requests")
        for number in range(40):
            made.put([request(number, 99.0, model="m" * 500) for _ in range(100)])
            made.turn()
            assert log.stat().st_size < 2**19
        assert made.failures > 10
        assert "because another program reads the ledger; end it" in caplog.text
    made.turn()
    assert rows(path, "SELECT count(*) FROM requests") == [(4001,)]
    made.put([request(1, 99.0)])
    made.turn()
    assert made.lost == 0
    assert log.stat().st_size < 2**19
