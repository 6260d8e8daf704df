"""What an event log says of the order of its requests."""

import pytest

from lorapick.model import events as said
from lorapick.model.adapters import Alias, AliasTarget
from lorapick.model.effects import Dispatch, Hold, Reject
from lorapick.model.picks import Pick
from lorapick.model.pods import Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.settings import Settings
from lorapick.sim.bounds.logged import Order, logged_adapters
from lorapick.wire.eventlog import LineEncoder, LogError, LogReader, header_of

SETTINGS = Settings(
    base_model="base",
    aliases=(
        Alias(name="one", to=(AliasTarget(adapter="a"),)),
        Alias(name="two", to=(AliasTarget(adapter="a"), AliasTarget(adapter="b"))),
    ),
)
POD = Pod(name="p", address="10.0.0.1:80", base_model="other-base")


class Log:
    """Lines of a log, as a picker would write them."""

    def __init__(self):
        self.encoder = LineEncoder()
        self.lines = [self.encoder.header(header_of(SETTINGS, seed=1, epoch=0.0))]
        self.number = 0
        self.step(said.PodAppeared, (), pod=POD)

    def step(self, kind, effects, **fields):
        self.number += 1
        event = kind(t=float(self.number), id=self.number, **fields)
        self.lines += bytes(self.encoder.step(event, effects)).splitlines(keepends=True)

    def arrive(self, name, model, *effects):
        self.step(said.RequestArrived, effects, request=Request(id=name, model=model))

    def read(self, order):
        return list(logged_adapters(LogReader(self.lines), order))


def pick(name):
    return Pick(request_id=name, adapter=None, pod=None, score=None, tier=None)


def dispatch(name, model=None):
    target = Target(pod="p", address=POD.address)
    return Dispatch(cause=1, request_id=name, target=target, fallbacks=(), pick=pick(name), model=model)


def hold(name):
    return Hold(cause=1, request_id=name, until=9.0, reason=Reason.HELD_FOR_LOAD, pick=pick(name))


def reject(name):
    return Reject(cause=1, request_id=name, status=404, reason=Reason.ADAPTER_UNKNOWN, message="")


@pytest.fixture
def log():
    log = Log()
    log.arrive("r1", "a", dispatch("r1"))
    log.arrive("r2", "b", hold("r2"))
    log.arrive("r3", "base", dispatch("r3"))
    log.arrive("r4", "nobody", reject("r4"))
    log.arrive("r5", "one", dispatch("r5", "a"))
    log.arrive("r6", "c", hold("r6"))
    log.arrive("r7", "other-base", dispatch("r7"))
    log.step(said.Ticked, (dispatch("r2"),))
    log.step(said.RequestEnded, (), request_id="r6", outcome=Outcome.ABANDONED)
    log.step(said.RequestEnded, (), request_id="r1", outcome=Outcome.SERVED)
    return log


def test_arrivals_in_their_order_without_those_rejected_at_once(log):
    assert log.read(Order.ARRIVAL) == ["a", "b", None, "a", "c", None]


def test_dispatches_in_theirs(log):
    assert log.read(Order.DISPATCH) == ["a", None, "a", None, "b"]


def test_an_alias_of_several_adapters_is_resolved_by_its_dispatch(log):
    log.arrive("r8", "two", dispatch("r8", "b"))
    assert log.read(Order.DISPATCH)[-1] == "b"
    with pytest.raises(LogError, match=r"log:\d+: request r8 asks for two, an alias of 2 adapters; .* dispatch only"):
        log.read(Order.ARRIVAL)


def test_new_settings_bring_new_names(log):
    settings = Settings(base_model="third", aliases=(Alias(name="one", to=(AliasTarget(adapter="d"),)),))
    log.step(said.ConfigChanged, (), settings=settings)
    log.arrive("r8", "one", dispatch("r8", "d"))
    log.arrive("r9", "third", dispatch("r9"))
    log.arrive("r10", "two", dispatch("r10"))
    assert log.read(Order.ARRIVAL)[-3:] == log.read(Order.DISPATCH)[-3:] == ["d", None, "two"]


def test_a_held_request_that_is_rejected_later_was_not_sent(log):
    log.arrive("r8", "d", hold("r8"))
    log.step(said.Ticked, (reject("r8"),))
    assert log.read(Order.DISPATCH)[-1] == "b"
    assert log.read(Order.ARRIVAL)[-1] == "d"
