"""Words of scenario files."""

import pytest

from lorapick.sim import scenario_readers as readers
from lorapick.sim.workload.lengths import FixedLength, LogNormalLength, TableLength, UniformLength
from lorapick.sim.workload.popularity import EqualShares, PowerLaw, TopShare, Weights, Zipf
from lorapick.wire.config.document import Refused, Report, parse_document


def value(read, text):
    return read(parse_document(text, Report("s.yaml")))


def refusal(read, text):
    report = Report("s.yaml")
    with pytest.raises(Refused):
        read(parse_document(text, report))
    return "; ".join(f"{each.message} {each.hint}" for each in report.problems)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("09:00", 32_400), ("9:00", 32_400), ("10:15", 36_900), ("14:31:02", 52_262), ("24:00", 86_400), ("00:00", 0)],
)
def test_times_of_day(text, seconds):
    assert value(readers.clock, text) == seconds
    assert value(readers.clock, f'"{text}"') == seconds


@pytest.mark.parametrize("text", ["25:00", "24:01", "9", "09:60", "noon", "[1]"])
def test_no_times_of_day(text):
    assert "must be" in refusal(readers.clock, text)


def test_a_moment_is_a_time_of_day_or_a_duration():
    read = readers.moment(begin=36_000.0, length=7200.0)
    assert (value(read, "10:30"), value(read, "90s"), value(read, "0")) == (1800.0, 90.0, 0.0)
    assert "lasts 7200s; this is at -1800s" in refusal(read, "09:30")
    assert "must lie within the run" in refusal(read, "3h")
    assert "a duration since the begin" in refusal(read, "soon")


@pytest.mark.parametrize(
    ("text", "rate"), [("50/s", 50.0), ("2000/min", 2000 / 60), ("7.2 / h", 0.002), ("86400/day", 1.0)]
)
def test_rates(text, rate):
    assert value(readers.rate, text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["50", "50/week", "-1/s", "1" * 30 + "/s", "x/s"])
def test_no_rates(text):
    assert "must be a rate" in refusal(readers.rate, text)


@pytest.mark.parametrize(("text", "factor"), [("+5%", 1.05), ("-20 %", 0.8), ("2", 2.0), ("0.5", 0.5), ("-100%", 0.0)])
def test_changes_of_rate(text, factor):
    assert value(readers.factor, f'"{text}"') == pytest.approx(factor)


def test_no_changes_of_rate():
    assert "cannot fall by more than 100%" in refusal(readers.factor, '"-101%"')
    assert 'a change such as "+5%"' in refusal(readers.factor, "much")


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("200", FixedLength(200)),
        ("[4, 12]", UniformLength(4, 12)),
        ("{lognormal: {mean: 100, cv: 1.5, high: 900}}", LogNormalLength(100.0, 1.5, 1, 900)),
        ("{table: [[10, 0.5], [20, 1]]}", TableLength(((10, 0.5), (20, 1.0)))),
    ],
)
def test_lengths(text, law):
    assert value(readers.length, text) == law


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "must be a whole number of at least 1"),
        ("[1, 2, 3]", "must have two numbers"),
        ("[12, 4]", "high is 4; at least low, 12"),
        ("{normal: {}}", "unknown law of lengths"),
        ("{lognormal: {mean: 5}}", 'the key "cv" is missing'),
        ("{table: [[10, 0.5]]}", "it must be 1"),
        ("{table: [10]}", "must be a list"),
        ("{table: [[10]]}", "must be [tokens, share"),
        ("{lognormal: {mean: 1, cv: 1}, table: []}", "must have exactly one of lognormal, table"),
    ],
)
def test_no_lengths(text, message):
    assert message in refusal(readers.length, text)


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("uniform", EqualShares()),
        ("{zipf: 1.2}", Zipf(1.2)),
        ("{top: 10, share: 0.7}", TopShare(10, 0.7)),
        ("{power: 0.6}", PowerLaw(0.6)),
        ("{weights: [4, 3]}", Weights((4.0, 3.0))),
    ],
)
def test_popularities(text, law):
    assert value(readers.popularity, text) == law


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("equal", "must be uniform or a law"),
        ("{zipf: -1}", "must be an exponent"),
        ("{power: 0}", "alpha is 0"),
        ("{weights: [0]}", "0 or more each, and one above 0"),
        ("{top: 3}", 'the key "share" is missing'),
        ("{ziph: 1}", "unknown law of popularity"),
    ],
)
def test_no_popularities(text, message):
    assert message in refusal(readers.popularity, text)
