"""Which unloads are under way, and whom a pod would miss least."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.unloading import LONGEST, PAUSE, Unloading
from lorapick.model.settings import RetentionSettings


def unloading(policy="cost"):
    made = Unloading(RetentionSettings(policy=policy))
    made.appear(0)
    return made


def test_pods_that_unload_nothing_are_not_among_them():
    made = unloading()
    assert len(made) == 1
    made.used(7, "a", now=1.0)
    made.touched(7, "a", now=1.0)
    assert not made.may_ask(7, since=9.0, now=9.0)
    assert not made.ended(7, "a", now=9.0)
    made.restarted(7)
    made.gone(7)


@pytest.mark.parametrize("policy", ["lru", "lfu", "window", "cost"])
def test_the_least_wanted_leaves(policy):
    made = unloading(policy)
    for second in range(60):
        made.used(0, "often", now=float(second))
        made.touched(0, "often", now=second + 0.5)
    made.used(0, "once", now=20.0)
    made.touched(0, "once", now=20.5)
    for second in range(60, 70):
        made.used(0, "often", now=float(second))
    name, worth = made.least(0, ["often", "once"], now=70.0)
    assert name == "once"
    assert worth < made.least(0, ["often"], now=70.0)[1]


def test_one_at_a_time_and_the_next_after_a_newer_report():
    made = unloading()
    assert made.may_ask(0, since=0.0, now=1.0)
    made.ask(0, "a", now=1.0)
    assert (made.rows("a", now=1.0), made.rows("b", now=1.0), made.under_way) == ([0], [], 1)
    assert not made.may_ask(0, since=2.0, now=2.0)
    assert not made.ended(0, "b", now=2.0), "it was not asked for that"
    assert made.ended(0, "a", now=2.0)
    assert (made.rows("a", now=2.0), made.under_way) == ([], 0)
    assert not made.may_ask(0, since=1.9, now=2.1), "that report knows nothing of it"
    assert made.may_ask(0, since=2.0, now=2.1)


def test_a_failure_is_followed_by_a_pause():
    made = unloading()
    made.ask(0, "a", now=1.0)
    assert made.ended(0, "a", now=2.0, failed=True)
    assert not made.may_ask(0, since=1.9 + PAUSE, now=2.0 + PAUSE)
    assert made.may_ask(0, since=2.0 + PAUSE, now=2.0 + PAUSE)


def test_one_of_which_nothing_is_heard_is_given_up():
    made = unloading()
    made.ask(0, "a", now=1.0)
    assert not made.may_ask(0, since=LONGEST, now=LONGEST)
    assert made.rows("a", now=1.0 + LONGEST) == []
    assert made.may_ask(0, since=1.0 + LONGEST, now=1.0 + LONGEST)
    made.ask(0, "b", now=1.0 + LONGEST)
    assert (made.rows("b", now=2.0 + LONGEST), made.under_way) == ([0], 1)


def test_another_process_was_not_asked():
    made = unloading()
    made.ask(0, "a", now=1.0)
    made.restarted(0)
    assert (made.rows("a", now=1.0), made.under_way) == ([], 0)
    assert made.may_ask(0, since=1.0, now=1.0)
    made.ask(0, "a", now=1.0)
    made.ended(0, "a", now=1.0)
    assert (made.owed(0), made.rows_owed()) == (["a"], [0])
    made.restarted(0)
    assert (made.owed(0), made.rows_owed()) == ([], [])
    made.ask(0, "a", now=1.0)
    made.gone(0)
    assert (len(made), made.under_way) == (0, 0)


def test_what_was_unloaded_is_owed_until_it_is_given_back():
    made = unloading()
    for name in "ab":
        made.ask(0, name, now=1.0)
        assert made.ended(0, name, now=2.0)
    assert made.owed(0) == ["a", "b"]
    made.ask(0, "a", now=3.0, loads=True)
    assert (made.rows("a", now=3.0), made.rows("a", now=3.0, loads=True), made.under_way) == ([], [0], 1)
    assert not made.may_ask(0, since=3.0, now=3.0)
    assert not made.ended(0, "a", now=3.5), "that was no unload"
    assert made.given(0, "a", now=4.0, failed=True)
    assert made.owed(0) == ["a", "b"] and not made.may_ask(0, since=5.0, now=5.0)
    made.ask(0, "a", now=40.0, loads=True)
    assert made.given(0, "a", now=41.0)
    assert made.owed(0) == ["b"] and not made.given(0, "b", now=42.0), "nobody was asked for that one"
    assert made.owed(0) == []
    assert (made.owed(7), made.given(7, "a", now=1.0)) == ([], False)


def test_what_a_newer_list_has_is_not_owed():
    made = unloading()
    for name in "abc":
        made.ask(0, name, now=1.0)
        made.ended(0, name, now=2.0)
    made.listed(0, ["a"], since=1.9)
    assert made.owed(0) == ["a", "b", "c"]
    made.listed(0, ["a", "z"], since=2.0)
    made.forget("b")
    assert made.owed(0) == ["c"]


@pytest.mark.parametrize("silent", [False, True])
def test_an_unload_of_which_it_is_not_known_whether_it_was_done_may_be_owed(silent):
    made = unloading()
    made.ask(0, "a", now=1.0)
    if silent:
        made.ask(0, "b", now=1.0 + LONGEST)
        made.ended(0, "b", now=2.0 + LONGEST, failed=True)
        assert made.owed(0) == ["a", "b"]
    else:
        made.ended(0, "a", now=2.0, failed=True)
    made.ask(0, "a", now=200.0, loads=True)
    made.given(0, "a", now=201.0, failed=True)
    assert "a" not in made.owed(0)


def test_another_policy_begins_anew_and_an_unknown_one_changes_nothing():
    made = unloading("lfu")
    made.used(0, "a", now=1.0)
    made.used(0, "a", now=2.0)
    made.used(0, "b", now=3.0)
    assert made.least(0, ["a", "b"], now=4.0)[0] == "b"
    with pytest.raises(ValueError, match="'mru' is unknown"):
        made.configure(RetentionSettings(policy="mru"))
    made.configure(RetentionSettings(policy="lfu"))
    assert made.least(0, ["a", "b"], now=4.0)[0] == "b"
    made.configure(RetentionSettings(policy="lru"))
    assert made.least(0, ["b", "a"], now=4.0)[0] == "b", "nobody was used yet: the first"
    with pytest.raises(ValueError, match="'mru' is unknown"):
        Unloading(RetentionSettings(policy="mru"))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.sampled_from("ab"))))
def test_counts_are_what_pods_say(steps):
    made, now = Unloading(RetentionSettings(policy="lru")), 0.0
    rows = {}
    for kind, row, name in steps:
        now += 10.0
        if kind == 0:
            rows.setdefault(row, made.appear(row) if row not in rows else None)
        elif kind == 1 and row in rows and made.may_ask(row, since=now, now=now):
            made.ask(row, name, now=now)
        elif kind in (2, 3):
            made.ended(row, name, now=now, failed=kind == 3)
        elif kind == 4:
            made.restarted(row)
        elif kind == 5:
            made.gone(row)
            rows.pop(row, None)
        elif kind == 6 and row in rows and made.may_ask(row, since=now, now=now) and made.owed(row):
            made.ask(row, made.owed(row)[0], now=now, loads=True)
        elif kind in (7, 8):
            made.given(row, name, now=now, failed=kind == 8)
            assert kind == 8 or name not in made.owed(row)
        else:
            made.used(row, name, now=now)
        made.check(rows)
        assert sum(len(made.rows(each, now=now)) for each in "ab") <= made.under_way
