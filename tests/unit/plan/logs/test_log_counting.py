"""Counting equals a plain count in Python, in every format; times and columns are found as people write them."""

import gzip
import json
import signal
import tempfile
import threading
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from log_kit import BEGIN, WHEN, Request, by_hand, same, write

from lorapick.live.ledger.schema import REQUESTS
from lorapick.plan.logs import counting, names
from lorapick.plan.logs.counting import count_logs
from lorapick.plan.logs.database import opened
from lorapick.plan.logs.found import find_files
from lorapick.plan.logs.options import LogError, LogOptions

NAMES = st.sampled_from(["a", "b", "code-review", "ä'\"", "x,y;z", "base", " padded ", "two\nlines", "NULL", "%_*?["])
MILLIS = st.one_of(
    st.integers(0, 3_000), st.integers(500_000, 9_000_000), st.sampled_from([0, 1000, 600_000, 4_199_999])
)
ASKED = st.builds(
    Request,
    adapter=st.one_of(st.none(), NAMES, NAMES, NAMES),
    millis=st.one_of(MILLIS, MILLIS, MILLIS, st.none()),
    prompt=st.one_of(st.none(), st.integers(0, 9)),
    output=st.one_of(st.none(), st.integers(0, 100_000)),
)
FORMATS = [".csv", ".jsonl", ".parquet"]


CASE = {
    "requests": st.lists(ASKED, min_size=1, max_size=40),
    "days": st.sampled_from([1 / 24, 0.1, 30.0]),
    "sample": st.integers(1, 12),
    "rows_at_once": st.sampled_from([3, 1000]),
}


@pytest.mark.parametrize("suffix", FORMATS)
@given(**CASE)
@settings(max_examples=6)
def test_counts_as_python_does(suffix, requests, days, sample, rows_at_once):
    compare(suffix, requests, days=days, sample=sample, rows_at_once=rows_at_once)


@pytest.mark.twin
@pytest.mark.parametrize("suffix", FORMATS)
@given(**CASE)
@settings(max_examples=100)
def test_counts_as_python_does_in_many_cases(suffix, requests, days, sample, rows_at_once):
    compare(suffix, requests, days=days, sample=sample, rows_at_once=rows_at_once)


def compare(suffix, requests, *, days, sample, rows_at_once):
    wanted = by_hand(requests, days=days, sample=sample, base=["base"])
    options = LogOptions(days=days, sample=sample, base=("base",), time=WHEN[suffix])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "ROWS_AT_ONCE", rows_at_once)
        path = write(Path(folder) / f"requests{suffix}", requests)
        if wanted["adapters"]:
            same(count_logs([str(path)], options=options), wanted)
        else:
            with pytest.raises(LogError):
                count_logs([str(path)], options=options)


def lines(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


# -- times


def test_times_are_read_as_they_are_written(tmp_path):
    written = {
        12.5: 12.5,
        1_780_000_000: 1_780_000_000.0,
        1_780_000_000.25: 1_780_000_000.25,
        "1780000000.25": 1_780_000_000.25,
        1_780_000_000_250: 1_780_000_000.25,
        1_780_000_000_250_000: 1_780_000_000.25,
        1_780_000_000_250_000_000: 1_780_000_000.25,
        "2026-05-28T20:26:40Z": 1_780_000_000.0,
        "2026-05-28 20:26:40.25": 1_780_000_000.25,
        "2026-05-28 20:26:40.2500000": 1_780_000_000.25,
        "2026-05-28T22:26:40+02:00": 1_780_000_000.0,
        "2026-05-28 22:26:40 Europe/Berlin": 1_780_000_000.0,
        "28/May/2026:22:26:40 +0200": 1_780_000_000.0,
    }
    log = lines(tmp_path / "log.json", *({"adapter": repr(each), "time": each} for each in written))
    summary = count_logs([log], options=LogOptions(days=36_500))
    assert {each.adapter: each.first for each in summary.adapters} == {repr(key): at for key, at in written.items()}


def test_what_is_no_time_is_counted(tmp_path):
    wrong = [None, "", "soon", "nan", "infinity", -5, 1e300, "290000-01-01", True, {"a": 1}]
    rows = [{"adapter": "a", "time": time} for time in [1000, *wrong]]
    summary = count_logs([lines(tmp_path / "log.json", *rows)])
    assert (summary.requests, summary.without_time) == (1, len(wrong))


def test_a_column_without_any_time_is_refused_by_name(tmp_path):
    log = lines(tmp_path / "log.json", {"adapter": "a", "time": "noon", "clock": 3})
    with pytest.raises(
        LogError, match=r"log.json: column 'time' holds no times, but 'noon', .*--time-column.*: adapter, clock"
    ):
        count_logs([log])
    assert count_logs([log], options=LogOptions(time="clock")).start == 3.0


# -- columns


def test_nested_columns_have_dotted_names(tmp_path):
    row = {"request": {"Model": "a"}, "created.at": 5, "usage": {"prompt_tokens": 7, "completion_tokens": 8}}
    summary = count_logs([lines(tmp_path / "log.json", row)], options=LogOptions(time="created.at"))
    assert summary.columns == {
        "adapter": "request.Model",
        "time": "created.at",
        "prompt_tokens": "usage.prompt_tokens",
        "output_tokens": "usage.completion_tokens",
    }
    assert (summary.adapters[0].prompt_tokens, summary.adapters[0].output_tokens) == (7.0, 8.0)


def test_structures_of_parquet_have_dotted_names(tmp_path):
    import duckdb

    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT {'lora': 'a', 'odd \"name': {'in': 3}} AS request, TIMESTAMP '1970-01-01 00:00:09' AS ts, "
            f"[1] AS list) TO '{tmp_path}/log.parquet'"
        )
    options = LogOptions(prompt_tokens='request.odd "name.in')
    summary = count_logs([str(tmp_path / "log.parquet")], options=options)
    assert summary.columns == {"adapter": "request.lora", "time": "ts", "prompt_tokens": 'request.odd "name.in'}
    assert (summary.start, summary.adapters[0].prompt_tokens) == (9.0, 3.0)


def test_a_missing_column_lists_those_there_are(tmp_path):
    log = lines(tmp_path / "log.json", {"adaptor": "a", "wen": 3})
    with pytest.raises(LogError, match=r"no column that looks like adapters: it has adaptor, wen; .*--adapter-column"):
        count_logs([log])
    with pytest.raises(LogError, match=r"no column 'adapter_' \(--adapter-column\): .*; is it adaptor\?"):
        count_logs([log], options=LogOptions(adapter="adapter_"))
    with pytest.raises(LogError, match=r"looks like times: it has adaptor, wen; .*--time-column"):
        count_logs([log], options=LogOptions(adapter="ADAPTOR"))


def test_a_model_is_no_adapter_where_adapters_are_named(tmp_path):
    one = lines(tmp_path / "1.json", {"adapter": "a", "model": "m", "ts": 5})
    other = lines(tmp_path / "2.json", {"model": "m", "ts": 6})
    summary = count_logs([one, other])
    assert ([each.adapter for each in summary.adapters], summary.without_adapter) == (["a"], 1)
    assert [each.adapter for each in count_logs([other]).adapters] == ["m"]
    (tmp_path / "3.csv").write_text("model,ts\nm,6\n")
    with pytest.raises(LogError, match=r"3.csv: no column that looks like adapters: it has model, ts"):
        count_logs([one, str(tmp_path / "3.csv")])


def test_tokens_that_make_no_sense_are_unknown(tmp_path):
    tokens = [10, "20", 29.6, -1, "many", 1e12, None, [3]]
    rows = [{"adapter": "a", "ts": 5, "input_tokens": each} for each in tokens]
    assert count_logs([lines(tmp_path / "log.json", *rows)]).adapters[0].prompt_tokens == 20.0


def test_columns_of_the_ledger_are_known():
    known = (names.ADAPTER, names.TIME, names.PROMPT_TOKENS, names.OUTPUT_TOKENS)
    found = [names.guess(REQUESTS.columns, candidates) for candidates in known]
    assert found == ["adapter", "arrived", "prompt_tokens", "output_tokens"]


def test_attributes_of_opentelemetry_are_known(tmp_path):
    row = {"gen_ai.response.model": "m", "gen_ai.request.model": "a", "timestamp": 5, "gen_ai.usage.input_tokens": 7}
    summary = count_logs([lines(tmp_path / "log.json", row)])
    assert summary.columns["adapter"] == "gen_ai.request.model"
    assert summary.adapters[0].prompt_tokens == 7.0


def test_public_traces_are_read_as_they_are(tmp_path):
    (tmp_path / "burst.csv").write_text(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
    )
    summary = count_logs([str(tmp_path / "burst.csv")])
    assert summary.columns == {
        "adapter": "Model",
        "time": "Timestamp",
        "prompt_tokens": "Request tokens",
        "output_tokens": "Response tokens",
    }
    (tmp_path / "azure.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
    with pytest.raises(LogError, match="no column that looks like adapters"):
        count_logs([str(tmp_path / "azure.csv")])


# -- files


def test_formats_are_counted_together(tmp_path):
    requests = [Request("ab"[n % 2], 40_000 * n, n % 7, n) for n in range(300)]
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "deep" / "head.csv").write_text("adapter,time\n")
    write(tmp_path / "1.jsonl", requests[:50])
    packed = write(tmp_path / "deep" / "2.jsonl", requests[50:100])
    packed.with_suffix(".jsonl.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    write(tmp_path / "deep" / "er" / "3.parquet", requests[200:])
    packed = tmp_path / "4.jsonl"
    write(packed, requests[100:200])
    packed.with_suffix(".json.zst").write_bytes(zstandard.compress(packed.read_bytes()))
    packed.unlink()
    told: list[float] = []
    summary = count_logs(
        [str(tmp_path), str(tmp_path / "*.jsonl")], options=LogOptions(sample=50), progress=told.append
    )
    same(summary, by_hand(requests, days=30, sample=50))
    assert len(summary.files) == 6
    assert told == sorted(told) and told[-1] == 1.0


def test_odd_names_are_only_names(tmp_path):
    odd = tmp_path / "it's [1] *"
    odd.mkdir()
    log = odd / "a'; DROP TABLE staged; --?\".json"
    lines(log, {"adapter": "'; DROP TABLE staged; --", "ts": 5})
    lines(tmp_path / "it's 1 x.json", {"adapter": "other", "ts": 5})
    for pattern in (log, odd):
        summary = count_logs([str(pattern)], options=LogOptions(base=("it's", '"')))
        assert [each.adapter for each in summary.adapters] == ["'; DROP TABLE staged; --"]


def test_documents_in_an_array_are_rows(tmp_path):
    (tmp_path / "log.json").write_text(json.dumps([{"lora": "a", "ts": 5}, {"lora": "b", "ts": 6}], indent=1))
    assert count_logs([str(tmp_path / "log.json")]).requests == 2


def test_what_cannot_be_found_is_said(tmp_path):
    (tmp_path / "notes.txt").touch()
    for pattern, words in [
        ("nowhere.csv", "nowhere.csv: there is no such file"),
        ("nowhere/*.csv", r"matches no log: .json"),
        ("s3://bucket/*.parquet", r"only files of this machine are read: .*--sql"),
        ("notes.txt", "its name does not say its format"),
        ("", "there is no log below it"),
    ]:
        with pytest.raises(LogError, match=words):
            count_logs([pattern if "://" in pattern else str(tmp_path / pattern)])
    with pytest.raises(LogError, match="no logs are named"):
        count_logs([])


def test_nothing_to_count_is_said(tmp_path):
    (tmp_path / "empty.json").touch()
    with pytest.raises(LogError, match=r"empty.json: no rows"):
        count_logs([str(tmp_path / "empty.json")])
    log = lines(tmp_path / "base.json", {"adapter": "", "time": BEGIN}, {"adapter": "m", "time": BEGIN})
    with pytest.raises(LogError, match="no request for an adapter: 2 are for the base model"):
        count_logs([log], options=LogOptions(base=("m",)))


def test_an_interrupt_ends_counting_and_leaves_nothing(tmp_path):
    requests = [Request("ab"[n % 2], n) for n in range(5)]
    files = [find_files([str(write(tmp_path / "log.jsonl", requests))])[0]]
    folders: list[Path] = []

    def interrupted() -> None:
        with opened(files, options=LogOptions()) as database:
            folders.append(Path(database.run("SELECT current_setting('temp_directory')")[0][0]).parent)
            assert folders[0].is_dir()
            threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
            for _ in range(1000):  # however fast the machine is
                database.run(
                    "CREATE OR REPLACE TABLE long AS SELECT * FROM range(9000000) AS m(n) WHERE hash(n) % 7 = 3"
                )

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not folders[0].exists()


def test_names_of_requests_are_no_adapters(tmp_path, monkeypatch):
    monkeypatch.setattr("lorapick.plan.logs.results.MOST_ADAPTERS", 3)
    log = lines(tmp_path / "log.json", *({"adapter": f"r{n}", "ts": n} for n in range(4)))
    with pytest.raises(LogError, match=r"more than 3 different adapters \(r.*--adapter-column"):
        count_logs([log])


@pytest.mark.parametrize("wrong", [{"days": 0}, {"sample": 0}, {"threads": 0}, {"memory": 10}, {"days": float("nan")}])
def test_options_without_sense_are_refused(wrong):
    with pytest.raises(LogError, match="is not between"):
        LogOptions(**wrong)
