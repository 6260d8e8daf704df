"""Names, who accepts them, and who has been asked."""

from lorapick.core.residency.registry import Registry


def test_a_pod_not_asked_yet_accepts_what_the_operator_declared():
    registry = Registry()
    registry.declare("legal")
    registry.appear(0)
    assert registry.accepts(0, "legal") and not registry.accepts(0, "code")
    registry.retire("legal")
    assert not registry.accepts(0, "legal")


def test_what_a_pod_says_holds_for_it_alone():
    registry = Registry()
    registry.declare("legal")
    registry.appear(0)
    registry.appear(1)
    assert (registry.nobody_asked, registry.all_asked) == (True, False)
    assert registry.learn(0, ["code"]) == ["legal", "code"]
    assert (registry.nobody_asked, registry.all_asked) == (False, False)
    assert not registry.accepts(0, "legal") and registry.accepts(0, "code")
    assert registry.accepts(1, "legal") and not registry.accepts(1, "code")
    assert registry.learn(0, ["code"]) == []
    assert registry.learn(0, []) == ["code"]
    assert registry.learn(1, ["code"]) == ["legal", "code"]
    assert registry.all_asked
    registry.check()


def test_names_are_known_while_somebody_says_so():
    registry = Registry()
    registry.declare("legal")
    registry.appear(0)
    registry.appear(1)
    registry.learn(0, ["code"])
    registry.learn(1, ["code"])
    assert registry.names() == ["code", "legal"]
    registry.gone(0)
    assert registry.known("code")
    registry.ask_again(1)
    assert not registry.known("code") and registry.known("legal")
    assert registry.names() == ["legal"]
    registry.check()


def test_loads_and_unloads_that_a_pod_agreed_to():
    registry = Registry()
    registry.declare("legal")
    registry.appear(0)
    registry.add(0, "code")
    assert not registry.accepts(0, "code"), "a pod that has not been asked is not taken to have said all it accepts"
    registry.drop(0, "legal")
    assert not registry.accepts(0, "legal")
    registry.add(0, "code")
    registry.add(0, "code")
    assert registry.accepts(0, "code")
    registry.check()


def test_pods_alike_share_their_names_but_not_their_changes():
    registry = Registry()
    registry.appear(0)
    registry.appear(1)
    registry.learn(0, ["a", "b"])
    registry.learn(1, ["a", "b"])
    registry.add(0, "c")
    registry.drop(1, "a")
    assert [registry.accepts(0, name) for name in "abc"] == [True, True, True]
    assert [registry.accepts(1, name) for name in "abc"] == [False, True, False]
    registry.check()


def test_an_empty_fleet_has_nobody_to_ask():
    registry = Registry()
    assert registry.nobody_asked and registry.all_asked
