"""Files of adapters: good ones are taken, everything that is wrong is named by line and field."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.live.podserver import adapters_file
from lorapick.live.podserver.adapters_file import read_adapters
from lorapick.live.podserver.options import OptionsError, adapter_spec


def problems(text: bytes) -> list[str]:
    with pytest.raises(OptionsError) as caught:
        read_adapters(text, file="a.yaml")
    return str(caught.value).splitlines()


def test_files_list_names_or_more() -> None:
    text = b"- one\n- {name: two, rank: 64}\n- {name: three, size: 5}\n- {name: team/four@2, size: 64MB}\n"
    listed = read_adapters(text, file="a.yaml")
    assert [(a.name, a.rank, a.size) for a in listed] == [
        ("one", 16, 65_536_000),
        ("two", 64, 262_144_000),
        ("three", 16, 5),
        ("team/four@2", 16, 64_000_000),
    ]
    assert read_adapters(b'{"adapters": ["one"]}', file="a.json") == (adapter_spec("one"),)
    assert read_adapters(b"[]", file="a.yaml") == ()


WANTED = "wanted is a list of adapter names, or of {name: legal, rank: 16, size: 65536000}"
RANK = "must be a whole number of at least 1 and at most 4096"
COMMA = "vLLM joins adapter names with commas in its metrics"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"just text", f'1:1: {WANTED} (found "just text")'),
        (b"adapters: one", f'1:11: adapters: {WANTED} (found "one")'),
        (b"- one\n- {rank: 16}", '2:3: [1]: the key "name" is missing'),
        (b"- {name: a, color: red}", '1:13: [0].color: unknown key (found "color"); known: name, rank, size'),
        (b"- one\n- name: a\n  rank: high", f'3:9: [1].rank: {RANK} (found "high")'),
        (b"a: [", "2:1: not YAML: while parsing a flow node, did not find expected node content"),
        (b"- one\n- two\n- one\n", '3:3: [2]: this name stands twice; the first is in line 1 (found "one")'),
        (b"- one\n- 'a,b'\n", f'2:3: [1]: must not contain a comma (found "a,b"); {COMMA}'),
        (b"- [one]", "1:3: [0]: must be a mapping (key: value) (found a list)"),
        (b"", "1:1: the file is empty"),
    ],
)
def test_a_problem_is_named_by_its_place(text: bytes, problem: str) -> None:
    assert problems(text) == [f"a.yaml:{problem}"]


def test_all_problems_come_at_once() -> None:
    assert [line.split(":")[1] for line in problems(b"- 7\n- {rank: 0}\n- ok\n- ok\n")] == ["1", "2", "2", "4"]
    assert len(problems(b"other: []")) == 2


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters_file, "MAX_ADAPTERS", 2)
    assert problems(b"[a, b, c]") == ["a.yaml:1:1: has 3 adapters; the limit is 2"]


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with suppress(OptionsError):
        read_adapters(text, file="a.yaml")
