"""Alerts are raised when something lasts, cleared when it is over for long, and never twice in a row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.alerts import EVERY, WINDOW, Alerts, Finding, Traffic
from lorapick.model.alerts import Alert
from lorapick.model.effects import Clear, Raise


def convoy(found, *, lasts=None, after=3.0, **facts):
    return Finding(Alert.CONVOY, found, found if lasts is None else lasts, after=after, facts=facts)


class Story:
    """One look a second."""

    def __init__(self, *, clear_after=5.0):
        self.alerts, self.clear_after, self.now = Alerts(), clear_after, 0.0
        self.look(convoy(False))

    def look(self, *findings, seconds=EVERY):
        self.now += seconds
        effects = self.alerts.look([*findings], clear_after=self.clear_after, now=self.now, cause=7)
        self.alerts.check()
        return effects

    def looks(self, pattern, **kwargs):
        """A look for each character; what begins (+), ends (-), or neither."""
        told = {Raise: "+", Clear: "-"}
        effects = [self.look(convoy(mark == "x", **kwargs)) for mark in pattern]
        return "".join(told[type(each[0])] if each else "." for each in effects)


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ("xxxxx", "..+.."),
        ("xx.xx", "....+"),
        ("x.x.x.x.x.x", "..........."),
        ("...xxx......", ".....+....-."),
        ("xxx....x.....", "..+.........-"),
        ("xxx.....xxx", "..+....-..+"),
    ],
)
def test_what_lasts_is_raised_and_what_is_gone_for_long_is_cleared(seen, told):
    assert Story().looks(seen) == told


def test_what_needs_no_time_is_raised_at_the_first_look_and_may_last_by_less():
    story = Story()
    assert story.look(convoy(True, after=0.0, pods="a")) == [Raise(cause=7, alert="convoy", facts={"pods": "a"})]
    for _ in range(20):
        assert story.look(convoy(False, lasts=True, pods="b")) == []
    assert story.alerts.standing == {Alert.CONVOY: (2.0, {"pods": "b"})}, "as of the last look that saw it"
    assert story.looks("....") == "...."
    assert story.look(convoy(False)) == [Clear(cause=7, alert="convoy", facts={"seconds": 25.0})]
    assert story.alerts.standing == {}


def test_a_long_silence_says_nothing_for_an_alert_and_all_against_one():
    story = Story()
    assert story.look(convoy(True), seconds=3600.0) == []
    assert story.looks("x") == "+"
    assert type(story.look(convoy(False), seconds=3600.0)[0]) is Clear


def test_each_alert_stands_for_itself():
    story = Story()
    queues = Finding(Alert.QUEUES, True, True, after=0.0, facts={})
    assert [effect.alert for effect in story.look(convoy(True, after=0.0), queues)] == ["convoy", "queues"]
    story.looks("....")
    assert [type(effect) for effect in story.look(convoy(False), queues)] == [Clear]
    assert [*story.alerts.standing] == [Alert.QUEUES]


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from([1.0, 2.5, 40.0])), max_size=60))
def test_they_alternate_and_end(looks):
    story, standing = Story(), False
    for found, lasts, seconds in looks:
        for effect in story.look(convoy(found, lasts=lasts), seconds=seconds):
            assert (type(effect) is Clear) is standing
            standing = not standing
        assert bool(story.alerts.standing) is standing
    story.looks("......")
    assert not story.alerts.standing


def test_traffic_is_that_of_the_last_minute():
    traffic = Traffic()
    assert traffic.look(1000, 100, now=0.0) == (0, 0.0)
    assert traffic.look(1010, 105, now=10.0) == (5, 0.5)
    for second in range(11, 11 + int(WINDOW)):
        recent, share = traffic.look(1010 + second, 105, now=float(second))
    assert (recent, share) == (0, 0.0)
    assert traffic.look(1010 + second + 10, 106, now=second + 1.0) == (1, 1 / (10 + 59))
