"""Who is where, and how we know: inference, reports, commands, and which beats which [R3.1]."""

import pytest

from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.pods import LoadedAdapter
from lorapick.model.settings import LoadTimes, PickingSettings, Settings
from lorapick.model.tiers import Source
from lorapick.testing.playbook import Playbook, plain_pod

ADAPTERS = ("a", "b", "c", "d")
THRASHING = PickingSettings(policy="round-robin")
"""A policy that sends more adapters to a pod than it has slots, and loads several at once."""


def one_pod(slots=2, host=3, **settings):
    return Playbook(
        pods=[plain_pod("pod", max_loras=slots, max_cpu_loras=host)], adapters=ADAPTERS, settings=Settings(**settings)
    )


def tiers(book, *names):
    return [book.tier("pod", name) for name in names or ADAPTERS]


def on_gpu(*names):
    return tuple(LoadedAdapter(name=name, on_gpu=True) for name in names)


def in_host(*names):
    return tuple(LoadedAdapter(name=name, on_gpu=False) for name in names)


def belief(book, adapter):
    return next(belief for belief in book.fleet.state.residency.beliefs() if belief.adapter == adapter)


# -- inferred


def test_the_shadow_follows_what_we_routed():
    book = one_pod()
    for adapter in ("a", "b", "c", "d"):
        book.use(adapter, "pod")
    assert tiers(book) == ["disk", "cpu", "gpu_idle", "gpu_idle"]
    assert book.free("pod") == 0.0
    book.use("c", "pod")
    book.use("a", "pod")
    assert tiers(book) == ["gpu_idle", "disk", "gpu_idle", "cpu"]


def test_a_slot_is_taken_when_the_load_begins():
    book = one_pod()
    book.use("a", "pod")
    book.use("b", "pod")
    book.arrive("c")
    assert (tiers(book, "a", "c"), book.free("pod")) == (["cpu", "loading"], 0.0)


def test_the_end_of_a_request_is_a_use():
    """The engine touches an adapter in each step it runs in."""
    book = one_pod()
    book.arrive("a", id="long")
    book.start("long")
    book.use("b", "pod")
    book.end("long")
    book.use("c", "pod")
    assert tiers(book, "a", "b", "c") == ["gpu_idle", "cpu", "gpu_idle"]


def test_adapters_in_flight_keep_their_slots_and_the_next_one_waits():
    book = one_pod(picking=THRASHING)
    for adapter in ("a", "b", "c"):
        book.arrive(adapter, id=adapter)
        book.start(adapter) if adapter != "c" else None
    assert tiers(book, "a", "b", "c") == ["gpu_serving", "gpu_serving", "loading"]
    assert book.start("c") == ["note load_ended pod=pod adapter=c from=disk seconds=0"]
    assert tiers(book, "a", "b", "c") == ["cpu", "gpu_serving", "gpu_serving"], "it runs, so the oldest one has gone"


def test_a_load_takes_as_long_as_its_tier_says():
    book = one_pod(slots=1, load_times=LoadTimes(cpu=0.1, disk=0.7), picking=THRASHING)
    book.use("a", "pod")
    book.use("b", "pod")
    book.arrive("a")
    assert book.fleet.state.residency.loading_until(0, "a") == 0.1
    book.wait(0.1)
    book.arrive("c")
    assert book.fleet.state.residency.loading_until(0, "c") == pytest.approx(0.8)


def test_an_adapter_that_waits_for_a_slot_may_lose_its_host_copy():
    book = one_pod(slots=1, host=1, picking=THRASHING)
    book.use("b", "pod")
    book.arrive("a", id="a")
    book.start("a")
    book.arrive("b")
    assert book.tier("pod", "b") == "loading"
    book.use("c", "pod")
    assert book.tier("pod", "b") == "loading", "still on its way, from further away"


def test_nothing_is_known_of_a_fresh_pod_but_that_it_is_empty():
    book = one_pod()
    assert tiers(book) == ["disk"] * 4
    assert book.free("pod") == 2.0
    assert [*book.fleet.state.residency.beliefs()] == []


# -- activity, as `lora_requests_info` has it


def test_activity_puts_an_adapter_on_the_gpu_and_says_nothing_of_others():
    book = one_pod()
    book.use("b", "pod")
    book.report("pod", in_flight_adapters=("a",))
    assert tiers(book, "a", "b") == ["gpu_serving", "gpu_idle"]
    book.report("pod", in_flight_adapters=())
    assert tiers(book, "a", "b") == ["gpu_idle", "gpu_idle"]
    book.report("pod", in_flight_adapters=None)
    assert tiers(book, "a", "b") == ["gpu_idle", "gpu_idle"]


def test_activity_ends_a_load():
    """vLLM names an adapter once one of its requests has a token."""
    book = one_pod()
    book.arrive("a")
    book.now = 0.3
    assert book.report("pod", in_flight_adapters=("a",), since=0.2) == ["note load_ended pod=pod adapter=a from=disk"]
    assert tiers(book, "a") == ["gpu_serving"]


def test_activity_from_before_a_load_does_not_end_it():
    book = one_pod()
    book.now = 1.0
    book.arrive("a")
    book.now = 1.1
    assert book.report("pod", in_flight_adapters=("a",), since=0.9) == []
    assert tiers(book, "a") == ["loading"]


def test_an_adapter_whose_requests_only_wait_is_not_there_yet():
    """Emulators give each label of `lora_requests_info` its own names."""
    book = one_pod()
    book.arrive("a")
    book.now = 0.3
    apart = {"in_flight_adapters": ("a", "b"), "running_adapters": ("b",), "waiting_adapters": ("a",)}
    assert book.report("pod", since=0.2, **apart) == []
    assert tiers(book, "a", "b") == ["loading", "gpu_serving"]


def test_activity_from_before_a_failed_load_does_not_undo_it():
    book = one_pod()
    book.arrive("a")
    book.now = 1.0
    book.apply(events.LoadFailed, pod="pod", adapter="a", by=events.By.ENGINE, why="no such file")
    book.now = 1.1
    book.report("pod", in_flight_adapters=("a",), since=0.9)
    assert tiers(book, "a") == ["disk"]
    book.now = 1.3
    book.report("pod", in_flight_adapters=("a",), since=1.2)
    assert tiers(book, "a") == ["gpu_serving"]


# -- reported


def test_what_the_engine_reports_beats_what_we_inferred():
    book = one_pod()
    book.use("a", "pod")
    book.use("b", "pod")
    book.now = 1.0
    book.report("pod", loaded=(*on_gpu("c"), *in_host("a")))
    assert tiers(book, "a", "b", "c") == ["cpu", "disk", "gpu_idle"]
    assert book.free("pod") == 1.0
    assert {belief(book, name).source for name in "abc"} == {Source.REPORTED}


def test_one_adapter_reported_on_both_levels_is_on_the_gpu():
    book = one_pod()
    book.report("pod", loaded=(*on_gpu("a"), *in_host("a")))
    assert tiers(book, "a") == ["gpu_idle"]


def test_a_report_sent_before_a_load_began_does_not_end_it():
    book = one_pod()
    book.now = 1.0
    book.arrive("a")
    book.now = 1.1
    assert book.report("pod", loaded=(), since=0.9) == []
    assert (tiers(book, "a"), book.free("pod")) == (["loading"], 1.0)
    assert book.report("pod", loaded=on_gpu("a"), since=0.9) == []
    assert tiers(book, "a") == ["loading"], "then it was another copy, which the load has since replaced"


def test_a_report_without_an_adapter_that_loads_lets_it_load_on():
    book = one_pod()
    book.arrive("a")
    book.now = 0.3
    assert book.report("pod", loaded=(), since=0.2) == []
    assert tiers(book, "a") == ["loading"]
    assert book.report("pod", loaded=on_gpu("a"), since=0.3) == ["note load_ended pod=pod adapter=a from=disk"]
    assert tiers(book, "a") == ["gpu_serving"]


def test_a_report_sent_before_the_headers_came_does_not_take_the_adapter_away():
    book = one_pod()
    book.arrive("a")
    book.now = 1.0
    book.start("r1")
    book.now = 1.1
    book.report("pod", loaded=in_host("a"), since=0.9)
    assert tiers(book, "a") == ["gpu_serving"]
    book.report("pod", loaded=in_host("a"), since=1.05)
    assert tiers(book, "a") == ["cpu"]


def test_the_order_of_the_shadow_survives_a_report():
    book = one_pod()
    book.use("b", "pod")
    book.use("a", "pod")
    book.now = 1.0
    book.report("pod", loaded=on_gpu("a", "b"))
    book.use("c", "pod")
    assert tiers(book, "a", "b") == ["gpu_idle", "cpu"]


def test_names_a_pod_refuses_are_unregistered_whatever_is_in_its_memory():
    book = one_pod()
    book.use("a", "pod")
    book.report("pod", registered=("b",))
    assert tiers(book, "a", "b", "c") == ["unregistered", "disk", "unregistered"]
    book.report("pod", registered=("a", "b"))
    assert tiers(book, "a", "b", "c") == ["gpu_idle", "disk", "unregistered"]


# -- commanded


def test_a_commanded_load_says_so_until_the_engine_reports():
    book = one_pod()
    book.apply(events.LoadStarted, pod="pod", adapters=("a",), by=events.By.CONTROLLER)
    assert belief(book, "a").source is Source.COMMANDED
    book.wait(0.7)
    assert (belief(book, "a").tier.word, belief(book, "a").source) == ("gpu_idle", Source.COMMANDED)
    book.report("pod", loaded=on_gpu("a"))
    assert belief(book, "a").source is Source.REPORTED


def test_a_command_for_what_is_there_is_no_load():
    book = one_pod()
    book.use("a", "pod")
    loads = book.fleet.state.tally.loads
    book.apply(events.LoadStarted, pod="pod", adapters=("a",), by=events.By.CONTROLLER)
    assert (tiers(book, "a"), book.fleet.state.tally.loads) == (["gpu_idle"], loads)


# -- beliefs for people


def test_beliefs_say_since_when_and_on_what_evidence():
    book = one_pod()
    book.now = 1.0
    book.arrive("a")
    assert (belief(book, "a").since, belief(book, "a").last_evidence, belief(book, "a").in_flight) == (1.0, None, 1)
    book.now = 1.5
    book.start("r1")
    assert (belief(book, "a").since, belief(book, "a").last_evidence) == (1.5, 1.5)
    book.apply(events.PinSet, adapter="b", pin=PinSpec(pods=("pod",)))
    assert belief(book, "b").pinned
    assert [held.adapter for held in book.fleet.state.residency.beliefs()] == ["a", "b"]


def test_loading_rows_are_in_row_order():
    book = Playbook(pods=["x", "y", "z"], adapters=["a"])
    for pod in ("z", "x"):
        book.arrive("a", subset=(pod,))
    assert book.fleet.state.residency.loading_rows("a") == [0, 2]
    assert book.fleet.state.residency.loading_until(1, "a") is None


def test_own_requests_in_flight_are_counted_over_all_pods():
    book = Playbook(pods=["a", "b"], adapters=["legal", "other"], settings=Settings(picking=THRASHING))
    for pod in ("a", "a", "b"):
        book.arrive("legal", subset=(pod,))
    book.arrive("other", subset=("a",))
    residency = book.fleet.state.residency
    assert [residency.in_flight(name) for name in ("legal", "other", "unheard-of")] == [3, 1, 0]
    book.end("r1")
    book.gone("b")
    assert residency.in_flight("legal") == 1


# -- declared


@pytest.mark.parametrize("asked", [(), ("a",), ("a", "b")])
def test_what_is_declared_and_withdrawn_is_written_as_if_each_pod_were_looked_at(asked):
    book = Playbook(pods=[plain_pod("a"), plain_pod("b")], adapters=())
    residency, columns = book.fleet.state.residency, book.fleet.state.columns
    for name in asked:
        book.report(name, registered=("listed",))
    residency.home(0).cell("known")
    for change in (residency.declare, residency.retire, residency.declare):
        for name in ("known", "listed", "new"):
            change(name)
            for home in residency.homes():
                assert columns.adapter_row(name)[home.row] == residency.code(home, name), (change, name, home.name)
