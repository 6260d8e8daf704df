"""A fleet that splits requests has two sides, and each is placed by itself: pins, orders, calendars, pods that come."""

import pytest
from placement_kit import ask, fleet, loaded, notes, pin, placement, row, tick

from lorapick.core.placement import sides
from lorapick.model import events
from lorapick.model.adapters import AffinityGroup, Schedule, Trigger
from lorapick.model.disaggregation import Decide, DisaggregationSettings
from lorapick.model.effects import Note, Touch
from lorapick.model.placement import Side
from lorapick.model.pods import Role
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import plain_pod

ROLES = {"p": Role.PREFILL, "d": Role.DECODE, "b": Role.BOTH}
LONG = {"prompt_tokens": 2000, "stream": True}
FRIDAY = 1_760_054_400.0
"""2025-10-10 00:00 UTC."""


def pods(*names, **fields):
    """Pods whose role is their first letter."""
    return [plain_pod(name, role=ROLES[name[0]], **fields) for name in names]


def split(*names, settings=None, **fields):
    """A fleet of such pods."""
    return fleet(*pods(*names, **fields), settings=settings)


def settled(book):
    """Answer loads until none is under way; where they went."""
    found = []
    for _ in range(3):
        while under_way := [*placement(book).commands.under_way.items()]:
            for at, command in under_way:
                found.append((book.fleet.state.columns.targets[at].pod, command.adapter))
                loaded(book, *found[-1])
        tick(book)
    return sorted(found)


def letters(found):
    """Of a list of (pod, adapter): the sides, without numbers."""
    return sorted(pod[0] for pod, _ in found)


def pinned(book, name="x"):
    return sorted(book.fleet.state.columns.targets[each].pod for each in placement(book).pinned.rows[name])


# -- which pods are on which side


@pytest.mark.parametrize(
    ("names", "there"),
    [
        ("pd", [Side.DECODE, Side.PREFILL]),
        ("pb", [Side.DECODE, Side.PREFILL]),
        ("db", [Side.DECODE]),
        ("bb", [Side.DECODE]),
    ],
)
def test_sides_of_a_fleet(names, there):
    book = split(*(f"{letter}{number}" for number, letter in enumerate(names)))
    assert [*sides.there(book.fleet.state)] == there


def test_who_does_both_decodes():
    book = split("p1", "b2", "d3")
    state = book.fleet.state
    assert sides.rows_of(state, Side.PREFILL) == [row(book, "p1")]
    assert sides.rows_of(state, Side.DECODE) == [row(book, "b2"), row(book, "d3")]


def test_where_nobody_splits_pods_that_prefill_are_on_no_side():
    never = Settings(disaggregation=DisaggregationSettings(decide=Decide.NEVER))
    book = split("p1", "b2", settings=never)
    assert [*sides.there(book.fleet.state)] == [Side.DECODE]
    assert sides.of(book.fleet.state, row(book, "p1")) is None
    assert pin(book, "x", replicas=1) == [("Load", "b2", "x")]
    assert pinned(book) == ["b2"]


def test_each_side_has_its_holders():
    book = split("p1", "d2", "b3", "d4")
    state = book.fleet.state
    codes = state.columns.adapter_row("x")
    for pod, tier in {"p1": Tier.GPU_IDLE, "d2": Tier.CPU, "b3": Tier.GPU_SERVING, "d4": Tier.LOADING}.items():
        codes[row(book, pod)] = tier

    def holders(side, **least):
        return [state.columns.targets[each].pod for each in sides.holders(state, "x", side=side, **least)]

    assert holders(Side.PREFILL) == ["p1"]
    assert holders(Side.DECODE) == ["b3", "d4"]
    assert holders(Side.DECODE, least=Tier.GPU_IDLE) == ["b3"]
    assert sides.holders(state, "nobody's") == []
    # Who changes its role takes what it holds to the other side.
    state.columns.describe(row(book, "b3"), plain_pod("b3", role=Role.PREFILL))
    assert (holders(Side.PREFILL), holders(Side.DECODE)) == (["p1", "b3"], ["d4"])


# -- pins


def test_a_count_is_of_pods_that_decode_and_one_more_prefills():
    book = split("p1", "p2", "p3", "d1", "d2", "d3")
    pin(book, "x", replicas=2)
    assert letters(settled(book)) == ["d", "d", "p"]
    assert len(pinned(book)) == 3
    assert placement(book).missing_since == {}


@pytest.mark.parametrize(("count", "prefill"), [(0, 0), (1, 1), (3, 3)])
def test_the_number_that_prefill_can_be_said(count, prefill):
    book = split("p1", "p2", "p3", "d1", "d2")
    pin(book, "x", replicas=1, prefill_replicas=count)
    assert letters(settled(book)) == ["d"] + ["p"] * prefill


def test_a_pin_may_be_of_the_side_that_prefills_alone():
    book = split("p1", "p2", "d1")
    pin(book, "x", prefill_replicas=2)
    assert settled(book) == [("p1", "x"), ("p2", "x")]


def test_named_pods_are_of_whichever_side_they_are_and_nobody_else_is_meant():
    book = split("p1", "p2", "d1", "d2")
    pin(book, "x", pods=("p2", "d1"))
    pin(book, "y", pods=("d2",))
    pin(book, "z", pods=("p1",))
    assert settled(book) == [("d1", "x"), ("d2", "y"), ("p1", "z"), ("p2", "x")]
    assert placement(book).pinned.problems == {}


def test_labels_mean_pods_of_both_sides():
    gold = {"labels": {"tier": "gold"}}
    book = fleet(*pods("p1", "d1", **gold), *pods("p2", "d2"))
    pin(book, "x", selector={"tier": "gold"})
    assert settled(book) == [("d1", "x"), ("p1", "x")]


def test_a_missing_pin_is_counted_on_its_side_and_brought_back():
    book = split("p1", "d1")
    pin(book, "x", replicas=1)
    settled(book)
    book.apply(events.Evicted, pod="p1", adapter="x", tier=0)
    assert tick(book) == [("Load", "p1", "x")]
    assert [*placement(book).missing_since] == [(row(book, "p1"), "x")]


def test_a_pin_that_fits_one_side_only_says_which_does_not():
    book = split("p1", "d1", "d2", max_loras=1)
    pin(book, "x", replicas=1)
    pin(book, "y", replicas=1)
    assert notes(book) == ["pin_refused"]
    assert "to prefill: it is to be on 1 pod, and 0 pods can take it" in book.effects[0].facts["why"]
    pin(book, "y", replicas=1, prefill_replicas=0)
    assert {"d1", "d2"} & {pod for pod, _ in settled(book)}


def test_copies_to_prefill_where_nobody_does_are_a_problem():
    book = split("b1", "b2")
    pin(book, "x", replicas=1, prefill_replicas=2)
    assert "2 pods that prefill for others, and none does" in book.effects[0].facts["why"]


def test_a_pin_by_count_reserves_pods_that_prefill_only_if_it_says_how_many():
    book = split("p1", "p2", "d1", "d2")
    pin(book, "x", replicas=1, reserve=True)
    assert sum(each.reserved for each in placement(book).keeps.values()) == 1
    pin(book, "x", replicas=1, prefill_replicas=1, reserve=True)
    assert sum(each.reserved for each in placement(book).keeps.values()) == 2


def test_pins_lie_as_they_would_when_the_fleet_begins_to_split():
    book = split("b1", "b2")
    pin(book, "x", replicas=1)
    settled(book)
    book.appear(pods("p3")[0])
    book.report("p3")
    assert settled(book) == [("p3", "x")]
    book.gone("p3")
    tick(book)
    assert len(pinned(book)) == 1


# -- orders, calendars, triggers, groups


def test_an_order_is_of_replicas_on_each_side_as_far_as_there_are_pods():
    book = split("p1", "d1", "d2", "d3")
    ask(book, "x", replicas=2)
    assert letters(settled(book)) == ["d", "d", "p"]
    assert placement(book).orders == []


def test_an_order_for_named_pods_is_for_these():
    book = split("p1", "p2", "d1")
    ask(book, "x", "p2")
    assert settled(book) == [("p2", "x")]
    assert placement(book).orders == []


def test_an_order_by_labels_of_pods_that_prefill_is_done_there():
    book = fleet(*pods("p1", "p2", zone="east"), *pods("d1", zone="west"))
    ask(book, "x", replicas=2, selector={"zone": "east"})
    assert settled(book) == [("p1", "x"), ("p2", "x")]
    assert placement(book).orders == []


def test_the_calendar_counts_on_each_side():
    preload = Schedule(adapters=("x",), cron="* * * * *", timezone="UTC", lasts=3600.0, replicas=2)
    book = split("p1", "p2", "p3", "d1", "d2", "d3", settings=Settings(schedules=(preload,)))
    book.apply(events.Ticked, wall=FRIDAY)
    assert letters(settled(book)) == ["d", "d", "p", "p"]
    before = sorted(placement(book).wanted)
    tick(book)
    assert sorted(placement(book).wanted) == before


def test_so_do_triggers():
    book = split("p1", "p2", "d1", "d2", settings=Settings(triggers=(Trigger(event="login", preload="x", lasts=60.0),)))
    book.apply(events.TriggerFired, name="login", attributes={})
    assert letters(settled(book)) == ["d", "p"]


def test_a_follower_comes_beside_its_leader_on_each_side():
    follow = AffinityGroup(name="course", first="x", then=("y",))
    book = split("p1", "p2", "d1", "d2", settings=Settings(groups=(follow,)))
    for pod in ("p2", "d1"):
        ask(book, "x", pod)
        settled(book)
    book.arrive("x", **LONG)
    assert settled(book) == [("d1", "y"), ("p2", "y")]


# -- pods that come and go


WARM = Settings(placement=PlacementSettings(warm_up=30.0, handover=30.0))


def busy_with(book, *names):
    """Several requests for each adapter, prefilled and decoded."""
    for name in names:
        for number in range(5):
            request_id = f"{name}{number}"
            book.arrive(name, id=request_id, **LONG)
            for touch in [each for each in book.effects if isinstance(each, Touch)]:
                book.apply(events.Touched, pod=touch.pod, adapter=touch.adapter)
            book.prefilled(request_id)
            book.start(request_id)
            book.end(request_id)
            book.now += 0.2


def test_a_new_pod_is_warmed_with_what_its_own_side_lacks_or_asks_for():
    book = split("p1", "d1", settings=WARM)
    busy_with(book, "x", "y")
    book.appear(pods("p2")[0])
    book.report("p2")
    assert row(book, "p2") in placement(book).warming
    assert settled(book) == [("p2", "x"), ("p2", "y")]
    assert row(book, "p2") not in placement(book).warming


def test_a_pod_that_is_the_first_of_its_side_is_not_waited_for():
    book = split("d1", "d2", settings=WARM)
    busy_with(book, "x")
    book.appear(pods("p1")[0])
    assert placement(book).warming == {}


@pytest.mark.parametrize("side", "pd")
def test_a_leaving_pod_hands_over_to_its_own_side(side):
    book = split("p1", "p2", "d1", "d2", settings=WARM)
    busy_with(book, "x")
    leaves = next(f"{side}{number}" for number in (1, 2) if book.tier(f"{side}{number}", "x") == "gpu_idle")
    book.drain(leaves)
    assert row(book, leaves) in placement(book).leaving
    takes = f"{side}{3 - int(leaves[1])}"
    assert settled(book) == [(takes, "x")]
    assert placement(book).leaving == {}


def one_slot_each(**settings):
    """One pod of each side, whose only slot has an adapter that is asked for."""
    book = split("p1", "d1", max_loras=1, settings=Settings(**settings))
    busy_with(book, "x")
    return book


def test_a_copy_that_prefills_is_not_the_last_copy_that_decodes():
    book = one_slot_each(triggers=(Trigger(event="e", preload="y", lasts=9.0),))
    book.apply(events.TriggerFired, name="e", attributes={})
    said = [each for answer in book.answers for each in answer if isinstance(each, Note)]
    refused = [(each.facts["pod"], each.facts["reason"]) for each in said if each.kind == "load_refused"]
    assert sorted(refused) == [("d1", "evicts_last_copy"), ("p1", "evicts_last_copy")]


def test_operators_insist_on_both_sides():
    book = one_slot_each()
    ask(book, "y", replicas=1)
    assert letters(settled(book)) == ["d", "p"]
