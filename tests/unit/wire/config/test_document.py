import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.config.document import MAX_TEXT, Refused, Report, nearest_word, parse_document
from lorapick.wire.config.problems import ConfigError


def refusal(text: bytes | str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, Report("f.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "f.yaml:1:1: the file is empty"),
        (b"# only a comment\n", "f.yaml:1:1: the file is empty"),
        (b"a: 1\n b: 2\n", "f.yaml:2:3: not YAML: mapping values are not allowed in this context"),
        (b"a: [1\n", "f.yaml:2:1: not YAML: while parsing a flow sequence, did not find expected ',' or ']'"),
        (b"a: 1\n---\nb: 2",
         "f.yaml:2:1: not YAML: expected a single document in the stream, but found another document"),
        (b"a: 1\nb: *z\n", "f.yaml:2:4: not YAML: found undefined alias"),
        (b"a: 1\nb: x\x00y\n", "f.yaml:2:5: not YAML: control characters are not allowed"),
        (b"a: 1\nb: \xff\n", "f.yaml:2:4: not UTF-8: byte 0xff"),
        ("a: @b",
         "f.yaml:1:4: not YAML: while scanning for the next token, found character that cannot start any token"),
    ],
)  # fmt: skip
def test_what_is_no_document(text: bytes | str, message: str) -> None:
    assert refusal(text) == message


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert list(parse_document(b"\xef\xbb\xbfa: 1", Report("f")).entries()) == ["a"]


def test_size_is_bounded() -> None:
    assert refusal(b"#" * (MAX_TEXT + 1)) == "f.yaml:1:1: the file has 4194305 bytes; the limit is 4194304"


def test_depth_is_bounded() -> None:
    assert parse_document("[" * 32 + "]" * 32, Report("f")).items()
    assert refusal("[" * 33 + "]" * 33) == "f.yaml:1:33: nested deeper than 32 levels"
    assert "depth" in refusal("[" * 100_000) or "deeper" in refusal("[" * 100_000)


def test_anchors_cannot_multiply_without_end() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "values after its anchors are expanded; the limit is 500000" in refusal("\n".join(lines))


def test_depth_that_comes_from_anchors_is_bounded() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 40)]
    assert "nested deeper than 32 levels" in refusal("\n".join(lines))


def test_a_node_inside_itself_is_refused() -> None:
    assert refusal("a: &a [*a]") == "f.yaml:1:4: nested deeper than 32 levels"
    assert refusal("a: &a {b: *a}") == "f.yaml:1:4: nested deeper than 32 levels"


def test_entries_note_duplicates_and_keys_that_are_no_text() -> None:
    report = Report("f")
    root = parse_document("a: 1\n7: 2\na: 3\n? [x]\n: 4\nno: 5\n", report)
    assert {name: entry.value.node.value for name, entry in root.entries().items()} == {"a": "1"}
    assert [str(problem) for problem in report.problems] == [
        "f:2:1: a key must be text (found 7); put it in quotes",
        "f:3:1: a: stands twice; the first is in line 1",
        "f:4:3: a key must be text (found a list); put it in quotes",
        "f:6:1: a key must be text (found no); put it in quotes",
    ]
    root.entries()
    assert len(report.problems) == 4, "the same problem is noted once"


def test_merges_give_way_to_own_keys_and_to_earlier_merges() -> None:
    root = parse_document("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\n", Report("f"))
    entries = root.find("c").entries()  # type: ignore[union-attr]
    assert {name: entry.value.node.value for name, entry in entries.items()} == {"x": "1", "y": "3", "z": "2"}


def test_a_merge_of_something_else_is_refused() -> None:
    report = Report("f")
    with pytest.raises(Refused):
        parse_document("<<: 7\n", report).entries()
    assert str(report.problems[0]) == "f:1:5: must be a mapping (key: value) (found 7)"


def test_places_are_found_by_path() -> None:
    root = parse_document("a: {b: [x, {c: y}]}\n", Report("f"))
    place = root.find("a", "b", 1, "c")
    assert place is not None and (place.field, place.node.value) == ("a.b[1].c", "y")
    assert root.find("a", "nope", 1) is None
    assert root.find("a", "b", 7) is None
    assert root.nearest("a", "b", 7, "c").field == "a.b"
    assert [item.field for item in root.each("a", "b")] == ["a.b[0]", "a.b[1]"]
    assert root.each("a") == root.each("nope") == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x", '"x"'),
        ("7", "7"),
        ("~", "~"),
        ("", "nothing"),
        ("[]", "a list"),
        ("{}", "a mapping"),
        ('"a\\nb"', '"a\\nb"'),
    ],
)
def test_what_stands_there_is_shown_on_one_line(text: str, shown: str) -> None:
    assert parse_document(f"k: {text}\n", Report("f")).nearest("k").shown == shown


def test_long_values_are_cut() -> None:
    assert parse_document(f"k: {'x' * 500}\n", Report("f")).nearest("k").shown == '"' + "x" * 79 + "…"


def test_hints() -> None:
    assert nearest_word("wieghts", ["weights", "policy"]) == 'did you mean "weights"?'
    assert nearest_word("FIFO", ["fifo", "lfu"]) == 'did you mean "fifo"?'
    assert nearest_word("zzz", ["b", "a"]) == "known: a, b"
    assert nearest_word("zzz", [f"k{number}" for number in range(50)]) == ""


@given(st.one_of(st.binary(max_size=60), st.text(st.sampled_from("ab:- []{}&*<\n\"'|>!#?%,~\t"), max_size=40)))
def test_any_text_gives_a_tree_or_the_typed_error(text: bytes | str) -> None:
    try:
        said = parse_document(text, Report("f")).shown
    except ConfigError as error:
        said = str(error)
    assert said


def test_a_file_that_is_no_configuration_is_not_echoed():
    report = Report("notes.txt")
    for line in range(1, 301):
        report.add(line=line, column=1, field="", value="", message="unknown key", hint="")
    with pytest.raises(ConfigError) as error:
        report.raise_if_any()
    assert str(error.value).splitlines()[-1] == "... and 280 more problems"
    assert len(error.value.problems) == 300
