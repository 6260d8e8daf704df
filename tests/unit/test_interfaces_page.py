"""docs/interfaces.md lists what the model has, no more and no less."""

import inspect
import re
from pathlib import Path

from lorapick.model import effects, events
from lorapick.model.alerts import Alert
from lorapick.model.reasons import STATUS, Reason

PAGE = (Path(__file__).parent.parent.parent / "docs" / "interfaces.md").read_text()


def _members(module, base):
    return {
        name
        for name, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, base) and member is not base and member.__module__ == module.__name__
    }


def _table(head):
    section = PAGE.split(f"| {head} |", 1)[1].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", section, re.MULTILINE))


def test_events_and_effects_are_listed():
    assert set(_table("event")) == _members(events, events.Event)
    assert set(_table("effect")) == _members(effects, effects.Effect)


def test_alerts_are_listed():
    assert [*_table("alert")] == [alert.value for alert in Alert]


def test_reasons_and_statuses_are_listed():
    listed = _table("reason")
    assert set(listed) == {reason.value for reason in Reason}
    assert {word: int(status) for word, status in listed.items() if status != "-"} == {
        reason.value: status for reason, status in STATUS.items()
    }
