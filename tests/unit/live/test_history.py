"""The store of demand: what is kept comes back, whatever happens to the file, the disk or the process."""

import random
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorapick.live.history import HistoryStore
from lorapick.model.placement import DemandBin

BIN = 300.0


def demand(adapter, count, *, number=0):
    return DemandBin(start=number * BIN, adapter=adapter, count=count)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "demand.sqlite"


def kept(path, *hand_overs, **bounds):
    """What a picker started later finds."""
    store = HistoryStore(path, **bounds)
    for bins in hand_overs:
        store.keep(bins)
    store.close()
    return HistoryStore(path).load()


def test_a_file_that_is_not_there_holds_nothing(path):
    store = HistoryStore(path)
    assert store.load() == ()
    store.keep([])
    assert store.flush()
    store.close()
    assert not path.exists()


def test_bins_come_back_in_order_of_time(path):
    late, early = demand("b", 70_000, number=2), demand("a", 1, number=1)
    assert kept(path, [late], [early]) == (early, late)


def test_a_bin_that_is_kept_again_has_its_last_total(path):
    assert kept(path, [demand("a", 3)], [demand("a", 5), demand("b", 1)]) == (demand("a", 5), demand("b", 1))


def test_names_and_times_that_cannot_be_stored_are_left_out(path):
    wild = DemandBin(start=2.0**60, adapter="a", count=1)
    assert kept(path, [demand("\ud800", 1), wild, demand("'; DROP TABLE demand", 2), demand("a\0b", 1)]) == (
        demand("'; DROP TABLE demand", 2),
        demand("a\0b", 1),
    )


def test_only_so_many_bins_are_kept(path):
    bins = [demand(name, 1, number=number) for number in range(10) for name in "ab"]
    assert kept(path, bins, most_bins=3) == tuple(bins[-6:])


def test_only_so_many_rows_are_kept_in_whole_bins(path):
    bins = [demand(name, 1, number=number) for number in range(10) for name in "ab"]
    assert kept(path, bins, most_rows=5) == tuple(bins[-4:])


def test_who_is_forgotten_leaves_no_name_behind(path):
    kept(path, [demand("old", 1), demand("new", 1, number=1)], most_bins=1)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT name FROM adapters").fetchall() == [("new",)]


def test_the_file_shrinks_when_much_is_forgotten(path):
    bins = [demand(f"adapter-{name}", 1, number=number) for number in range(40) for name in range(500)]
    kept(path, bins)
    before = path.stat().st_size
    assert len(kept(path, [demand("new", 1, number=50)], most_bins=1)) == 1
    assert path.stat().st_size < before / 4


@pytest.mark.parametrize("content", [b"no database at all, but long enough to have a header" * 99, b"\0" * 9_000])
def test_a_file_that_is_no_database_is_moved_aside(path, content, caplog):
    path.parent.mkdir()
    path.write_bytes(content)
    store = HistoryStore(path)
    assert store.load() == ()
    assert "is damaged; moved to demand.sqlite.damaged" in caplog.text
    assert path.with_name("demand.sqlite.damaged").read_bytes() == content
    store.close()
    assert kept(path, [demand("a", 1)]) == (demand("a", 1),)


def test_a_file_damaged_within_is_moved_aside(path, caplog):
    kept(path, [demand(f"adapter-{name}", 1, number=number) for number in range(40) for name in range(100)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    assert HistoryStore(path).load() == ()
    assert "is damaged" in caplog.text
    assert kept(path, [demand("a", 1)]) == (demand("a", 1),)


def test_damage_found_while_writing_loses_nothing_that_comes(path, caplog):
    store = HistoryStore(path)
    store.keep([demand("a", 1)])
    store.flush()
    path.write_bytes(b"scribbled over" * 999)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    store.keep([demand("b", 2, number=1)])
    assert not store.flush()
    store.keep([demand("c", 3, number=2)])
    assert store.flush()
    store.close()
    assert HistoryStore(path).load() == (demand("b", 2, number=1), demand("c", 3, number=2))


def test_a_database_of_another_program_is_left_alone(path, caplog):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE theirs (value)")
    before = path.read_bytes()
    assert kept(path, [demand("a", 1)]) == ()
    assert "is a database of another program; name another file" in caplog.text
    assert path.read_bytes() == before


def test_a_file_of_a_later_format_is_left_alone(path, caplog):
    kept(path, [demand("a", 1)])
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 2")
    assert HistoryStore(path).load() == ()
    assert "has format 2 and this program reads 1" in caplog.text


def test_a_file_in_no_directory_is_said_once_and_costs_nothing(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = HistoryStore(blocked / "demand.sqlite")
    for number in range(3):
        store.keep([demand("a", 1, number=number)])
        assert not store.flush()
    store.close()
    assert caplog.text.count("what is not written is tried again") == 1
    blocked.unlink()
    store.keep([demand("a", 1, number=3)])
    store.close()
    assert "is written again" in caplog.text or len(HistoryStore(blocked / "demand.sqlite").load()) == 4
    assert len(HistoryStore(blocked / "demand.sqlite").load()) == 4


def test_a_locked_file_delays_nobody_and_is_written_later(path, monkeypatch):
    monkeypatch.setattr("lorapick.live.history._BUSY", 0.01)
    kept(path, [demand("a", 1)])
    store = HistoryStore(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        store.keep([demand("b", 1)])
        assert not store.flush()
        other.execute("COMMIT")
    store.keep([demand("c", 1)])
    assert store.flush()
    store.close()
    assert HistoryStore(path).load() == (demand("a", 1), demand("b", 1), demand("c", 1))


def test_a_disk_that_hangs_holds_nobody_up(path, monkeypatch, caplog):
    """Hand-overs wait, as many as there is room for; then they are lost, and that is said."""
    go_on = threading.Event()
    store = HistoryStore(path)
    connect = store._connect
    monkeypatch.setattr(store, "_connect", lambda: go_on.wait(20) and connect())
    for number in range(103):
        store.keep([demand("a", 1, number=number)])
    assert "the disk is too slow; 1 bins are lost" in caplog.text
    assert not store.flush(timeout=0.01)
    go_on.set()
    while not store.flush():
        pass
    store.close()
    assert len(HistoryStore(path).load()) >= 100


HAND_OVERS = st.lists(
    st.dictionaries(st.tuples(st.integers(0, 5), st.text(max_size=5)), st.integers(1, 2**32 - 1), max_size=8),
    max_size=6,
)


@given(HAND_OVERS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_handed_over_comes_back(tmp_path_factory, hand_overs):
    path = tmp_path_factory.mktemp("demand") / "demand.sqlite"
    bins = [[demand(name, count, number=number) for (number, name), count in each.items()] for each in hand_overs]
    last = {key: count for each in hand_overs for key, count in each.items()}
    found = {(int(each.start / BIN), each.adapter): each.count for each in kept(path, *bins)}
    assert found == last


WRITER = """
import sys
from pathlib import Path
from lorapick.live.history import HistoryStore
from lorapick.model.placement import DemandBin

store = HistoryStore(Path(sys.argv[1]), most_bins=10**9)
begin = len({each.start for each in store.load()})
for number in range(begin, 10**6):
    store.keep([DemandBin(start=number * 300.0, adapter=f"adapter-{name}", count=number + 1) for name in range(50)])
    if store.flush():
        print(number, flush=True)
"""


def test_a_killed_process_leaves_every_hand_over_whole(path):
    """SIGKILL at any moment, four times: what was acknowledged is there, and nothing is there in part."""
    rng = random.Random(7)
    acknowledged = -1
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(rng.randrange(2, 12)):
                acknowledged = int(writer.stdout.readline())
            threading.Event().wait(rng.random() * 0.01)
            writer.kill()
        by_bin = {}
        for each in HistoryStore(path).load():
            by_bin.setdefault(int(each.start / BIN), []).append(each.count)
        assert list(by_bin) == list(range(len(by_bin)))
        assert len(by_bin) > acknowledged
        assert all(counts == 50 * [number + 1] for number, counts in by_bin.items())
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
