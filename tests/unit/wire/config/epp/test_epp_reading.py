"""Durations of Go, quantities of Kubernetes, mappings, single lines."""

import pytest

from lorapick.wire.config.document import Refused, Report, parse_document
from lorapick.wire.config.epp.reading import (
    MissingParameters,
    anything,
    go_duration,
    members,
    name_list,
    on_one_line,
    only,
    parameters,
    quantity,
    refused,
)
from lorapick.wire.config.readers import boolean, integer, text


def at(content):
    report = Report("f")
    return parse_document(content, report), report


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        ("1m", 60.0),
        ("1h30m", 5400.0),
        ("200ms", 0.2),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("'0'", 0.0),
        ("0", 0.0),
        ("+2s", 2.0),
        ("3us", 3e-6),
        ("1s1h", 3601.0),
    ],
)
def test_durations_of_go(content, seconds):
    assert go_duration(at(content)[0]) == pytest.approx(seconds)


@pytest.mark.parametrize("content", ["60", "1 m", "1d", "m", "-1s", "1m-", "[]", "'1 s'", "1" * 40 + "s", "~", "true"])
def test_what_is_no_duration(content):
    with pytest.raises(Refused):
        go_duration(at(content)[0])


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ("100", 100),
        ("1k", 1000),
        ("1Gi", 2**30),
        ("500M", 500_000_000),
        ("'1.5k'", 1500),
        ("1e3", 1000),
        ("1E", 10**18),
    ],
)
def test_quantities_of_kubernetes(content, number):
    assert quantity(at(content)[0]) == number


@pytest.mark.parametrize("content", ["1 k", "1K", "-1", "100m", "many", "[]", "99E", "1e99", "1" * 30, "~"])
def test_what_is_no_quantity(content):
    with pytest.raises(Refused):
        quantity(at(content)[0])


def test_keys_without_a_value_count_as_missing():
    root, report = at("{a: , b: 2}")
    assert members(root, {"a": text, "b": integer(least=0)}) == {"b": 2}
    with pytest.raises(Refused):
        members(root, {"a": text, "b": anything}, required=("a",))
    assert report.problems[0].message == 'the key "a" is missing'


def test_all_problems_of_a_mapping_are_found():
    root, report = at("{a: x, b: y, c: 1}")
    with pytest.raises(Refused):
        members(root, {"a": integer(least=0), "b": boolean}, hints={"c": "say d"})
    assert [problem.field for problem in report.problems] == ["a", "b", "c"]
    assert report.problems[2].hint == "say d"
    with pytest.raises(Refused):
        members(at("1")[0], {})


def test_a_reader_that_gives_up_without_a_word_is_no_value():
    def quiet(_):
        raise Refused

    root, report = at("{a: 1}")
    with pytest.raises(Refused):
        members(root, {"a": quiet})
    assert not report.problems


def test_parameters_have_defaults_and_may_be_needed():
    read = parameters({"a": ("one", integer(least=0)), "b": ("", anything)}, {"one": 1, "two": 2})
    assert read(None) == {"one": 1, "two": 2}
    assert read(at("{a: 7, b: [1]}")[0]) == {"one": 7, "two": 2}
    with pytest.raises(MissingParameters, match="a"):
        parameters({"a": ("a", text)}, required=("a",))(None)


def test_values_that_have_no_counterpart():
    with pytest.raises(Refused):
        only(integer(least=0), 1, because="so it is")(at("2")[0])
    assert only(integer(least=0), 1, 2, because="so it is")(at("2")[0]) == 2
    root, report = at("x")
    with pytest.raises(Refused):
        refused("use y")(root)
    assert report.problems[0].hint == "use y"
    assert name_list(at("[a, b]")[0]) == ("a", "b")


def test_one_line():
    assert on_one_line(at("{a: [1, {b: c}], d: ~}")[0]) == "{a: [1, {b: c}], d: ~}"
    assert len(on_one_line(at("[" + ", ".join(["x" * 50] * 9) + "]")[0])) == 120
    assert "\\x07" in on_one_line(at('"\\a"')[0])
    assert "…" in on_one_line(at("[[[[[[[[1]]]]]]]]")[0])
