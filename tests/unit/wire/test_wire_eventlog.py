"""Lines of an event log: what is written is read, and what is no log is named by file, line and cause."""

import msgspec
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Dispatch, Hold, Note, Reject
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.settings import PickingSettings, Settings
from lorapick.model.tiers import Tier
from lorapick.wire.eventlog import (
    Decided,
    Dispatched,
    Failed,
    Full,
    Held,
    LineEncoder,
    LogError,
    LogReader,
    Rejected,
    header_of,
    result_of,
)

SETTINGS = Settings(adapters=(Adapter(name="legal", rank=16),), picking=PickingSettings(policy="round-robin"))
PICK = Pick(request_id="r1", adapter="legal", pod="a", score=0.1 + 0.2, tier=Tier.CPU)
DISPATCH = Dispatch(
    cause=1,
    request_id="r1",
    target=Target(pod="a", address="a:1"),
    fallbacks=(Target(pod="b", address="b:1"), Target(pod="c", address="c:1")),
    pick=PICK,
    model="legal@2",
    prefill=Target(pod="d", address="d:1"),
)
HOLD = Hold(cause=1, request_id="r2", until=1.7, reason=Reason.HELD_FOR_LOAD, pick=PICK)
REJECT = Reject(cause=1, request_id="r3", status=429, reason=Reason.QUEUE_FULL, message="full")
NOTE = Note(cause=1, kind="load_ended", facts={"pod": "a", "seconds": 0.1})


def arrived(number, *, t=None, **fields):
    request = Request(id=f"r{number}", model="legal", **fields)
    return events.RequestArrived(t=float(number) if t is None else t, id=number, request=request)


def ended(number, *, t=None):
    t = float(number) if t is None else t
    return events.RequestEnded(t=t, id=number, request_id=f"r{number}", outcome=Outcome.SERVED, status=200)


def written(*steps, settings=SETTINGS):
    """Lines of a log with these events and outcomes."""
    encoder = LineEncoder()
    head = encoder.header(header_of(settings, seed=7, epoch=1.5))
    return (head + b"".join(bytes(encoder.step(event, outcome)) for event, outcome in steps)).splitlines(keepends=True)


def read(lines):
    reader = LogReader(lines, name="x.jsonl")
    return [(step.event, step.result) for step in reader], reader


def test_a_log_reads_back():
    steps = [
        (arrived(1, blocks=(2**64 - 1, 0), deadline=1 / 3), [NOTE, DISPATCH]),
        (ended(2), []),
        (ended(3), [HOLD, REJECT]),
        (arrived(4), ValueError("in flight already")),
        (ended(5), [NOTE]),
        (ended(6), [REJECT]),
    ]
    found, reader = read(written(*steps))
    assert [event for event, _ in found] == [event for event, _ in steps]
    assert [result for _, result in found] == [
        Decided(
            id=1,
            answers=(
                Dispatched(
                    request_id="r1",
                    pod="a",
                    fallbacks=("b", "c"),
                    model="legal@2",
                    tier="cpu",
                    score=0.1 + 0.2,
                    prefill="d",
                ),
            ),
        ),
        Decided(id=2, answers=()),
        Decided(
            id=3,
            answers=(
                Held(request_id="r2", reason=Reason.HELD_FOR_LOAD, until=1.7),
                Rejected(request_id="r3", reason=Reason.QUEUE_FULL, status=429),
            ),
        ),
        Failed(id=4, error="ValueError", detail="in flight already"),
        Decided(id=5, answers=()),
        Decided(id=6, answers=(Rejected(request_id="r3", reason=Reason.QUEUE_FULL, status=429),)),
    ]
    assert reader.header.settings == SETTINGS
    assert (reader.header.seed, reader.header.epoch, reader.cut_at) == (7, 1.5, None)
    assert reader.size == sum(map(len, written(*steps)))
    assert reader.lines == len(written(*steps))


def test_only_what_was_decided_has_a_line():
    lines = written((arrived(1), [NOTE]), (arrived(2), []), (arrived(3), [NOTE, REJECT]))
    assert [msgspec.json.decode(line).get("type") for line in lines] == [
        None,
        "RequestArrived",
        "RequestArrived",
        "RequestArrived",
        "Decided",
    ]
    assert msgspec.json.decode(lines[-1])["answers"] == [
        {"kind": "reject", "request_id": "r3", "reason": "queue_full", "status": 429}
    ]


def test_what_came_of_the_last_event_may_be_missing():
    *lines, decided = written((arrived(1), [REJECT]), (arrived(2), [REJECT]))
    assert [result is None for _, result in read(lines)[0]] == [False, True]
    assert [result is None for _, result in read([*lines, decided])[0]] == [False, False]


@pytest.mark.parametrize("length", [1, 40, -1])
def test_a_last_line_that_is_cut_off_counts_for_nothing(length):
    *lines, last = written((arrived(1), [REJECT]), (arrived(2), []))
    found, reader = read([*lines, last[: length if length > 0 else -2]])
    assert [event.id for event, _ in found] == [1]
    assert reader.cut_at == 4


def test_a_last_line_without_its_end_counts_when_it_is_whole():
    *lines, last = written((arrived(1), [REJECT]), (arrived(2), []))
    found, reader = read([*lines, last.rstrip()])
    assert [event.id for event, _ in found] == [1, 2]
    assert reader.cut_at is None


GOOD = written((arrived(1), [REJECT]), (arrived(2), [REJECT]), (ended(3), []))

FULL = LineEncoder().full(ended(4))


def with_line(number, line):
    return [*GOOD[: number - 1], line, *GOOD[number:]]


def line_of(value):
    return msgspec.json.encode(value) + b"\n"


def test_a_log_that_is_full_says_from_where_on_it_is_silent():
    found, reader = read([*GOOD, FULL])
    assert [event.id for event, _ in found] == [1, 2, 3]
    assert reader.full == Full(id=4, t=4.0)
    # Nothing is missing before that line.
    assert found[-1][1] == Decided(id=3, answers=())
    assert read(GOOD)[0][-1][1] is None
    assert read(GOOD)[1].full is None


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], r"^x\.jsonl is empty; an event log begins with a header"),
        ([GOOD[0][:-9]], r"^x\.jsonl:1: the header is cut off"),
        ([GOOD[0].rstrip()], r"^x\.jsonl:1: the header is cut off"),
        ([b"a,b,c\n"], r"^x\.jsonl:1: no header of an event log: JSON is malformed"),
        (GOOD[1:], r"^x\.jsonl:1: the log begins in its middle; a replay needs it from its header on"),
        (GOOD[2:], r"^x\.jsonl:1: the log begins in its middle"),
        ([b'{"a":1}\n'], r"^x\.jsonl:1: no header of an event log: Object missing required field `version`"),
        ([*GOOD, FULL, GOOD[-1]], r":8: stands behind the line that ends the log"),
        ([*GOOD, FULL, FULL], r":8: stands behind the line that ends the log"),
        ([b"[" * 9000 + b"\n"], r"^x\.jsonl:1: no header"),
        (
            with_line(1, b'{"version":1,"epoch":0,"configuration":"aa","seed":0}\n'),
            r":1: an event log of format 1; this",
        ),
        (with_line(1, b'{"version":2,"epoch":0,"configuration":"aa","seed":0}\n'), r":1: no header.*missing required"),
        (with_line(2, b"{not json}\n"), r"^x\.jsonl:2: no event: JSON is malformed"),
        (with_line(2, b"\n"), r"^x\.jsonl:2: no event: Input data was truncated"),
        (with_line(2, b"\xff\n"), r"^x\.jsonl:2: no event"),
        (with_line(4, b'{"type":"Foo"}\n'), r"^x\.jsonl:4: no event: Invalid value 'Foo' - at `\$\.type`"),
        (with_line(4, b'{"type":"Ticked","t":"x","id":1}\n'), r"^x\.jsonl:4: no event: Expected `float`, got `str`"),
        (with_line(4, b'{"type":"Ticked","y":' + b"[" * 9000 + b"\n"), r"^x\.jsonl:4: no event"),
        (with_line(2, GOOD[2]), r":2: what came of event 1 does not stand behind that event"),
        (with_line(4, GOOD[2]), r":4: what came of event 1 does not stand behind that event"),
        (with_line(6, GOOD[4]), r":6: what came of event 2 does not stand behind that event"),
        (with_line(4, line_of(ended(1, t=2.0))), r":4: event 1 stands behind event 1; ids only rise"),
        (with_line(6, line_of(ended(9, t=1.5))), r":6: t goes back from 2\.0 to 1\.5; a picker's clock never does"),
    ],
)
def test_what_is_no_log_is_named(lines, said):
    with pytest.raises(LogError, match=said):
        read(lines)


def test_other_settings_than_those_of_the_run_are_refused():
    header = msgspec.json.decode(GOOD[0])
    header["settings"]["picking"]["policy"] = "weighted"
    with pytest.raises(LogError, match=r":1: the settings have the hash \w{16}, the events were recorded under \w{16}"):
        read(with_line(1, line_of(header)))


def test_settings_of_a_later_version_may_have_more_keys():
    header = msgspec.json.decode(GOOD[0])
    header["settings"]["invention"] = {"b": 1.0, "a": [True]}
    sealed = msgspec.json.encode(header["settings"], order="sorted")
    header["configuration"] = xxhash.xxh64_hexdigest(sealed)
    assert read(with_line(1, line_of(header)))[1].header.settings == SETTINGS


def test_the_last_event_is_checked_too():
    with pytest.raises(LogError, match=r":3: t goes back"):
        read(written((ended(1), []), (ended(2, t=0.5), [])))


def test_a_failure_is_told_by_its_class():
    assert result_of(ended(1), KeyError("x")) == Failed(id=1, error="KeyError", detail="'x'")


@given(data=st.data())
def test_damage_is_an_error_or_a_log(data):
    """Whatever happens to the bytes: steps, or `LogError`."""
    content = bytearray(b"".join(GOOD))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        match data.draw(st.integers(0, 2)):
            case 0:
                del content[at : at + data.draw(st.integers(1, 80))]
            case 1:
                content[at:at] = data.draw(st.binary(max_size=9))
            case _:
                content[at : at + 1] = data.draw(st.sampled_from([b"\n", b"", b"0", b"-1e999", b"null", b'"', b"{"]))
    try:
        found, reader = read(bytes(content).splitlines(keepends=True))
    except LogError:
        return
    assert len(found) <= len(GOOD)
    assert reader.header.settings is not None


def test_ends_of_prefills_in_older_logs_have_no_reason():
    line = b'{"type":"PrefillEnded","t":1.0,"id":7,"request_id":"r1","ok":false}'
    assert msgspec.json.decode(line, type=events.AnyEvent) == events.PrefillEnded(
        t=1.0, id=7, request_id="r1", ok=False
    )
