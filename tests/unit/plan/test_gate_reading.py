"""Rollouts as people write them: lists, differences, splits; and what traffic follows."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.gate.reading import parse, split_of
from lorapick.plan.gate.rollout import Listed, Rollout, RolloutError, Traffic, after, today

TRAFFIC = Traffic(rate=11.0)
"""By Zipf's law 6, 3 and 2 of three adapters."""
THREE = tuple(Listed(name=name) for name in ("a", "b", "c"))


def rates(demand):
    return {each.adapter: pytest.approx(each.rate) for each in demand}


def then(rollout, *, before=THREE):
    return rates(after(today(before, TRAFFIC), rollout, traffic=TRAFFIC))


# -- text


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("l.txt", "a\n# none\nb 0.5  # half\n", Rollout(adapters=(Listed(name="a"), Listed(name="b", rate=0.5)))),
        ("l.csv", "\ufeffname,rate\na,\nb, 0.5\n", Rollout(adapters=(Listed(name="a"), Listed(name="b", rate=0.5)))),
        ("l.csv", '"a",1e-1\n', Rollout(adapters=(Listed(name="a", rate=0.1),))),
        ("l.diff", "+d,2\n-a\n", Rollout(added=(Listed(name="d", rate=2.0),), removed=("a",))),
        ("l.diff", "+ d 2\n-a\n", Rollout(added=(Listed(name="d", rate=2.0),), removed=("a",))),
        ("l.yaml", "[a, {name: b, rank: 16}]", Rollout(adapters=(Listed(name="a"), Listed(name="b", rank=16)))),
        ("l.yaml", "a: 50\na-experiment: 50", Rollout(splits=({"a": 50.0, "a-experiment": 50.0},))),
        ("l.json", '[{"a": 1, "b": 3}, {"c": 1}]', Rollout(splits=({"a": 1.0, "b": 3.0}, {"c": 1.0}))),
        (
            "l.yml",
            "{add: [d], remove: [a], split: {b: 1, e: 1}}",
            Rollout(added=(Listed(name="d"),), removed=("a",), splits=({"b": 1.0, "e": 1.0},)),
        ),
    ],
)
def test_files(file, text, expected):
    assert parse(text.encode(), file=file) == expected


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("l.txt", "", "lists no adapters"),
        ("l.txt", "a 1 2", "a line has a name"),
        ("l.txt", "a x", "no number of requests"),
        ("l.txt", "+a\nb", "has no sign"),
        ("l.yaml", "7", "neither a list of adapters"),
        ("l.yaml", "{}", "has nothing; there are adapters"),
        ("l.yaml", "{adaptors: [a]}", "has adaptors; there are adapters"),
        ("l.yaml", "[{name: a, rnk: 3}]", "unknown field `rnk`"),
        ("l.yaml", "{split: [a]}", "no mapping from names to weights"),
        ("l.yaml", "{adapters: a}", "no list of adapters"),
        ("l.json", "[", "l.json"),
        ("l.yaml", "a: 50\na: 50", "a is there twice in line 1; name each once"),
        ("l.json", '{"split": [\n{"b": 1, "a": 1, "a": 2}]}', "a is there twice in line 2"),
        ("l.yaml", "a: " + 400 * "9", "too large"),
        ("l.yaml", "{split: [{a: 1}, [a, b]]}", "a list is no mapping from names"),
    ],
)
def test_no_rollout(file, text, words):
    with pytest.raises(RolloutError, match=f"^{file}: .*{words}|{words}"):
        parse(text.encode(), file=file)


@given(st.binary(max_size=80), st.sampled_from(["x.txt", "x.yaml", "x.json"]))
def test_any_bytes_are_a_rollout_or_told_why_not(content, file):
    with contextlib.suppress(RolloutError):
        assert isinstance(parse(content, file=file), Rollout)


def test_splits_on_the_command_line():
    assert split_of("a: 50, a-experiment: 50") == {"a": 50.0, "a-experiment": 50.0}
    for text in ("a", "a: x", ": 5", "a: 1, a: 2"):
        with pytest.raises(RolloutError, match="split"):
            split_of(text)


# -- traffic


def test_today_without_rates_is_zipf():
    assert rates(today(THREE, TRAFFIC)) == {"a": 6, "b": 3, "c": 2}


def test_rates_that_are_known_are_kept():
    listed = (Listed(name="a"), Listed(name="b", rate=2.0), Listed(name="c"))
    assert rates(today(listed, TRAFFIC)) == {"a": 6, "b": 2, "c": 3}


def test_a_split_deals_out_what_is_there():
    assert then(Rollout(splits=({"a": 50, "a-experiment": 50},))) == {"a": 3, "b": 3, "c": 2, "a-experiment": 3}
    assert then(Rollout(splits=({"a": 0, "b": 1},))) == {"a": 0, "b": 9, "c": 2}


def test_who_is_new_has_the_mean():
    assert then(Rollout(added=(Listed(name="d"),), removed=("c",))) == {"a": 6, "b": 3, "d": 11 / 3}


def test_a_list_says_who_stays():
    listed = (Listed(name="b"), Listed(name="a", rate=1.0), Listed(name="e"))
    assert then(Rollout(adapters=listed)) == {"b": 3, "a": 1, "e": 11 / 3}


def test_a_list_that_changes_itself():
    """Nobody says what there is today."""
    rollout = Rollout(adapters=(Listed(name="a", rate=2.0), Listed(name="b", rate=4.0)), added=(Listed(name="c"),))
    assert rates(after((), rollout, traffic=TRAFFIC)) == {"a": 2, "b": 4, "c": 3}
    with pytest.raises(RolloutError, match='ab is removed and not there today; did you mean "abc"'):
        after((), Rollout(adapters=(Listed(name="abc", rate=2.0),), removed=("ab",)), traffic=TRAFFIC)


def test_a_listed_experiment_has_its_part_of_the_split_only():
    listed = (*THREE, Listed(name="a-experiment"))
    found = then(Rollout(adapters=listed, splits=({"a": 50, "a-experiment": 50},)))
    assert found == {"a": 3, "b": 3, "c": 2, "a-experiment": 3}


@pytest.mark.parametrize(
    ("rollout", "words"),
    [
        (Rollout(removed=("ab",)), "removed and not there today"),
        (Rollout(added=(Listed(name="a"),)), "there today already"),
        (Rollout(added=(Listed(name="d"), Listed(name="d"))), "listed more than once"),
        (Rollout(added=(Listed(name="d", rate=-1.0),)), "0 or more"),
        (Rollout(added=(Listed(name="d", rank=0),)), "rank is 1 or more"),
        (Rollout(added=(Listed(name=" "),)), "no name"),
        (Rollout(splits=({"x": 1, "y": 1},)), "none of x, y is there"),
        (Rollout(splits=({"a": 0, "b": 0},)), "one of them above 0"),
        (Rollout(splits=({"a": 1e308, "b": 1e308},)), "up to 1e"),
        (Rollout(added=(Listed(name="d", rate=1e300),)), "up to 1e"),
    ],
)
def test_contradictions(rollout, words):
    with pytest.raises(RolloutError, match=words):
        then(rollout)


@pytest.mark.parametrize("traffic", [{"rate": -1.0}, {"rate": float("nan")}, {"rate": 1.0, "zipf": 1e3}])
def test_traffic_that_cannot_be(traffic):
    with pytest.raises(RolloutError, match=r"give a rate from 0 to 1e\+09"):
        today(THREE, Traffic(**traffic))


def test_rates_that_leave_nothing():
    with pytest.raises(RolloutError, match="larger total"):
        today((Listed(name="a", rate=2.0), Listed(name="b")), Traffic(rate=1.0))


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (THREE, "^no requests per second are known: give --rate, or rates in the list$"),
        (
            (Listed(name="a", rate=2.0), Listed(name="c")),
            "^no requests per second are known for c: give --rate, or rates in the list$",
        ),
        ((*THREE, Listed(name="d", rate=1.0)), "are known for a and 2 more: give --rate"),
    ],
)
def test_rates_that_nobody_gives(listed, words):
    with pytest.raises(RolloutError, match=words):
        today(listed, Traffic(rate=0.0))
