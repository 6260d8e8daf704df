"""Logs for tests: written in each format, and counted in plain Python."""

import csv
import datetime
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from lorapick.plan.logs.values import LogAdapter, LogArrival, LogHour, LogSample, LogSummary

BEGIN = 1_780_000_200
"""Ten minutes before a whole hour."""


class Request(NamedTuple):
    adapter: str | None
    """None or empty: the base model."""
    millis: int | None
    """Since `BEGIN`; None: unknown."""
    prompt: int | None = None
    output: int | None = None

    @property
    def time(self) -> float:
        assert self.millis is not None
        return (BEGIN * 1000 + self.millis) / 1000

    def moment(self) -> datetime.datetime | None:
        if self.millis is None:
            return None
        return datetime.datetime.fromtimestamp(BEGIN, datetime.UTC) + datetime.timedelta(milliseconds=self.millis)


# -- written


def write(path: Path, requests: Sequence[Request]) -> Path:
    """In the format of its suffix: times as text in CSV, milliseconds in JSON, timestamps in Parquet."""
    WRITERS[path.suffix](path, requests)
    return path


def write_csv(path: Path, requests: Sequence[Request]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["lora", "When", "prompt tokens", "generated_tokens"])
        for each in requests:
            moment = each.moment()
            rows.writerow([each.adapter, moment.isoformat() if moment else "", each.prompt, each.output])


def write_json(path: Path, requests: Sequence[Request]) -> None:
    with path.open("w") as file:
        for each in requests:
            when = None if each.millis is None else BEGIN * 1000 + each.millis
            usage = {"prompt_tokens": each.prompt, "completion_tokens": each.output}
            line = {"request": {"lora": each.adapter}, "ts": when, "usage": usage, "model": "base"}
            file.write(json.dumps(line) + "\n")


def write_parquet(path: Path, requests: Sequence[Request]) -> None:
    lines = path.with_suffix(".lines")
    lines.write_text("".join(json.dumps([*each[:1], str(each.moment() or ""), *each[2:]]) + "\n" for each in requests))
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT json->>0 AS adapter_name, TRY_CAST(json->>1 AS TIMESTAMPTZ) AS arrival_time, "
            "CAST(json->>2 AS INTEGER) AS input_tokens, CAST(json->>3 AS INTEGER) AS output_tokens "
            f"FROM read_json_objects('{lines}', format = 'newline_delimited')) TO '{path}' (FORMAT parquet)"
        )
    lines.unlink()


WRITERS = {".csv": write_csv, ".jsonl": write_json, ".parquet": write_parquet}
WHEN = {".csv": "when", ".jsonl": None, ".parquet": None}
"""Column of times that must be named, by suffix."""


# -- counted


def by_hand(requests: Sequence[Request], *, days: float, sample: int, base: Sequence[str] = ()) -> dict[str, Any]:
    """Fields of the summary, but for the files' own; adapters empty: there is none to count."""
    timed = [each for each in requests if each.millis is not None]
    since = max((each.time for each in timed), default=0.0) - days * 86_400
    recent = [each for each in timed if each.time >= since]
    asked = [each for each in recent if each.adapter and each.adapter not in base]
    return {
        "start": min((each.time for each in asked), default=None),
        "end": max((each.time for each in asked), default=None),
        "adapters": adapters(asked),
        "hours": hours(asked),
        "sample": busiest(asked, most=sample),
        "without_adapter": len(recent) - len(asked),
        "without_time": len(requests) - len(timed),
        "too_old": len(timed) - len(recent),
    }


def adapters(asked: Sequence[Request]) -> tuple[LogAdapter, ...]:
    grouped: dict[str, list[Request]] = defaultdict(list)
    for each in asked:
        grouped[each.adapter or ""].append(each)
    minutes = sorted(math.floor(each.time / 60) for each in asked)
    found = [adapter(name, of, minutes=range(minutes[0], minutes[-1] + 1)) for name, of in grouped.items()]
    return tuple(sorted(found, key=lambda each: (-each.requests, each.adapter)))


def adapter(name: str, of: Sequence[Request], *, minutes: range) -> LogAdapter:
    times = [each.time for each in of]
    prompts = [each.prompt for each in of if each.prompt is not None]
    outputs = [each.output for each in of if each.output is not None]
    counts = Counter(math.floor(time / 60) for time in times)
    mean = len(of) / len(minutes)
    variance = sum((counts[minute] - mean) ** 2 for minute in minutes) / len(minutes)
    return LogAdapter(
        adapter=name,
        requests=len(of),
        first=min(times),
        last=max(times),
        peak=max(counts.values()),
        burst=variance / mean if len(minutes) > 1 else None,
        prompt_tokens=sum(prompts) / len(prompts) if prompts else None,
        output_tokens=sum(outputs) / len(outputs) if outputs else None,
    )


def hours(asked: Sequence[Request]) -> tuple[LogHour, ...]:
    grouped: dict[float, list[Request]] = defaultdict(list)
    for each in asked:
        grouped[each.time // 3600 * 3600].append(each)
    return tuple(
        LogHour(start=start, requests=len(of), adapters=len({each.adapter for each in of}))
        for start, of in sorted(grouped.items())
    )


def busiest(asked: Sequence[Request], *, most: int) -> LogSample | None:
    found = hours(asked)
    if not found:
        return None
    begin = min(found, key=lambda hour: (-hour.requests, hour.start)).start
    within = sorted((each for each in asked if begin <= each.time < begin + 3600), key=lambda each: each.time)
    stretch = densest([each.time for each in within], most=most, begin=begin)
    first, last = min(each.time for each in asked), max(each.time for each in asked)
    if stretch is None:
        return LogSample(start=first, length=0.0, arrivals=())
    begin, until = max(stretch[0], math.floor(first)), min(stretch[1], math.floor(last) + 1.0)
    arrivals = [
        LogArrival(
            at=each.time - begin, adapter=each.adapter or "", prompt_tokens=each.prompt, output_tokens=each.output
        )
        for each in within
        if stretch[0] <= each.time < stretch[1]
    ]
    arrivals.sort(key=lambda each: (each.at, each.adapter, each.prompt_tokens or 0, each.output_tokens or 0))
    return LogSample(start=begin, length=until - begin, arrivals=tuple(arrivals))


def densest(times: Sequence[float], *, most: int, begin: float) -> tuple[float, float] | None:
    """Of stretches that hold `most` requests, less those that come at the time of a further one."""
    if len(times) <= most:
        return begin, begin + 3600
    best, stretch = 0.0, None
    for place, time in enumerate(times[: len(times) - most + 1]):
        until = times[place + most] if place + most < len(times) else begin + 3600
        if (place and times[place - 1] == time) or until == time:
            continue
        density = sum(time <= each < until for each in times) / (until - time)
        if density > best:
            best, stretch = density, (time, until)
    return stretch


def same(summary: LogSummary, wanted: dict[str, Any]) -> None:
    """Fail unless they are equal; means and bursts but for rounding."""
    for name, value in wanted.items():
        if name != "adapters":
            assert getattr(summary, name) == value, name
    for one, other in zip(summary.adapters, wanted["adapters"], strict=True):
        for field in one.__struct_fields__:
            first, second = getattr(one, field), getattr(other, field)
            if isinstance(first, float):
                assert math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9), (one.adapter, field)
            else:
                assert first == second, (one.adapter, field)
