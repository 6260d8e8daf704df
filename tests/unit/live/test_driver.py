"""The live driver: answers at once, holds as futures, time by the event loop, and a log that reads back."""

import asyncio

import pytest

from lorapick.live.driver import Driver
from lorapick.live.eventlog import EventLog
from lorapick.live.ports import ModelCard, Usage
from lorapick.model import events
from lorapick.model.adapters import Adapter, Alias, AliasTarget
from lorapick.model.effects import Clear, Dispatch, Load, Raise, Reject
from lorapick.model.pods import Engine, PodReport, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.plan.datafiles import open_lines
from lorapick.sim.replay import replay
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import plain_pod
from lorapick.wire.eventlog import LogReader

SETTINGS = Settings(adapters=(Adapter(name="legal", source="/adapters/legal"), Adapter(name="code")))


class Kept:
    """An observer and a recorder that keeps what it is told."""

    def __init__(self):
        self.seen = []
        self.recorded = []

    def observe(self, event, effects):
        self.seen.append((event, effects))

    def record(self, event, outcome):
        self.recorded.append((event, outcome))

    def kinds(self):
        return [type(event).__name__ for event, _ in self.seen]


def drive(*pods, clock=None, settings=SETTINGS, **parts):
    """A driver whose clock is that of the event loop unless given, with these pods."""
    driver = Driver(settings, seed=1, clock=clock if clock is not None else asyncio.get_running_loop().time, **parts)
    for pod in pods:
        driver.submit(lambda t, i, pod=pod: events.PodAppeared(t=t, id=i, pod=pod))
    return driver


def request(request_id, model="legal", **fields):
    return Request(id=request_id, model=model, **fields)


def fill(driver, count):
    """Requests for one adapter until its pod is full; they stay in flight."""
    return [driver.ask(request(f"fill{number}")) for number in range(count)]


def small(name, **fields):
    return plain_pod(name, max_num_seqs=1, max_queue=1, **fields)


async def test_most_answers_come_at_once():
    took = []
    driver = drive(plain_pod("a"), plain_pod("b"))
    driver.on_pick = took.append
    answer = driver.ask(request("r1"))
    assert isinstance(answer, Dispatch)
    assert answer.target.address in ("a:8000", "b:8000")
    assert len(took) == 1 and took[0] > 0
    refused = await driver.decide(request("r2", model="nobody"))
    assert isinstance(refused, Reject) and refused.status == 503


@pytest.mark.looptime
async def test_a_held_request_goes_when_there_is_room(looptime):
    driver = drive(small("a"))
    fill(driver, 2)
    held = driver.ask(request("r3"))
    assert isinstance(held, asyncio.Future) and not held.done()
    driver.response_started("fill0", 200)
    assert not held.done()
    driver.ended("fill0", Outcome.SERVED, 200, None)
    answer = await held
    assert (answer.request_id, answer.target.pod) == ("r3", "a")
    assert looptime == 0
    assert driver.fleet.state.loads[0].in_flight == 2


@pytest.mark.looptime
async def test_the_driver_wakes_the_core_when_a_hold_runs_out(looptime):
    driver = drive(small("a"), small("b"))
    fill(driver, 2)
    answer = await driver.decide(request("r3"))
    assert answer.target.pod != driver.fleet.state.flights["fill0"].pod
    assert looptime == pytest.approx(1.4)


@pytest.mark.looptime
async def test_a_deadline_is_kept_by_the_loops_clock(looptime):
    driver = drive(small("a"))
    fill(driver, 2)
    answer = await driver.decide(request("r3", deadline=driver.now() + 0.25))
    assert (answer.status, answer.reason) == (503, Reason.DEADLINE)
    assert looptime == 0.25


@pytest.mark.looptime
async def test_no_timer_is_left_when_nobody_waits():
    kept = Kept()
    driver = drive(small("a"), observers=[kept])
    fill(driver, 2)
    held = driver.ask(request("r3"))
    driver.response_started("fill0", 200)
    driver.ended("fill0", Outcome.SERVED, 200, None)
    assert held.done()
    await asyncio.sleep(100)
    assert "Ticked" not in kept.kinds()


async def test_cancelling_abandons_and_counts():
    kept = Kept()
    driver = drive(small("a"), observers=[kept])
    fill(driver, 2)
    held = driver.ask(request("r3"))
    held.cancel()
    await asyncio.sleep(0)
    event, effects = kept.seen[-1]
    assert (event.request_id, event.outcome, effects) == ("r3", Outcome.ABANDONED, [])
    state = driver.fleet.state
    assert (state.tally.outcomes[Outcome.ABANDONED], len(state.holds), len(state.flights)) == (1, 0, 2)


async def test_a_client_that_leaves_as_it_is_dispatched_leaves_no_trace():
    driver = drive(small("a"))
    fill(driver, 2)
    held = driver.ask(request("r3"))
    held.cancel()
    driver.response_started("fill0", 200)
    driver.ended("fill0", Outcome.SERVED, 200, None)
    assert "r3" in driver.fleet.state.flights, "dispatched before the loop told us that the client had left"
    await asyncio.sleep(0)
    assert "r3" not in driver.fleet.state.flights
    assert driver.fleet.state.loads[0].in_flight == 1
    driver.fleet.check()


async def test_a_task_that_waits_can_be_cancelled():
    driver = drive(small("a"))
    fill(driver, 2)
    waiting = asyncio.create_task(driver.decide(request("r3")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert driver.fleet.state.tally.outcomes[Outcome.ABANDONED] == 1


async def test_an_id_used_twice_at_once_gets_a_fresh_one():
    driver = drive(plain_pod("a"))
    ids = [driver.ask(request(name)).request_id for name in ("x", "x", "x~2", "x")]
    assert ids[0] == "x" and len({*ids}) == 4
    assert len(driver.fleet.state.flights) == 4
    driver.ended("x", Outcome.SERVED, 200, None)
    assert driver.ask(request("x")).request_id == "x"


async def test_where_a_request_is_really_served():
    kept = Kept()
    driver = drive(plain_pod("a"), plain_pod("b"), observers=[kept])
    answer = driver.ask(request("r1"))
    other = "a:8000" if answer.target.pod == "b" else "b:8000"
    driver.dispatched("r1", answer.target.address)
    driver.dispatched("r1", "10.9.9.9:1")
    assert "RequestDispatched" not in kept.kinds(), "as picked, or by nobody we know: no news"
    driver.dispatched("r1", other)
    assert kept.seen[-1][0].pod == other[0]
    assert driver.fleet.state.flights["r1"].pod == other[0]


async def test_what_transports_say_becomes_events():
    kept = Kept()
    driver = drive(plain_pod("a"), observers=[kept])
    driver.ask(request("r1"))
    driver.response_started("r1", 200)
    driver.body_started("r1")
    driver.ended("r1", Outcome.SERVED, 200, Usage(prompt_tokens=3, cached_tokens=1, output_tokens=7))
    driver.refused(Reason.BODY_INVALID, 400)
    driver.ended("unheard-of", Outcome.FAILED, 502, None)
    started, began, ended, refused, _ = [event for event, _ in kept.seen[-5:]]
    assert (started.request_id, started.status) == ("r1", 200)
    assert (type(began), began.request_id) == (events.BodyStarted, "r1")
    assert (ended.prompt_tokens, ended.cached_tokens, ended.output_tokens) == (3, 1, 7)
    assert (refused.reason, refused.status) == (Reason.BODY_INVALID, 400)
    assert driver.fleet.state.tally.arrivals == 2
    assert [event.id for event, _ in kept.seen] == [*range(1, len(kept.seen) + 1)]


async def test_a_clock_that_goes_back_does_not_reach_the_core():
    clock = ManualClock(10.0)
    kept = Kept()
    driver = drive(plain_pod("a"), clock=clock, observers=[kept])
    clock.now = 9.0
    assert isinstance(driver.ask(request("r1")), Dispatch)
    assert [event.t for event, _ in kept.seen] == [10.0, 10.0]


async def test_alerts_are_logged(caplog):
    caplog.set_level("INFO")
    driver = drive(clock=ManualClock(5.0))
    driver._perform(Raise(cause=1, alert="convoy", facts={"pods": "a, b", "count": 2}))
    driver._perform(Clear(cause=2, alert="convoy", facts={"seconds": 31.0}))
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "alert convoy: pods=a, b count=2"),
        ("INFO", "alert convoy is over: seconds=31"),
    ]


async def test_what_nobody_can_perform_is_an_error(caplog):
    driver = drive(clock=ManualClock(5.0))
    driver._perform(Load(cause=4, pod="a", adapters=("legal",), why="pinned"))
    assert "no driver for Load yet" in caplog.text
    with pytest.raises(AssertionError, match="no way to perform"):
        driver._perform("what?")


async def test_the_log_leads_to_the_same_decisions(tmp_path):
    kept, path = Kept(), tmp_path / "events.jsonl"
    with EventLog(path, settings=SETTINGS, seed=1) as log:
        driver = drive(small("a"), recorder=log, observers=[kept])
        fill(driver, 2)
        assert isinstance(driver.ask(request("r3", blocks=(1, 2**64 - 1), session="s")), asyncio.Future)
        report = PodReport(waiting=1, running=1, registered=("legal",))
        driver.submit(lambda t, i: events.PodReported(t=t, id=i, pod="a", report=report, since=t))
        driver.submit(lambda t, i: events.ConfigChanged(t=t, id=i, settings=SETTINGS))
        driver.ended("fill0", Outcome.SERVED, 200, None)
        driver.submit(lambda t, i: events.PodSilent(t=t, id=i, pod="a", why=SilentWhy.TIMEOUT))
    reader = LogReader(open_lines(path))
    assert (reader.header.settings, reader.header.seed) == (SETTINGS, 1)
    assert [step.event for step in reader] == [event for event, _ in kept.seen]
    found = replay(LogReader(open_lines(path)))
    assert (found.difference, found.answers) == (None, {"dispatch": 3, "hold": 1})


async def test_an_event_that_is_refused_is_recorded_with_the_error():
    kept = Kept()
    driver = drive(plain_pod("a"), recorder=kept)
    driver.ask(request("r1"))
    with pytest.raises(ValueError, match="in flight already"):
        driver.submit(lambda t, i: events.RequestArrived(t=t, id=i, request=request("r1")))
    assert [type(event).__name__ for event, _ in kept.recorded] == ["PodAppeared", "RequestArrived", "RequestArrived"]
    assert [type(outcome).__name__ for _, outcome in kept.recorded] == ["list", "list", "ValueError"]


async def test_models_are_listed_once_each():
    settings = Settings(
        adapters=SETTINGS.adapters, aliases=(Alias(name="law", to=(AliasTarget(adapter="legal"),)),), base_model="llama"
    )
    driver = drive(settings=settings)
    assert [card.id for card in driver.models()] == ["code", "legal", "law"]
    assert {card.parent for card in driver.models()} == {"llama"}
    for name in ("a", "b"):
        driver.submit(lambda t, i, name=name: events.PodAppeared(t=t, id=i, pod=plain_pod(name)))
    report = PodReport(registered=("legal", "extra"))
    driver.submit(lambda t, i: events.PodReported(t=t, id=i, pod="a", report=report))
    assert [*driver.models()] == [
        ModelCard(id="base", root="base"),
        ModelCard(id="code", parent="base"),
        ModelCard(id="extra", parent="base"),
        ModelCard(id="legal", parent="base", root="/adapters/legal"),
        ModelCard(id="law", parent="base"),
    ]


async def test_requests_are_worded_and_those_that_cannot_be_are_over():
    pod = plain_pod("t", engine=Engine.TRTLLM)
    driver = drive(pod)
    kept = Kept()
    driver.observers.append(kept)
    answer = driver.ask(request("r1"))
    assert isinstance(answer, Reject) and "nobody knows where legal is" in answer.message
    await asyncio.sleep(0)
    assert kept.kinds() == ["RequestArrived", "RequestEnded"] and kept.seen[-1][0].outcome is Outcome.ABANDONED
    driver.wordings.path_of = {"legal": "/adapters/legal"}.get
    answer = driver.ask(request("r2"))
    assert answer.wording.fields["lora_request"]["lora_path"] == "/adapters/legal"


async def test_a_request_that_waited_is_worded_too():
    driver = drive(small("s", engine=Engine.SGLANG))
    assert all(isinstance(each, Dispatch) for each in fill(driver, 2))
    waiting = driver.ask(request("r3"))
    assert isinstance(waiting, asyncio.Future)
    driver.response_started("fill0", 200)
    driver.ended("fill0", Outcome.SERVED, 200, None)
    answer = await waiting
    assert answer.wording.fields == {"lora_path": "legal"}


async def test_what_nobody_decides_goes_to_engines_that_refuse_what_they_do_not_know():
    driver = drive(plain_pod("s", engine=Engine.SGLANG), plain_pod("v"), plain_pod("t", engine=Engine.TRTLLM))
    assert {driver.any_endpoint() for _ in range(6)} == {"v:8000"}
    assert drive(plain_pod("s", engine=Engine.SGLANG)).any_endpoint() == "s:8000", "better than none"


async def test_any_endpoint_goes_round_the_pods_that_take_requests():
    clock = ManualClock()
    driver = drive(clock=clock)
    assert driver.any_endpoint() is None
    for name in ("a", "b", "c"):
        driver.submit(lambda t, i, name=name: events.PodAppeared(t=t, id=i, pod=plain_pod(name)))
    driver.submit(lambda t, i: events.PodDraining(t=t, id=i, pod="c"))
    assert {driver.any_endpoint() for _ in range(4)} == {"a:8000", "b:8000"}
    clock.advance(4.0)
    driver.submit(lambda t, i: events.PodReported(t=t, id=i, pod="b", report=PodReport()))
    clock.advance(4.0)
    assert {driver.any_endpoint() for _ in range(4)} == {"b:8000"}
    clock.advance(9.0)
    assert {driver.any_endpoint() for _ in range(4)} == {"a:8000", "b:8000"}, "old reports are better than none"
