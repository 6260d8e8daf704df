"""Who could prefill elsewhere, found in two ways."""

import pytest

from lorapick.core.columns import PodColumns
from lorapick.core.picking.legs import Leg
from lorapick.core.picking.prefillers import Asked, as_leg, find, find_by_columns, find_by_loop, leg_of
from lorapick.core.picking.query import Costs, Query
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod, Role
from lorapick.model.tiers import Tier

SETTINGS = DisaggregationSettings(node_label="node")
WAYS = pytest.mark.parametrize("way", [find_by_loop, find_by_columns])


def pod(name, *, zone=None, node=None, role=Role.PREFILL):
    return Pod(name=name, address=f"{name}:1", role=role, zone=zone, labels={"node": node} if node is not None else {})


def columns_of(*pods):
    columns = PodColumns()
    for each in pods:
        row = columns.add(each)
        columns.good_until(row, 1e9)
        columns.leave(row, 4.0, kept=0.0)
        columns.settle(row)
    return columns


def query_of(columns, *tiers, kv=None):
    query = Query("r", "legal")
    query.codes = columns.adapter_row("legal")
    for row, tier in enumerate(tiers):
        query.codes[row] = tier
    query.costs = Costs(from_cpu=0.1, from_disk=0.7, remaining={1: 0.3})
    query.kv = kv or {}
    return query


def asked(**fields):
    return Asked(**{"settings": SETTINGS, "tokens": 1000, "per_token": 1e-3, **fields})


@WAYS
def test_the_queue_the_rest_of_the_prompt_and_a_load_take_time(way):
    columns = columns_of(pod("a"), pod("b"), pod("c"), pod("d", role=Role.DECODE))
    columns.load_price[0] = 5.0
    query = query_of(columns, Tier.DISK, Tier.LOADING, Tier.GPU_IDLE, Tier.GPU_IDLE, kv={2: 0.5})
    wanted = asked(queued={2: 200})
    legs = [leg_of(query, columns, row=row, asked=wanted) for row in range(3)]
    assert [leg.seconds for leg in legs] == pytest.approx([1.7, 1.3, 0.7])
    assert [leg.price for leg in legs] == [5.0, 0.0, 0.0]
    found = way(query, columns, now=0.0, asked=wanted)
    assert found.best == legs[2] == Leg(2, columns.pods[2], legs[2].seconds, 0.0)
    assert (found.tokens, found.per_token) == (1000, 1e-3)


@WAYS
def test_each_place_has_its_best(way):
    columns = columns_of(pod("a", zone="x", node="n"), pod("b", zone="x"), pod("c", zone="y", node="n"), pod("d"))
    query = query_of(columns, *[Tier.GPU_IDLE] * 4)
    found = way(query, columns, now=0.0, asked=asked(queued={0: 9, 1: 5, 2: 7}))
    assert {zone: leg.row for zone, leg in found.by_zone.items()} == {"x": 1, "y": 2}
    assert {node: leg.row for node, leg in found.by_node.items()} == {"n": 2}
    assert found.best.row == 3
    assert "z" not in found.by_zone
    assert len(found.by_node) == 1


@WAYS
def test_of_equals_the_one_with_more_free_slots_and_then_the_lower_row(way):
    columns = columns_of(*[pod(name, zone="x") for name in "abcd"])
    query = query_of(columns, *[Tier.GPU_IDLE] * 4)
    assert way(query, columns, now=0.0, asked=asked()).best.row == 0
    columns.free_slots[1] = columns.free_slots[2] = 2.0
    found = way(query, columns, now=0.0, asked=asked())
    assert found.best.row == found.by_zone["x"].row == 1


@WAYS
def test_a_place_where_nobody_can_has_none(way):
    columns = columns_of(pod("a", zone="x", node="n"), pod("b", zone="y", node="m", role=Role.DECODE))
    query = query_of(columns, Tier.GPU_IDLE, Tier.GPU_IDLE)
    found = way(query, columns, now=0.0, asked=asked())
    assert ([*found.by_zone], [*found.by_node]) == (["x"], ["n"])
    assert found.by_zone.get("y") is None


@WAYS
def test_who_is_paused_or_would_load_a_second_time_is_left_out(way):
    columns = columns_of(pod("a"), pod("b"))
    query = query_of(columns, Tier.DISK, Tier.LOADING)
    assert way(query, columns, now=0.0, asked=asked(may_load=False)).best.row == 1
    assert way(query, columns, now=0.0, asked=asked(paused=(1,))).best.row == 0
    assert way(query, columns, now=0.0, asked=asked(paused=(1,), may_load=False)) is None


def test_a_copy_looks_for_who_prefills():
    query = query_of(columns_of(pod("a")), Tier.DISK)
    query.session_row = 0
    copied = as_leg(query)
    assert (copied.prefill, copied.session_row, copied.codes, copied.costs) == (True, -1, query.codes, query.costs)
    assert not query.prefill


def test_nobody_is_asked_in_vain():
    assert find(Query("r", None), PodColumns(), now=0.0, asked=asked()) is None
