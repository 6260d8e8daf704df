"""The pair of pods where a request costs the least time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.columns import PodColumns
from lorapick.core.frozen import FrozenView
from lorapick.core.picking.legs import Leg, Legs
from lorapick.core.picking.links import transfer_seconds
from lorapick.core.picking.pairing import PAIRS, split
from lorapick.core.picking.pick import pick
from lorapick.core.picking.query import Costs, Query
from lorapick.core.picking.verdicts import oracle
from lorapick.model.disaggregation import Decide, DisaggregationSettings
from lorapick.model.pods import Pod, Role
from lorapick.model.tiers import Tier

SETTINGS = DisaggregationSettings(decide=Decide.ALWAYS, node_label="node")


def pod(name, *, zone=None, node=None, role=Role.DECODE):
    labels = {"node": node} if node is not None else {}
    return Pod(name=name, address=f"{name}:1", role=role, zone=zone, labels=labels)


def columns_of(*pods):
    columns = PodColumns()
    for each in pods:
        row = columns.add(each)
        columns.gate[row] = 0
        columns.good_until(row, 1e9)
        columns.settle(row)
    return columns


def legs_of(*legs, tokens=1000, settings=SETTINGS, per_token=1e-4):
    ranked = sorted(legs, key=lambda leg: leg.seconds + leg.price)
    by_zone, by_node = {}, {}
    for leg in ranked:
        if leg.pod.zone is not None:
            by_zone.setdefault(leg.pod.zone, leg)
        if "node" in leg.pod.labels:
            by_node.setdefault(leg.pod.labels["node"], leg)
    return Legs(settings, tokens, per_token, ranked[0], by_zone, by_node)


def query_of(columns, legs, *, tiers=None, costs=None):
    query = Query("r", "legal" if tiers else None)
    if tiers:
        codes = columns.adapter_row("legal")
        for row, tier in enumerate(tiers):
            codes[row] = tier
        query.codes = codes
    query.legs = legs
    query.costs = costs or Costs(base=0.5, each=0.01, from_cpu=0.1, from_disk=0.7)
    return query


def test_a_load_that_ends_before_the_prefill_is_not_waited_for():
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    leg = Leg(1, columns.pods[1], 1.0, 0.0)
    found = split(query_of(columns, legs_of(leg), tiers=[Tier.DISK, Tier.GPU_IDLE]), legs_of(leg), view=columns, row=0)
    assert found.costs.decode == pytest.approx(0.5)


def test_what_outlasts_the_prefill_is_waited_for():
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    leg = Leg(1, columns.pods[1], 0.2, 0.0)
    legs = legs_of(leg)
    found = split(query_of(columns, legs, tiers=[Tier.DISK, Tier.GPU_IDLE]), legs, view=columns, row=0)
    assert found.costs.decode == pytest.approx(0.7 - 0.2 - found.costs.transfer + 0.5)


def test_a_load_counts_in_full_for_the_choice():
    columns = columns_of(pod("busy"), pod("idle"), pod("p", role=Role.PREFILL))
    columns.load[0] = 10
    legs = legs_of(Leg(2, columns.pods[2], 1.0, 0.0))
    query = query_of(columns, legs, tiers=[Tier.GPU_IDLE, Tier.DISK, Tier.GPU_IDLE])
    assert pick(query, columns, now=0.0, draw=0.0, policy=PAIRS).row == 0


def test_harm_of_a_load_on_the_pod_that_prefills_counts():
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    cheap, dear = (legs_of(Leg(1, columns.pods[1], 0.3, price)) for price in (0.0, 2.0))
    query = query_of(columns, cheap)
    one, other = (split(query, legs, view=columns, row=0) for legs in (cheap, dear))
    assert other.seconds - one.seconds == pytest.approx(2.0)
    assert other.costs.together == one.costs.together
    assert other.costs.counted == other.seconds


def test_alone_a_prefill_holds_up_everybody_there():
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    columns.load[0] = 10
    legs = legs_of(Leg(1, columns.pods[1], 0.1, 0.0))
    found = split(query_of(columns, legs), legs, view=columns, row=0)
    assert found.costs.alone == pytest.approx(1e-4 * 1000 * 11 + 0.5 + 0.2)


@pytest.mark.parametrize(
    ("decide", "uncached", "split_up"),
    [
        (Decide.ALWAYS, 5000, True),
        (Decide.NEVER, 1, False),
        (Decide.TOKENS, 1000, True),
        (Decide.TOKENS, 1001, False),
        (Decide.COST, 1, False),
    ],
)
def test_who_decides(decide, uncached, split_up):
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    settings = DisaggregationSettings(decide=decide, uncached_tokens=uncached)
    legs = legs_of(Leg(1, columns.pods[1], 5.0, 0.0), settings=settings)
    found = split(query_of(columns, legs), legs, view=columns, row=0)
    assert (found.leg is not None) is split_up
    pair = found.costs.prefill + found.costs.transfer + found.costs.decode
    assert found.seconds == pytest.approx(pair if split_up else found.costs.alone)


def test_by_cost_the_cheaper_way_wins():
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    columns.load[0] = 30
    settings = DisaggregationSettings(decide=Decide.COST)
    legs = legs_of(Leg(1, columns.pods[1], 0.1, 0.0), settings=settings)
    assert split(query_of(columns, legs), legs, view=columns, row=0).leg is not None


def test_a_pod_is_no_pair_with_itself():
    columns = columns_of(pod("b", role=Role.BOTH), pod("d"))
    legs = legs_of(Leg(0, columns.pods[0], 0.0, 0.0))
    assert split(query_of(columns, legs), legs, view=columns, row=0).leg is None
    assert split(query_of(columns, legs), legs, view=columns, row=1).leg is not None


def test_the_transfer_counts():
    columns = columns_of(pod("far", zone="x"), pod("near", zone="y"), pod("p", zone="y", role=Role.PREFILL))
    legs = legs_of(Leg(2, columns.pods[2], 0.1, 0.0), tokens=20_000)
    query = query_of(columns, legs)
    assert pick(query, columns, now=0.0, draw=0.0, policy=PAIRS).row == 1


def test_only_what_is_not_cached_is_transferred_and_computed():
    columns = columns_of(pod("d"), pod("p", role=Role.PREFILL))
    legs = legs_of(Leg(1, columns.pods[1], 0.1, 0.0), tokens=8000)
    query = query_of(columns, legs)
    query.kv, query.hashed = {0: 0.5}, 0.5
    found = split(query, legs, view=columns, row=0)
    speed = SETTINGS.kv_bytes_per_token / SETTINGS.links.elsewhere
    assert found.costs.transfer == pytest.approx(SETTINGS.link_latency + 6000 * speed)
    assert found.costs.alone == pytest.approx(0.5 + 6000 * 1e-4)


PLACES = st.tuples(st.sampled_from([None, "x", "y"]), st.sampled_from([None, "n1", "n2"]))


@given(
    decoders=st.lists(st.tuples(PLACES, st.integers(0, 20), st.sampled_from([1, 2, 3, 4])), min_size=1, max_size=6),
    cached=st.dictionaries(st.integers(0, 5), st.floats(0.0, 1.0), max_size=6),
    hashed=st.sampled_from([1.0, 0.3]),
    prefillers=st.lists(st.tuples(PLACES, st.floats(0.0, 3.0), st.sampled_from([0.0, 1.0])), min_size=1, max_size=5),
    tokens=st.integers(1, 50_000),
)
def test_no_other_pair_is_better(decoders, cached, hashed, prefillers, tokens):
    pods = [pod(f"d{number}", zone=place[0], node=place[1]) for number, (place, *_) in enumerate(decoders)]
    pods += [
        pod(f"p{number}", zone=place[0], node=place[1], role=Role.PREFILL)
        for number, (place, *_) in enumerate(prefillers)
    ]
    columns = columns_of(*pods)
    for row, (_, load, _) in enumerate(decoders):
        columns.load[row] = load
    first = len(decoders)
    legs = [Leg(first + n, pods[first + n], seconds, price) for n, (_, seconds, price) in enumerate(prefillers)]
    tiers = [Tier(tier) for *_, tier in decoders] + [Tier.DISK] * len(prefillers)
    query = query_of(columns, legs_of(*legs, tokens=tokens), tiers=tiers)
    query.kv, query.hashed = cached, hashed

    def every_pair(row):
        waits = {Tier.DISK: 0.7, Tier.CPU: 0.1}.get(tiers[row], 0.0)
        rest = 0.5 + 0.02 * columns.load[row]
        for leg in legs:
            left = tokens - tokens * hashed * cached.get(row, 0.0)
            moved = transfer_seconds(leg.pod, pods[row], tokens=left, settings=SETTINGS)
            yield leg.seconds + moved + waits + rest + leg.price

    best = min(value for row in range(first) for value in every_pair(row))
    rows = [*range(first)]
    assert -max(PAIRS.score_rows(query, columns, rows=rows)) == pytest.approx(best)
    may = np.zeros(columns.rows, dtype=bool)
    may[rows] = True
    assert PAIRS.scores(query, columns, may=may)[rows].tolist() == PAIRS.score_rows(query, columns, rows=rows)
    view = FrozenView(columns, "legal", reads=PAIRS.reads)
    assert oracle(query, view, now=0.0, draw=0.3, policy=PAIRS) == (
        pick(query, columns, now=0.0, draw=0.3, policy=PAIRS).row
    )
