"""Pairs found by loop and by columns against the slow oracle, over fleets of any size, roles and places."""

from math import inf
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.columns import CODE, PINNED, TIER_BITS, PodColumns
from lorapick.core.frozen import FrozenView
from lorapick.core.picking.filters import LOADING, veto
from lorapick.core.picking.pairing import PAIRS, split, split_rows
from lorapick.core.picking.pick import NOBODY, pick_by_columns, pick_by_loop
from lorapick.core.picking.prefillers import Asked, as_leg, find_by_columns, find_by_loop, leg_of
from lorapick.core.picking.query import Costs, Query
from lorapick.core.picking.verdicts import oracle
from lorapick.model.disaggregation import Decide, DisaggregationSettings, LinkSpeeds
from lorapick.model.pods import Role
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import plain_pod

NOW = 10.0
EQUAL_LINKS = LinkSpeeds(same_node=1e9, same_zone=1e9, elsewhere=1e9)


class World:
    """A fleet with roles, a request, and what prefill is like; from one seed, as in `test_pick_oracle`."""

    def __init__(self, seed: int, size: int) -> None:
        self.name = f"World({seed}, {size})"
        self.chance = Random(seed)
        self.placed = self.chance.choice(["nowhere", "few", "many"])
        self.columns = self.fleet(size)
        self.query = self.ask()
        self.asked = self.wish()

    def __repr__(self) -> str:
        return self.name

    def rarely(self, value, *, otherwise):
        return value if self.chance.random() < 1 / 6 else otherwise

    def share(self):
        """Few values, so that ties happen; and any, so that rounding is met."""
        return self.chance.choice([0.0, 0.25, 0.5, 1.0, self.chance.random()])

    def place(self, word):
        """Unknown to some."""
        if self.placed == "nowhere":
            return None
        number = self.chance.randrange(3 if self.placed == "few" else 40)
        return self.rarely(None, otherwise=f"{word}{number}")

    def fleet(self, size):
        columns, choice = PodColumns(), self.chance.choice
        columns.adapter_row("legal")
        for row in range(size):
            node = self.place("node")
            columns.add(
                plain_pod(
                    f"p{row}",
                    role=choice([Role.PREFILL, Role.DECODE, Role.BOTH]),
                    zone=self.place("zone"),
                    labels={"node": node} if node is not None else {},
                    max_queue=8,
                )
            )
            columns.adapters["legal"][row] = choice([*Tier]) | self.rarely(PINNED, otherwise=0)
            columns.gate[row] = self.rarely(CODE[Reason.DRAINING], otherwise=0)
            columns.press(row, self.rarely(CODE[Reason.PRESSURE_SOFT], otherwise=0))
            columns.good_until(row, self.rarely(NOW - 1, otherwise=NOW + 1))
            columns.queue[row] = self.rarely(8.0, otherwise=1.0)
            columns.free_slots[row] = choice([0.0, 1.0, 2.0])
            columns.leave(row, self.rarely(0.0, otherwise=inf), kept=0.0)
            columns.load_price[row] = choice([0.0, 0.1, self.chance.random()])
            columns.load[row] = float(choice([0, 0, 1, 2, self.chance.randrange(2_000)]))
            columns.settle(row)
        for name in self.chance.sample([*columns.row_of], k=min(size, choice([0, 0, 1, 2]))):
            columns.remove(name)
        return columns

    def rows(self, of_six):
        """Any live rows."""
        return [row for row, _ in self.columns.live() if self.chance.randrange(6) < of_six]

    def ask(self):
        columns, choice = self.columns, self.chance.choice
        query = Query("r", choice(["legal", "legal", None]))
        query.codes = columns.adapters["legal"] if query.adapter is not None else None
        query.kv = {row: self.share() for row in self.rows(choice([0, 1, 5]))}
        query.session_row = choice([-1, *self.rows(6)])
        left = {row: self.share() for row in self.rows(3)}
        query.costs = Costs(self.share(), self.share(), self.share(), choice([0.0, 0.1]), choice([0.0, 0.7]), left)
        if choice([True, False]):
            query.mask = bytearray(self.rarely(CODE[Reason.NOT_IN_SUBSET], otherwise=0) for _ in range(columns.rows))
        return query

    def wish(self):
        choice = self.chance.choice
        return Asked(
            settings=DisaggregationSettings(
                decide=choice([*Decide]),
                uncached_tokens=choice([0, 256, 1000]),
                links=choice([LinkSpeeds(), EQUAL_LINKS]),
                link_latency=choice([0.0, 0.002]),
                node_label="node",
            ),
            tokens=choice([0, 1, 256, 3000, self.chance.randrange(100_000)]),
            per_token=choice([1e-4, 1e-7, self.chance.random() / 100]),
            queued={row: self.chance.randrange(1, 9000) for row in self.rows(choice([0, 1, 5]))},
            paused=tuple(self.rows(choice([0, 0, 1]))),
            may_load=choice([True, False]),
        )


worlds = st.builds(World, st.integers(0, 2**32), st.integers(1, 9) | st.integers(1, 90))
draws = st.floats(0, 1, exclude_max=True)


def legs_of(world):
    """Of every row that could prefill, best first: the obvious way."""
    query, columns, asked = world.query, world.columns, world.asked
    looking = as_leg(query)
    legs = [
        leg_of(query, columns, row=row, asked=asked)
        for row, _ in columns.live()
        if not veto(looking, columns, row=row, now=NOW)
        and row not in asked.paused
        and (asked.may_load or query.codes is None or query.codes[row] & TIER_BITS >= LOADING)
    ]
    return sorted(legs, key=lambda leg: (leg.seconds + leg.price, -columns.free_slots[leg.row], leg.row))


@settings(max_examples=250, deadline=None)
@given(worlds)
def test_both_ways_find_the_same_legs(world):
    found = [way(world.query, world.columns, now=NOW, asked=world.asked) for way in (find_by_loop, find_by_columns)]
    legs = legs_of(world)
    if not legs:
        assert found == [None, None]
        return
    for each in found:
        assert each.best == legs[0]
        for by_place, place in (
            (each.by_zone, lambda leg: leg.pod.zone),
            (each.by_node, lambda leg: leg.pod.labels.get("node")),
        ):
            first = {}
            for leg in legs:
                first.setdefault(place(leg), leg)
            first.pop(None, None)
            assert dict(by_place) == first
    assert found[0][:3] == found[1][:3]


@settings(max_examples=300, deadline=None)
@given(worlds, draws, st.integers(0, 4))
def test_both_ways_pick_what_the_slow_one_does(world, draw, fallbacks):
    columns, query = world.columns, world.query
    found = []
    for find in (find_by_loop, find_by_columns):
        query.legs = find(query, columns, now=NOW, asked=world.asked)
        if query.legs is None:
            return
        found += [
            way(query, columns, now=NOW, draw=draw, policy=PAIRS, fallbacks=fallbacks)
            for way in (pick_by_loop, pick_by_columns)
        ]
    winner = oracle(query, columns, now=NOW, draw=draw, policy=PAIRS)
    if winner is None:
        assert found == [NOBODY] * 4
        return
    rows = [row for row, _ in columns.live() if not veto(query, columns, row=row, now=NOW)]
    scores = {row: -split(query, query.legs, view=columns, row=row).seconds for row in rows}
    others = sorted((row for row in rows if row != winner), key=lambda row: (-scores[row], row))
    assert found == [(winner, scores[winner], tuple(others[:fallbacks]))] * 4


@settings(max_examples=300, deadline=None)
@given(worlds)
def test_every_row_costs_the_same_to_the_last_bit(world):
    columns, query = world.columns, world.query
    query.legs = find_by_columns(query, columns, now=NOW, asked=world.asked)
    if query.legs is None:
        return
    seconds = split_rows(query, columns, legs=query.legs, rows=query.legs.rows).tolist()
    rows = [row for row, _ in columns.live()]
    slow = {row: split(query, query.legs, view=columns, row=row) for row in rows}
    assert [seconds[row] for row in rows] == [slow[row].seconds for row in rows]
    assert PAIRS.score_rows(query, columns, rows=rows) == [-slow[row].seconds for row in rows]


@settings(max_examples=100, deadline=None)
@given(worlds)
def test_a_copy_costs_what_the_original_did(world):
    columns, query = world.columns, world.query
    query.legs = find_by_columns(query, columns, now=NOW, asked=world.asked)
    if query.legs is None:
        return
    rows = [row for row, _ in columns.live()]
    before = [split(query, query.legs, view=columns, row=row) for row in rows]
    view = FrozenView(columns, "legal", reads=PAIRS.reads)
    if query.codes is not None:
        query.codes = view.codes
    for row in rows:
        columns.load[row] += 1
        columns.load_price[row] += 1
        columns.describe(row, plain_pod(f"p{row}", zone="elsewhere"))
        columns.adapters["legal"][row] ^= TIER_BITS
    assert [split(query, query.legs, view=view, row=row) for row in rows] == before
    assert PAIRS.score_rows(query, view, rows=rows) == [-each.seconds for each in before]
