"""Damaged logs end in a LogError with file and line, or are left out where that was asked for; never in DuckDB's."""

import gzip
import json
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_kit import WHEN, Request, write

from lorapick.plan.logs.counting import count_logs
from lorapick.plan.logs.options import LogError, LogOptions
from lorapick.plan.logs.values import LogSummary

GOOD = b'{"lora": "a", "ts": 5}\n{"lora": "b", "ts": 6}\n'
SKIP = LogOptions(skip_damaged=True)
SUFFIXES = [".json", ".jsonl.gz", ".ndjson.zst", ".csv", ".tsv", ".csv.gz", ".parquet"]


@pytest.mark.parametrize(
    ("damage", "line"),
    [(b'{"lora": "c", "ts"\n', 3), (b"no JSON\n", 3), (b'{"lora": "\xff", "ts": 7}\n', 3), (b'{"lora": "c', 3)],
)
def test_a_damaged_line_of_json_is_named_or_left_out(tmp_path, damage, line):
    log = tmp_path / "log.json"
    log.write_bytes(GOOD + damage + (GOOD if damage.endswith(b"\n") else b""))
    with pytest.raises(LogError, match=rf"^{log}:{line}: at byte \d+ no JSON.*; --skip-damaged leaves out"):
        count_logs([str(log)])
    summary = count_logs([str(log)], options=SKIP)
    assert summary.requests == (4 if damage.endswith(b"\n") else 2)
    assert (summary.damaged, summary.without_time, summary.skipped) == (1, 0, ())


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("log.jsonl", b'{"lora": "a", "ts": 5}\n\n\nno JSON\n', r":4: at byte 1"),
        ("log.jsonl", b'no JSON\n{"lora": "a", "ts": 5}\n', r":1: at byte 1"),
        ("log.jsonl.gz", gzip.compress(b'{"lora": "a", "ts": 5}\nno JSON\n', mtime=0), r":2: at byte 1"),
        ("log.json", b'[{"lora": "a", "ts": 5}, {"lora": }]', r": document 2 of the array: at byte"),
    ],
)
def test_the_line_that_is_named_is_the_damaged_one(tmp_path, name, content, place):
    log = tmp_path / name
    log.write_bytes(content)
    with pytest.raises(LogError, match=rf"^{log}{place}.*--skip-damaged"):
        count_logs([str(log)])


@pytest.mark.parametrize("damage", [b"c,7,8\n", b"c\n", b'"c,7\n', b"\xff,7\n"])
def test_a_damaged_line_of_csv_is_named_or_left_out(tmp_path, damage):
    log = tmp_path / "log.csv"
    log.write_bytes(b"lora,ts\na,5\nb,6\n" + damage)
    with pytest.raises(LogError, match=rf"^{log}:4: "):
        count_logs([str(log)])
    summary = count_logs([str(log)], options=SKIP)
    assert (summary.requests, summary.damaged, summary.skipped) == (2, 1, ())


@pytest.mark.parametrize("suffix", [".json.gz", ".json.zst", ".parquet"])
def test_a_file_that_is_cut_off_is_named_or_left_out(tmp_path, suffix):
    requests = [Request(f"adapter-{n % 50}", 997 * n, n % 90, n * n % 101) for n in range(5000)]
    plain = (tmp_path / "plain.jsonl", tmp_path / "plain.parquet")[suffix == ".parquet"]
    content = write(plain, requests).read_bytes()
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    packed = {".json.gz": gzip.compress, ".json.zst": zstandard.compress}.get(suffix, bytes)(content)
    plain.unlink()
    whole.write_bytes(packed)
    cut.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(LogError, match=f"^{cut}"):
        count_logs([str(tmp_path)])
    summary = count_logs([str(tmp_path)], options=SKIP)
    assert summary.skipped == (str(cut),) and summary.requests == 5000


def test_a_zstandard_file_that_ends_with_a_line_is_still_cut_off(tmp_path):
    log = tmp_path / "log.json.zst"
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    begin = packer.compress(GOOD) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    frame = begin + packer.compress(GOOD) + packer.flush()
    skippable = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    log.write_bytes(frame + skippable + frame + zstandard.compress(b"\n" * 100_000))
    assert count_logs([str(log)]).requests == 8
    log.write_bytes(begin)
    with pytest.raises(LogError, match=r"log.json.zst is damaged or no .zst file: it is cut off"):
        count_logs([str(log)])
    log.write_bytes(frame[:-1])
    with pytest.raises(LogError, match=r"log.json.zst is damaged or no .zst file: it is cut off"):
        count_logs([str(log)])


def test_a_name_that_is_no_text_is_refused(tmp_path):
    log = write(tmp_path / "log.parquet", [Request("a", 5)])
    log.write_bytes(log.read_bytes().replace(b"adapter_name", b"adapter_n\xff\xffe"))
    with pytest.raises(LogError, match=rf"^{log}: a text that is no UTF-8"):
        count_logs([str(log)])


def test_without_duckdb_it_is_said(tmp_path, monkeypatch):
    (tmp_path / "log.json").write_bytes(GOOD)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(LogError, match=r"pip install 'lorapick\[logs\]'"):
        count_logs([str(tmp_path / "log.json")])


# -- anything


def rows(draw: st.DrawFn) -> bytes:
    """Lines of JSON with values of any kind."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["ts", "a.b", "~/"]), inner, max_size=2)
        ),
        max_leaves=4,
    )
    row = st.dictionaries(st.sampled_from(["adapter", "ts", "usage", "prompt_tokens", "model"]), anything)
    return "\n".join(json.dumps(each) for each in draw(st.lists(row, max_size=6))).encode()


def table(draw: st.DrawFn) -> bytes:
    """Lines of CSV."""
    cells = st.sampled_from(["adapter", "ts", '"', "a", "5", ",", ",", "\n", "\n", "\r", "\t", "'", "\0", "ä", "1e999"])
    return ("adapter,ts\n" * draw(st.booleans()) + "".join(draw(st.lists(cells, max_size=30)))).encode()


def outcome(log: Path, options: LogOptions) -> LogSummary | str:
    """The summary, or why there is none."""
    try:
        return count_logs([str(log)], options=options)
    except LogError as error:
        return str(error)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from([rows, rows, table, table, lambda draw: draw(st.binary(max_size=80))]))
    content = kind(draw)
    packing = draw(st.sampled_from([bytes, bytes, gzip.compress, zstandard.compress]))
    return packing(content)[: draw(st.sampled_from([None, None, None, 3, 20]))]


@given(content=contents(), suffix=st.sampled_from(SUFFIXES), skip=st.booleans())
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_file_is_counted_or_refused(tmp_path, content, suffix, skip):
    log = tmp_path / f"log{suffix}"
    log.write_bytes(content)
    told = outcome(log, LogOptions(skip_damaged=skip))
    log.unlink()
    if isinstance(told, str):
        assert told.strip() and len(told) < 5000
    else:
        assert told.requests > 0 and sum(hour.requests for hour in told.hours) == told.requests
        assert all(0 <= each.at < told.sample.length for each in told.sample.arrivals)


@given(data=st.data(), suffix=st.sampled_from([".parquet", ".csv", ".jsonl"]))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changed_byte_is_counted_or_refused(tmp_path, data, suffix):
    log = tmp_path / f"log{suffix}"
    good = tmp_path / "good" / log.name
    if not good.exists():
        good.parent.mkdir(exist_ok=True)
        write(good, [Request("ab"[n % 2], 60_000 * n, n, n) for n in range(20)])
    content = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    log.write_bytes(content[: data.draw(st.sampled_from([None, None, len(content) // 2]))])
    told = outcome(log, LogOptions(time=WHEN[suffix]))
    assert told.strip() if isinstance(told, str) else told.requests > 0
