import pytest

from lorapick.core.placement.groups import Follower, Groups, GroupSource
from lorapick.core.placement.transitions import Transitions
from lorapick.core.placement.wants import Want
from lorapick.model.adapters import AffinityGroup
from lorapick.model.placement import Why

DOCUMENTS = AffinityGroup(name="documents", first="classify", then=("legal", "medical"))
TAXES = AffinityGroup(name="taxes", first="classify", then=("medical", "tax", "classify"))


def pipeline(groups: Groups, *names: str, start: float = 0.0, times: int = 60) -> float:
    for number in range(times):
        for step, name in enumerate(names):
            groups.called(name, "session", now=start + number * 100.0 + step)
    return start + times * 100.0


def names(followers: tuple[Follower, ...]) -> list[str]:
    return [each.adapter for each in followers]


def test_declared_followers_in_the_order_of_the_file():
    groups = Groups([DOCUMENTS, TAXES])
    assert groups.followers_of("classify", now=0.0) == (
        Follower("legal", GroupSource.DECLARED, "documents"),
        Follower("medical", GroupSource.DECLARED, "documents"),
        Follower("tax", GroupSource.DECLARED, "taxes"),
    )
    assert groups.followers_of("legal", now=0.0) == ()
    assert groups.leaders() == {"legal": "classify", "medical": "classify", "tax": "classify"}
    assert list(groups.everyone()) == ["classify"]


def test_a_follower_is_wanted_once_the_first_is_called():
    (first, *_) = Groups([DOCUMENTS]).followers_of("classify", now=0.0)
    assert first.want(until=90.0) == Want("legal", Why.GROUP, "documents", until=90.0)


def test_nothing_is_learnt_unless_asked_for():
    groups = Groups([])
    pipeline(groups, "a", "b")
    assert groups.transitions is None
    assert groups.followers_of("a", now=1e6) == ()
    assert groups.leaders() == groups.everyone() == {}


def test_what_is_learnt_stands_beside_what_is_declared_and_gives_it_figures():
    groups = Groups([DOCUMENTS], learn=True)
    now = pipeline(groups, "classify", "legal", "summary")
    legal, medical = groups.followers_of("classify", now=now)
    assert (legal.source, legal.group, legal.confidence) == (GroupSource.DECLARED, "documents", pytest.approx(1.0))
    assert legal.support == pytest.approx(60, rel=0.2)
    assert medical == Follower("medical", GroupSource.DECLARED, "documents"), "never seen"
    (summary,) = groups.followers_of("legal", now=now)
    assert (summary.source, summary.group) == (GroupSource.LEARNED, "legal -> summary")
    assert groups.leaders() == {"legal": "classify", "medical": "classify", "summary": "legal"}
    assert {first: names(each) for first, each in groups.everyone().items()} == {
        "classify": ["legal", "medical"],
        "legal": ["summary"],
    }


def test_answers_are_remembered_for_a_while():
    groups = Groups([], learn=True)
    assert groups.followers_of("a", now=0.0) == ()
    now = pipeline(groups, "a", "b", start=1.0, times=60) - 6000.0
    assert groups.followers_of("a", now=now + 1) == ()
    assert names(groups.followers_of("a", now=10.0)) == ["b"]
    assert groups.followers_of("a", now=11.0) is groups.followers_of("a", now=12.0)


def test_very_many_answers_are_not_kept():
    groups = Groups([DOCUMENTS])
    for number in range(10_001):
        groups.followers_of(f"a{number}", now=0.0)
    assert len(groups._answers) == 1


def test_a_new_configuration_may_go_on_with_what_was_counted():
    groups = Groups([], learn=True)
    now = pipeline(groups, "a", "b")
    changed = Groups([DOCUMENTS], learn=groups.transitions or False)
    assert names(changed.followers_of("a", now=now)) == ["b"]
    empty = Transitions()
    assert Groups([], learn=empty).transitions is empty
