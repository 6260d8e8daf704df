"""Events as values of the log: each one tagged, each one read back as it was written."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model import events
from lorapick.testing import strategies as some

KINDS = events.AnyEvent.__args__
TIMES = st.floats(0, 1e9)


def event(kind, **fields):
    return st.builds(kind, t=TIMES, id=st.integers(0, 2**62), **fields)


EVENTS = st.one_of(
    event(events.PodAppeared, pod=some.pods()),
    event(events.PodReported, pod=some.pod_names, report=some.finite_reports(), since=st.none() | TIMES),
    event(events.RequestArrived, request=some.requests("r1", now=5.0)),
    event(events.RequestEnded, request_id=st.text(), outcome=some.endings, status=st.none() | st.integers(100, 599)),
    event(events.Evicted, pod=some.pod_names, adapter=some.adapter_names, tier=some.tiers),
    event(events.PinSet, adapter=some.adapter_names, pin=some.pins()),
    event(events.ConfigChanged, settings=some.settings()),
    event(events.LeadershipChanged, leads=st.booleans()),
    event(events.KvStored, pod=some.pod_names, adapter=st.none(), blocks=st.just((2**64 - 1, 0))),
)


@given(EVENTS)
def test_written_and_read_back(event):
    line = msgspec.json.encode(event)
    assert b"\n" not in line
    assert msgspec.json.decode(line, type=events.AnyEvent) == event


def test_the_tag_is_the_name_of_the_event():
    assert all(kind.__struct_config__.tag == kind.__name__ for kind in KINDS)
    line = msgspec.json.encode(events.Ticked(t=1.5, id=7))
    assert line == b'{"type":"Ticked","t":1.5,"id":7,"wall":null}'


def test_events_are_frozen_and_named_in_the_past_tense():
    endings = ("ed", "Gone", "Draining", "Set", "Silent")
    assert all(kind.__struct_config__.frozen for kind in KINDS)
    assert [kind.__name__ for kind in KINDS if not kind.__name__.endswith(endings)] == []
