from typing import Any

import pytest

from lorapick.wire.config import readers
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.readers import Reader

NO_DURATION = 'not a duration; write a number with a unit, such as "500ms", "30s", "10m" or "9h30m"|'
NO_SIZE = 'not a size; write a number with a unit, such as "64MB" (10^6 bytes) or "10MiB" (2^20)|'


def read(reader: Reader[Any], text: str) -> Any:
    """The value of `text`, or the problems."""
    report = Report("f")
    root = parse_document(f"k: {text}\n", report)
    try:
        value = reader(root.nearest("k"))
    except Refused:
        return [f"{problem.message}|{problem.hint}" for problem in report.problems]
    return [str(problem) for problem in report.problems] or value


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        (readers.text, "a b", "a b"),
        (readers.text, '"7"', "7"),
        (readers.word, "a-b_c@7", "a-b_c@7"),
        (readers.label_text, "7", "7"),
        (readers.label_text, "1.10", "1.10"),
        (readers.boolean, "true", True),
        (readers.boolean, "False", False),
        (readers.integer(least=0), "0", 0),
        (readers.integer(least=-5), "-5", -5),
        (readers.number(), "1e3", 1000.0),
        (readers.number(), "-.5", -0.5),
        (readers.share, "1", 1.0),
        (readers.duration(), "9h30m", 34_200.0),
        (readers.duration(), "0", 0.0),
        (readers.size(), "10MiB", 10_485_760),
        (readers.labels, "{zone: west, generation: 2}", {"zone": "west", "generation": "2"}),
        (readers.list_of(readers.word), "[]", ()),
        (readers.list_of(readers.word, unique=""), "[a, b]", ("a", "b")),
        (readers.choice("a", "b"), "b", "b"),
    ],
)
def test_values(reader: Reader[Any], text: str, value: Any) -> None:
    assert read(reader, text) == value


@pytest.mark.parametrize(
    ("reader", "text", "problem"),
    [
        (readers.text, "7", "must be text|put it in quotes"),
        (readers.text, "no", "must be text|put it in quotes"),
        (readers.text, "2026-01-01", "must be text|put it in quotes"),
        (readers.text, "[a]", "must be text|"),
        (readers.text, "!secret a", "must be text|"),
        (readers.text, '""', "must be text of one line with 1 to 4096 characters|"),
        (readers.text, '"a\\nb"', "must be text of one line with 1 to 4096 characters|"),
        (readers.text, "x" * 5000, "must be text of one line with 1 to 4096 characters|"),
        (readers.word, "a b", "must not contain blanks|"),
        (readers.adapter_name, "a,b", "must not contain a comma|vLLM joins adapter names with commas in its metrics"),
        (readers.boolean, "yes", "must be true or false|"),
        (readers.boolean, '"true"', "must be true or false|"),
        (readers.integer(least=1), "0", "must be a whole number of at least 1|"),
        (readers.integer(least=1, most=9), "10", "must be a whole number of at least 1 and at most 9|"),
        (readers.integer(least=0), "010", "must be a whole number of at least 0|"),
        (readers.integer(least=0), "0x10", "must be a whole number of at least 0|"),
        (readers.integer(least=0), "1:30", "must be a whole number of at least 0|"),
        (readers.integer(least=0), "1_0", "must be a whole number of at least 0|"),
        (readers.integer(least=0), "1.0", "must be a whole number of at least 0|"),
        (readers.integer(least=0), '"1"', "must be a whole number of at least 0|remove the quotes"),
        (readers.integer(least=0), "9" * 50, "must be a whole number of at least 0|"),
        (readers.number(), ".nan", "must be a number|"),
        (readers.number(), ".inf", "must be a number|"),
        (readers.number(), "1e999", "must be a number|"),
        (readers.number(), "1:30", "must be a number|"),
        (readers.number(least=0.5), "0.1", "must be a number of at least 0.5|"),
        (readers.share, "1.1", "must be a share between 0 and 1|"),
        (readers.share, "85%", "must be a share between 0 and 1|"),
        (readers.duration(), "10", NO_DURATION),
        (readers.duration(least=1.0), "5ms", "must be a duration between 1s and 31622400s|"),
        (readers.size(), "[]", NO_SIZE),
        (readers.size(most=10), "11B", "must be a size between 1B and 10B|"),
        (readers.choice("a"), "b", 'must be "a"|'),
        (readers.choice("weighted", "x"), "wieghted", 'must be "weighted" or "x"|did you mean "weighted"?'),
        (readers.list_of(readers.word), "a", "must be a list|"),
        (readers.list_of(readers.word, least=1), "[]", "must have at least 1 item|"),
        (readers.labels, "[a]", "must be a mapping (key: value)|"),
        (readers.labels, "{a: [b]}", "must be text|"),
    ],
)  # fmt: skip
def test_refusals(reader: Reader[Any], text: str, problem: str) -> None:
    assert read(reader, text) == [problem]


def test_a_list_reads_on_after_a_bad_item_and_finds_duplicates_among_bad_ones() -> None:
    one = readers.record(dict, {"name": readers.word, "n": readers.integer(least=0)})
    assert read(readers.list_of(one, unique="name"), "[{name: a, n: x}, {n: -1}, {name: a}]") == [
        "must be a whole number of at least 0|",
        "must be a whole number of at least 0|",
        "this name stands twice; the first is in line 1|",
    ]


def test_a_record_reads_on_after_a_bad_key() -> None:
    reader = readers.record(dict, {"name": readers.word, "size": readers.size()}, required=("name", "size"))
    assert read(reader, "{name: , sise: 1MB}") == [
        "has no value|give it one or remove the key",
        'unknown key|did you mean "size"?',
        'the key "size" is missing|',
    ]


def test_a_record_renames_and_checks() -> None:
    def check(at: At, value: dict[str, int]) -> None:
        if value["lasts"] > 5:
            at.nearest("for").note("too long")

    reader: Reader[dict[str, int]] = readers.record(
        dict, {"for": readers.integer(least=0)}, names={"for": "lasts"}, check=check
    )
    assert read(reader, "{for: 3}") == {"lasts": 3}
    assert read(reader, "{for: 7}") == ["f:1:10: k.for: too long (found 7)"]
