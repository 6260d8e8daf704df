"""Pods under pressure give up idle adapters, where that frees memory."""

import pytest
from msgspec.structs import replace

from lorapick.core.admission.unloading import LONGEST, PAUSE
from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Note, Unload
from lorapick.model.pods import Engine, LoadedAdapter, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.settings import PickingSettings, PressureSettings, RetentionSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

NAMES = ["a", "b", "c", "d"]
TIGHT = {"memory_pressure": 0.92}


def sglang(name, **fields):
    return replace(plain_pod(name, **fields), engine=Engine.SGLANG)


def two_pods(engine=Engine.SGLANG, **settings):
    """Two pods; `x` has the four adapters, `y` may load any; nobody is asked for more than once."""
    pods = [replace(plain_pod(name), engine=engine) for name in "xy"]
    book = Playbook(pods=pods, adapters=NAMES, settings=Settings(**settings))
    for name in NAMES:
        book.wait(0.1)
        book.use(name, "x")
    return book


def asked(book):
    return [(effect.pod, effect.adapter) for effect in book.effects if isinstance(effect, Unload)]


def test_the_least_wanted_idle_adapter_is_unloaded_and_it_is_said():
    book = two_pods()
    for _ in range(5):
        book.use("a", "x")
    told = book.report("x", **TIGHT)
    assert asked(book) == [("x", "b")]
    assert told[0] == "note pressure pod=x tier=hard before=none pressure=0.92"
    note = next(each for each in book.effects if isinstance(each, Note) and each.kind == "unload")
    assert (note.facts["adapter"], note.facts["why"], note.facts["spare"]) == ("b", "pressure_hard", 4)
    assert book.effects[-1].why == Reason.PRESSURE_HARD.value
    assert book.fleet.state.tally.unloads == 1


@pytest.mark.parametrize("engine", [Engine.VLLM, Engine.TRTLLM, Engine.TRITON, Engine.LORAX])
def test_where_an_unload_cannot_be_had_or_frees_nothing_loads_go_elsewhere(engine):
    book = two_pods(engine)
    book.report("x", **TIGHT)
    assert asked(book) == []
    assert book.arrive("a") == ["r1 -> x (gpu_idle) else y"]
    book.apply(events.AdapterDeclared, adapter=Adapter(name="e", declared=True))
    assert book.arrive("e") == ["r2 -> y (disk)"]
    assert book.verdict("r2", "x").reason is Reason.PRESSURE_HARD


@pytest.mark.parametrize(("pressure", "unloads"), [(0.84, 0), (0.87, 0), (0.9, 1), (0.97, 1)])
def test_from_the_tier_hard_on(pressure, unloads):
    book = two_pods()
    book.report("x", memory_pressure=pressure)
    assert len(asked(book)) == unloads


def test_one_at_a_time_until_the_tier_is_left():
    book = two_pods()
    book.report("x", **TIGHT)
    book.report("x", **TIGHT)
    assert asked(book) == [], "the first is under way"
    book.wait(0.5)
    assert book.apply(events.Unloaded, pod="x", adapter="a") == []
    assert (book.tier("x", "a"), book.free("x")) == ("unregistered", 1.0)
    book.report("x", since=0.3, **TIGHT)
    assert asked(book) == [], "a report from before shows nothing of it"
    book.report("x", memory_pressure=0.89)
    assert asked(book) == [("x", "b")], "the tier is left two points below where it begins"
    book.apply(events.Unloaded, pod="x", adapter="b")
    book.report("x", memory_pressure=0.87)
    assert asked(book) == []
    assert book.fleet.state.tally.unloads == 2


def test_nobody_is_sent_there_for_it_meanwhile():
    book = two_pods()
    book.report("x", **TIGHT)
    assert asked(book) == [("x", "a")]
    assert book.arrive("a") == ["r1 -> y (disk)"]
    assert book.verdict("r1", "x").reason is Reason.PRESSURE_HARD
    assert book.arrive("b") == ["r2 -> x (gpu_idle)"]


def test_a_failure_leaves_it_there_and_gives_the_pod_a_rest():
    book = two_pods()
    book.report("x", **TIGHT)
    assert book.apply(events.UnloadFailed, pod="x", adapter="a", why="HTTP 500") == [
        "note unload_failed pod=x adapter=a why=HTTP 500"
    ]
    assert (book.tier("x", "a"), book.fleet.state.tally.unload_failures) == ("gpu_idle", 1)
    book.report("y")
    assert book.arrive("a") == ["r1 -> x (gpu_idle) else y"]
    book.end("r1")
    book.report("x", **TIGHT)
    assert asked(book) == []
    book.wait(PAUSE)
    book.report("y")
    book.report("x", **TIGHT)
    assert len(asked(book)) == 1


def test_what_was_not_asked_for_fails_without_a_trace():
    book = two_pods()
    assert book.apply(events.UnloadFailed, pod="x", adapter="a", why="?") == [
        "note unload_failed pod=x adapter=a why=?"
    ]
    assert book.apply(events.UnloadFailed, pod="ghost", adapter="a", why="?")[0].startswith("note unload_failed")
    assert book.fleet.state.tally.unload_failures == 0


def test_an_unload_of_which_nothing_is_heard_is_asked_again():
    book = two_pods()
    book.report("x", **TIGHT)
    book.wait(LONGEST)
    book.report("y")
    book.report("x", **TIGHT)
    assert asked(book) == [("x", "a")]


def test_who_is_in_use_or_pinned_stays():
    book = two_pods()
    book.arrive("a", subset=("x",))
    book.apply(events.PinSet, adapter="b", pin=PinSpec(pods=("x",)))
    book.apply(events.PinSet, adapter="c", pin=PinSpec(replicas=1))
    book.report("x", **TIGHT)
    assert asked(book) == [("x", "d")]
    book.apply(events.Unloaded, pod="x", adapter="d")
    book.report("x", **TIGHT)
    assert asked(book) == []


def test_what_the_engine_pins_or_others_use_stays():
    book = two_pods()
    book.wait(1.0)
    book.report("y")
    rows = tuple(LoadedAdapter(name=name, on_gpu=True, pinned=name == "a") for name in NAMES)
    book.report("x", loaded=rows)
    book.wait(1.0)
    book.report("x", in_flight_adapters=("b",), **TIGHT)
    assert asked(book) == [("x", "c")]


def test_an_adapter_that_a_request_waits_for_stays():
    book = two_pods()
    book.report("x", memory_pressure=0.96)
    assert asked(book) == [("x", "a")]
    book.apply(events.Unloaded, pod="x", adapter="a")
    # `y` takes nobody, so requests for `b` wait nowhere but for `x`.
    book.drain("y")
    book.report("x", **TIGHT)
    assert asked(book) == [], "no other pod would serve them"


@pytest.mark.parametrize("trouble", ["gone", "drains", "silent", "refuses", "pressed", "stranger", "other base"])
def test_no_adapter_loses_the_last_pod_that_serves_it(trouble):
    other = sglang("y", base_model="other") if trouble == "other base" else sglang("y")
    book = Playbook(pods=[sglang("x"), other], adapters=["a"])
    book.use("a", "x")
    match trouble:
        case "gone":
            book.gone("y")
        case "drains":
            book.drain("y")
        case "silent":
            book.wait(6.0)
        case "refuses":
            book.apply(events.PodSilent, pod="y", why=SilentWhy.REFUSED)
        case "pressed":
            book.report("y", memory_pressure=0.86)
        case "stranger":
            book.report("y", registered=("b",))
    book.report("x", **TIGHT)
    assert asked(book) == []


def test_two_pods_do_not_both_give_up_what_each_relies_on_the_other_for():
    book = Playbook(pods=[sglang("x"), sglang("y")], adapters=["a"])
    book.use("a", "x")
    book.use("a", "y")
    book.report("x", **TIGHT)
    assert asked(book) == [("x", "a")]
    book.report("y", **TIGHT)
    assert asked(book) == []
    book.apply(events.Unloaded, pod="x", adapter="a")
    book.report("y", **TIGHT)
    assert asked(book) == []


def test_a_pod_that_holds_it_serves_it_under_pressure_too():
    book = Playbook(pods=[sglang("x"), sglang("y")], adapters=["a"])
    book.use("a", "x")
    book.use("a", "y")
    book.report("y", memory_pressure=0.86)
    book.report("x", **TIGHT)
    assert asked(book) == [("x", "a")]


def test_a_draining_pod_is_left_alone():
    book = two_pods()
    book.drain("x")
    book.report("x", **TIGHT)
    assert asked(book) == []


def test_policies_that_have_only_what_their_originals_have_unload_nothing():
    book = two_pods(picking=PickingSettings(policy="least-loaded"))
    book.report("x", **TIGHT)
    assert asked(book) == []


def test_pressure_may_be_ignored():
    book = two_pods(pressure=PressureSettings(enabled=False))
    assert book.report("x", memory_pressure=1.0) == []
    assert book.arrive("a") == ["r1 -> x (gpu_idle) else y"]


def test_the_retention_policy_of_the_settings_decides():
    book = two_pods(retention=RetentionSettings(policy="lru"))
    for _ in range(5):
        book.use("b", "x")
    for name in ("c", "d", "a"):
        book.wait(0.1)
        book.use(name, "x")
    book.report("x", **TIGHT)
    assert asked(book) == [("x", "b")], "asked for most, but longest ago"


def test_a_restart_ends_what_was_asked_of_the_process_before():
    book = two_pods()
    book.report("x", process_start=100.0, **TIGHT)
    assert asked(book) == [("x", "a")]
    book.report("x", process_start=200.0, **TIGHT)
    assert asked(book) == [], "it has nothing to spare"
    assert book.fleet.state.unloads.under_way == 0
    book.apply(events.Unloaded, pod="x", adapter="a")
    assert book.tier("x", "a") == "unregistered"
