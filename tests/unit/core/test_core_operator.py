"""Operator intent, lifecycle events, the clock, and what is refused until it is built."""

import pytest

from lorapick.model import events
from lorapick.model.adapters import Adapter, Alias, AliasTarget, PinSpec
from lorapick.model.settings import (
    AdmissionSettings,
    Fairness,
    LoadTimes,
    PickingSettings,
    PlacementSettings,
    Settings,
)
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod

BY = events.By.CONTROLLER


def pinned(book):
    """Pods on which `legal` is pinned, as picking sees it."""
    book.arrive("legal", id=f"look-{len(book.events)}")
    verdicts = book.explain(book.effects[0].request_id).verdicts
    return sorted(verdict.pod for verdict in verdicts if verdict.pinned)


# -- loads


def test_a_commanded_load_is_a_load_from_start_to_end():
    book = Playbook(pods=["a"], adapters=["legal"])
    assert book.apply(events.LoadStarted, pod="a", adapters=("legal",), by=BY) == []
    assert (book.tier("a", "legal"), book.free("a")) == ("loading", 3.0)
    told = book.apply(events.LoadSucceeded, pod="a", adapter="legal", by=BY, seconds=0.3)
    assert told == ["note load_ended pod=a adapter=legal from=disk seconds=0.3"]
    assert book.tier("a", "legal") == "gpu_idle"
    assert book.fleet.state.tally.loads == 1


def test_a_load_is_counted_once_whoever_speaks_of_it():
    book = Playbook(pods=["a"], adapters=["legal", "code"])
    book.arrive("legal")
    book.apply(events.LoadStarted, pod="a", adapters=("legal", "code"), by=events.By.ENGINE)
    assert book.fleet.state.tally.loads == 2
    book.apply(events.LoadStarted, pod="a", adapters=("legal",), by=BY)
    assert book.fleet.state.tally.loads == 2


def test_a_load_from_host_memory_says_so():
    book = Playbook(pods=[plain_pod("a", max_loras=1)], adapters=["legal", "code"])
    book.use("legal", "a")
    book.use("code", "a")
    told = book.apply(events.LoadSucceeded, pod="a", adapter="legal", by=BY)
    assert told == ["note load_ended pod=a adapter=legal from=cpu"]
    assert book.tier("a", "code") == "cpu"


def test_a_failed_load_leaves_the_adapter_on_disk():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.apply(events.LoadStarted, pod="a", adapters=("legal",), by=BY)
    told = book.apply(events.LoadFailed, pod="a", adapter="legal", by=BY, why="no such file")
    assert told == ["note load_failed pod=a adapter=legal why=no such file"]
    assert (book.tier("a", "legal"), book.free("a")) == ("disk", 3.0)  # it may have it all the same
    book.apply(events.LoadFailed, pod="a", adapter="legal", by=BY, why="no such file", lasting=True)
    assert book.free("a") == 4.0
    ghost = book.apply(events.LoadFailed, pod="ghost", adapter="legal", by=BY, why="gone")
    assert ghost == ["note load_failed pod=ghost adapter=legal why=gone"]


@pytest.mark.parametrize(("told", "believed"), [(Tier.CPU, "cpu"), (Tier.DISK, "disk"), (Tier.GPU_IDLE, "disk")])
def test_an_eviction_moves_the_adapter_down(told, believed):
    book = Playbook(pods=["a"], adapters=["legal"])
    book.use("legal", "a")
    assert book.apply(events.Evicted, pod="a", adapter="legal", tier=told) == []
    assert (book.tier("a", "legal"), book.free("a")) == (believed, 4.0)


def test_an_unload_makes_the_name_unknown_and_frees_nothing():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.use("legal", "a")
    book.apply(events.Unloaded, pod="a", adapter="legal")
    assert (book.tier("a", "legal"), book.free("a")) == ("unregistered", 3.0)
    book.apply(events.LoadSucceeded, pod="a", adapter="legal", by=BY)
    assert book.tier("a", "legal") == "gpu_idle"


# -- pins


def test_pins_by_pod_and_by_selector():
    west = plain_pod("west", labels={"zone": "west"})
    book = Playbook(pods=["a", west], adapters=["legal"], settings=Settings(placement=PlacementSettings(enabled=False)))
    assert book.apply(events.PinSet, adapter="legal", pin=PinSpec(pods=("a",))) == []
    assert pinned(book) == ["a"]
    book.apply(events.PinSet, adapter="legal", pin=PinSpec(selector={"zone": "west"}))
    assert pinned(book) == ["west"]
    book.apply(events.PinCleared, adapter="legal")
    assert pinned(book) == []
    book.apply(events.PinCleared, adapter="never-pinned")


def test_an_empty_pin_names_no_pod():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.apply(events.PinSet, adapter="legal", pin=PinSpec())
    assert pinned(book) == []


def test_pins_by_count_take_as_many_pods_and_are_refused_when_there_are_fewer():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    told = book.apply(events.PinSet, adapter="legal", pin=PinSpec(replicas=3))
    assert told == ["note pin_refused adapter=legal why=it is to be on 3 pods, and 2 pods can take it"]
    assert pinned(book) == []
    book.apply(events.PinSet, adapter="legal", pin=PinSpec(replicas=2))
    assert pinned(book) == ["a", "b"]


def test_pins_hold_on_pods_that_come_later_and_over_restarts():
    book = Playbook(adapters=[Adapter(name="legal", pin=PinSpec(pods=("a",)))])
    book.appear("a")
    book.report("a", process_start=1.0)
    book.report("a", process_start=2.0)
    assert pinned(book) == ["a"]


def test_a_pin_of_a_declaration_goes_with_it_and_an_operators_pin_stays():
    book = Playbook(pods=["a", "b"], adapters=[Adapter(name="legal", pin=PinSpec(pods=("a",)))])
    assert pinned(book) == ["a"]
    book.apply(events.AdapterChanged, adapter=Adapter(name="legal"))
    assert pinned(book) == []
    book.apply(events.PinSet, adapter="legal", pin=PinSpec(pods=("b",)))
    book.apply(events.AdapterChanged, adapter=Adapter(name="legal", rank=8))
    assert pinned(book) == ["b"]
    book.apply(events.AdapterRetired, adapter="legal")
    book.apply(events.AdapterDeclared, adapter=Adapter(name="legal"))
    assert pinned(book) == []


# -- adapters and settings


def test_declared_adapters_are_served_before_pods_have_been_asked():
    book = Playbook(pods=["a"])
    assert book.arrive("legal") == ["r1 refused: 503 no_pod"]
    book.apply(events.AdapterDeclared, adapter=Adapter(name="legal", rank=128))
    assert book.arrive("legal") == ["r2 refused: 503 no_pod"]
    assert book.verdict("r2", "a").reason.value == "rank_too_large"
    book.apply(events.AdapterChanged, adapter=Adapter(name="legal", rank=64))
    assert book.arrive("legal") == ["r3 -> a (disk)"]


def test_a_retired_adapter_is_served_only_where_pods_accept_it():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    book.report("a", registered=("legal",))
    book.apply(events.AdapterRetired, adapter="legal")
    assert (book.tier("a", "legal"), book.tier("b", "legal")) == ("disk", "unregistered")
    assert book.arrive("legal") == ["r1 -> a (disk)"]


def test_new_settings_rule_the_next_decision():
    book = Playbook(pods=["a", "b"], adapters=["legal", "old"])
    book.use("legal", "a")
    to = (AliasTarget(adapter="legal"),)
    told = book.apply(
        events.ConfigChanged,
        settings=Settings(
            adapters=(Adapter(name="legal"), Adapter(name="new", pin=PinSpec(pods=("b",)))),
            aliases=(Alias(name="law", to=to),),
            picking=PickingSettings(policy="round-robin", fallbacks=0, prefix_blocks_per_pod=1),
            admission=AdmissionSettings(patience=9.0, fairness=Fairness.LEAST_ATTAINED),
            load_times=LoadTimes(disk=9.0),
            placement=PlacementSettings(enabled=False),
        ),
    )
    assert told == []
    assert book.tier("a", "legal") == "gpu_idle", "beliefs are kept"
    assert book.arrive("law") == ["r1 -> b (disk) as legal"]
    assert book.arrive("old") == ["r2 refused: 503 no_pod"]
    state = book.fleet.state
    assert (state.queues.patience, state.queues.fairness) == (9.0, Fairness.LEAST_ATTAINED)
    assert book.arrive("new", blocks=(1, 2)) == ["r3 -> a (disk)"]
    assert state.prefixes.match((1, 2)) == {0: 0.5}
    assert state.residency.loading_until(0, "new") == 9.0


def test_a_pin_that_left_the_settings_is_cleared():
    first = Settings(adapters=(Adapter(name="legal", pin=PinSpec(pods=("a",))),))
    book = Playbook(pods=["a"], settings=first)
    assert pinned(book) == ["a"]
    book.apply(events.ConfigChanged, settings=Settings(adapters=(Adapter(name="legal"),)))
    assert pinned(book) == []


def test_settings_with_an_unknown_policy_change_nothing():
    book = Playbook(pods=["a"])
    before = book.fleet.state.settings
    with pytest.raises(ValueError, match=r"picking.policy: 'magic' is unknown; use one of weighted, cost, round-robin"):
        book.apply(events.ConfigChanged, settings=Settings(picking=PickingSettings(policy="magic")))
    assert book.fleet.state.settings is before
    assert book.arrive("base") == ["r1 -> a (base)"]


def test_peers_are_not_listened_to_unless_the_settings_say_so():
    told = Playbook().apply(events.PeerReported, peer="two")
    assert told == ["note peers_off peer=two why=no `peers` in the settings"]
