"""The statements give the same on DuckDB and on SQLite; what is no result of theirs is refused with file and line."""

import csv
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_kit import Request, by_hand, same, write

from lorapick.plan.logs.counting import count_logs
from lorapick.plan.logs.options import LogError, LogOptions
from lorapick.plan.logs.queries import COLUMNS, STATEMENTS, statement
from lorapick.plan.logs.warehouse import read_counted, sql_text


def counted_by_sqlite(requests: Sequence[Request], folder: Path, *, sample: int) -> Path:
    """Results of the very text of the statements."""
    with sqlite3.connect(":memory:") as database:
        database.execute(
            "CREATE TABLE requests (adapter TEXT, time_seconds REAL, prompt_tokens INT, output_tokens INT)"
        )
        rows = [(each.adapter, each.time if each.millis is not None else None, *each[2:]) for each in requests]
        database.executemany("INSERT INTO requests VALUES (?, ?, ?, ?)", rows)
        for name in STATEMENTS:
            found = database.execute(statement(name, sample=sample))
            with (folder / f"{name}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow([column for column, *_ in found.description])
                writer.writerows(found)
    database.close()
    return folder


def some(count: int = 200) -> list[Request]:
    draw = random.Random(3)
    return [
        Request(
            draw.choice(["a", "a", "b", "c", "", None]),
            draw.choice([draw.randrange(8_000_000), draw.randrange(700) * 1000]),
            draw.choice([None, draw.randrange(9)]),
            draw.randrange(5),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("sample", [1, 7, 60, 1000])
def test_a_warehouse_counts_as_files_are_counted(tmp_path, sample):
    requests = [*some(), Request("a", None), Request(None, None)]
    by_files = count_logs([str(write(tmp_path / "log.jsonl", requests))], options=LogOptions(sample=sample))
    by_warehouse = read_counted(counted_by_sqlite(requests, tmp_path, sample=sample))
    files = (*(str(tmp_path / f"{name}.csv") for name in STATEMENTS),)
    assert msgspec.structs.replace(by_files, files=files, columns={}) == by_warehouse


@given(
    requests=st.lists(
        st.builds(
            Request,
            adapter=st.sampled_from(["a", "b", "c,\n\"'", "", None]),
            millis=st.one_of(st.none(), st.integers(0, 5_000), st.integers(0, 9_000_000)),
            prompt=st.one_of(st.none(), st.integers(0, 9)),
            output=st.one_of(st.none(), st.integers(0, 9)),
        ),
        max_size=40,
    ),
    sample=st.integers(1, 9),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sqlite_counts_as_python_does(tmp_path, requests, sample):
    folder = counted_by_sqlite(requests, tmp_path, sample=sample)
    wanted = by_hand(requests, days=30, sample=sample)
    if wanted["adapters"]:
        same(read_counted(folder), wanted)
    else:
        with pytest.raises(LogError, match="no request for an adapter"):
            read_counted(folder)


def test_the_text_says_how_to_use_it():
    text = sql_text(LogOptions(days=12.5, sample=77))
    assert "of the last 13 days" in text and "LEAD(time_seconds, 77)" in text
    assert not [word for word in (":days", ":sample") if word in text]
    for words in (
        "BigQuery",
        "Snowflake",
        "PostgreSQL",
        "ClickHouse",
        "adapters.csv, hours.csv, sample.csv",
        "--counted",
    ):
        assert words in text
    for name, columns in COLUMNS.items():
        last = statement(name, sample=5).rpartition("\nSELECT")[2]
        assert [part.split()[-1].strip(",") for part in last.partition("\nFROM")[0].strip().splitlines()] == [
            *(column for column in columns)
        ]


# -- strictness


@pytest.fixture
def folder(tmp_path):
    return counted_by_sqlite(some(40), tmp_path, sample=5)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, text
    path.write_text(text.replace(old, new, 1))


def test_other_ways_to_write_csv_are_read(folder):
    wanted = read_counted(folder)
    for name in STATEMENTS:
        path = folder / f"{name}.csv"
        with path.open(newline="") as file:
            rows = [*csv.reader(file)]
        nulls = [[value or "NULL" for value in row] if row[0] else row for row in rows[1:]]
        turned = [[column.upper() for column in rows[0]][::-1], *(row[::-1] for row in nulls), []]
        path.write_text("\ufeff" + "\r\n".join(",".join(row) for row in turned), newline="")
    assert read_counted(folder) == wanted


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("adapters", "adapter,", "adaptor,", r"adapters.csv:1: columns are adaptor, .*; should be adapter, req"),
        ("adapters", "\na,", "\nb,", r"adapters.csv:\d: adapter 'b' comes twice"),
        ("adapters", "\na,", "\na,-", r"adapters.csv:2: request_count: '-\d+' is not between 0 and 1e"),
        ("adapters", "\na,", "\na,1", r"adapters.csv:2: squares do not fit|adapters.csv has"),
        ("adapters", "\na,", "\na,0.5,", r"adapters.csv:2: 12 values instead of 11"),
        ("adapters", "\na,", "\n\"a,", r"adapters.csv:\d+: unexpected end of data"),
        ("hours", ",2\n", ",20\n", r"hours.csv:\d: more adapters than requests|hours.csv"),
        ("hours", "\n1", "\n2", r"hours.csv:2: hour_start \S+ is no whole hour|time is not"),
        ("hours", "hour_start", "hour", r"hours.csv:1: columns are hour, "),
        ("sample", "\n1", "\n2", r"sample.csv:2: time is not in the stretch"),
        ("sample", "\n1", "\nx", r"sample.csv:2: time_seconds: could not convert"),
        ("sample", ",a,", ",z,", r"sample.csv: adapter 'z' is not in adapters.csv"),
        ("sample", ",a,", ",,", r"sample.csv:\d: no adapter"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused(folder, name, old, new, words):
    path = folder / f"{name}.csv"
    if name == "hours" and old == ",2\n":
        path.write_text(path.read_text().replace("\r\n", "\n"))
        old = path.read_text().splitlines()[1].rpartition(",")[2] + "\n"
        new = "9" + old
    change(path, old, new)
    with pytest.raises(LogError, match=words):
        read_counted(folder)


def test_a_missing_file_is_named(folder):
    (folder / "hours.csv").unlink()
    with pytest.raises(LogError, match=r"hours.csv: is missing; save the result of the statement 'hours' there"):
        read_counted(folder)


def test_results_of_other_logs_are_refused(folder, tmp_path):
    (tmp_path / "other").mkdir()
    other = counted_by_sqlite(some(30), tmp_path / "other", sample=5)
    (folder / "hours.csv").write_text((other / "hours.csv").read_text())
    with pytest.raises(LogError, match=r"adapters.csv has \d+ requests, hours.csv \d+: they are not of the same logs"):
        read_counted(folder)


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_refused(folder, data):
    name = data.draw(st.sampled_from(STATEMENTS))
    path = folder / f"{name}.csv"
    good = path.read_bytes()
    cells = st.sampled_from(["a", "1", "-1", "1e999", "nan", "", '"', ",", "\n", "0", "\udcff", "\0", "9" * 400, "²"])
    place = data.draw(st.integers(0, len(good)))
    new = "".join(data.draw(st.lists(cells, max_size=5))).encode(errors="surrogateescape")
    path.write_bytes(good[:place] + new + good[place + data.draw(st.integers(0, 3)) :])
    try:
        read_counted(folder)
    except LogError as error:
        told = str(error)
        assert told.startswith(str(folder))
    finally:
        path.write_bytes(good)
