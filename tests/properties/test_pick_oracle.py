"""The two fast picks against the slow oracle, over fleets of any size and any numbers, for every policy."""

from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.columns import CODE, CODES, PINNED, SOURCE_SHIFT, TIER_BITS, PodColumns
from lorapick.core.frozen import FrozenView
from lorapick.core.picking.filters import eligible, passing, veto
from lorapick.core.picking.pick import NOBODY, pick_by_columns, pick_by_loop
from lorapick.core.picking.policies import POLICIES, make_policy
from lorapick.core.picking.query import NO_COSTS, Costs, Query
from lorapick.core.picking.verdicts import judge, oracle
from lorapick.core.scraped import NEVER_SCRAPED, Scraped
from lorapick.model.pods import Role
from lorapick.model.profiles import Profiles
from lorapick.model.reasons import Reason
from lorapick.model.settings import PickingSettings, Weights
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import plain_pod
from lorapick.testing.profiles import profile, spec

NOW = 10.0


class World:
    """A fleet and a query, made from one seed: a draw for every number would cost a hundred times as much."""

    def __init__(self, seed: int, size: int) -> None:
        self.name = f"World({seed}, {size})"
        self.chance = Random(seed)
        self.calm = seed % 3 == 0
        """Most fleets: no pod refuses anybody."""
        self.columns = self.fleet(size)
        self.query = self.ask()

    def __repr__(self) -> str:
        return self.name

    def rarely(self, value, *, otherwise):
        """`value` one time in six, on a calm fleet never."""
        return value if self.chance.random() < 1 / 6 and not self.calm else otherwise

    def any(self, *values):
        """One of the values, on a calm fleet the first."""
        return values[0] if self.calm else self.chance.choice(values)

    def share(self):
        """Few values, so that ties happen; and any, so that rounding is met."""
        return self.chance.choice([0.0, 0.1, 0.3, 0.5, 1.0, self.chance.random()])

    def code(self):
        source = self.chance.randrange(CODES >> SOURCE_SHIFT)
        tiers = [tier for tier in Tier if tier > Tier.UNREGISTERED or not self.calm]
        return self.chance.choice(tiers) | self.rarely(PINNED, otherwise=0) | source << SOURCE_SHIFT

    def scrape(self):
        """What a page said; the names under its two labels need not be the same."""
        labels = [frozenset(self.chance.sample(["legal", "b", "c", "d"], k=self.chance.randrange(3))) for _ in "rw"]
        waiting = float(self.chance.choice([0, 0, 1, 2, 7]))
        figures = (*labels, self.chance.randrange(5), float(self.chance.randrange(4)))
        return self.rarely(NEVER_SCRAPED, otherwise=Scraped(waiting, self.share(), *figures))

    def fleet(self, size):
        """Pods with anything in their columns, some rows freed."""
        columns, choice = PodColumns(), self.chance.choice
        columns.adapter_row("legal")
        for row in range(size):
            role = self.rarely(Role.PREFILL, otherwise=Role.BOTH)
            base = self.rarely("other", otherwise="base")
            rank = self.rarely(8, otherwise=64)
            columns.add(
                plain_pod(
                    f"p{row}",
                    max_lora_rank=rank,
                    role=role,
                    base_model=base,
                    max_queue=choice([8, 8, 8, 3, 0] if not self.calm else [8, 20]),
                )
            )
            columns.adapters["legal"][row] = self.code()
            columns.gate[row] = self.rarely(
                choice([CODE[Reason.DRAINING], CODE[Reason.PRESSURE_CRITICAL]]), otherwise=0
            )
            columns.press(row, self.rarely(CODE[Reason.PRESSURE_SOFT], otherwise=0))
            columns.good_until(row, self.any(NOW + 1, NOW + 1, NOW + 1, NOW, NOW - 1))
            columns.queue[row] = choice([0.0, 0.0, 1.0, 2.0, 7.0, 8.0] if not self.calm else [0.0, 1.0, 7.0])
            columns.gpu[row] = self.share()
            columns.free_slots[row] = choice([0.0, 1.0])
            columns.leave(row, choice([inf, inf, 2.0, 0.0, -1.0]), kept=choice([0.0, 0.0, 1.0, inf]))
            columns.load_price[row] = choice([0.0, 0.1, self.chance.random()])
            columns.load[row] = float(choice([0, 0, 1, 2, 9, self.chance.randrange(2_000_000)]))
            columns.scraped[row] = self.scrape()
            columns.settle(row)
        for name in self.chance.sample([*columns.row_of], k=min(size, self.any(0, 0, 1, 2))):
            columns.remove(name)
        columns.turn = self.chance.randint(0, size)
        return columns

    def ask(self):
        """Any query on that fleet."""
        columns, choice = self.columns, self.chance.choice
        query = Query(f"r{self.chance.randrange(9)}", choice(["legal", "legal", None]))
        query.codes = columns.adapters["legal"] if query.adapter is not None else None
        query.base = self.any(None, None, 0, 1, 255)
        query.rank = choice([0.0, 16.0])
        query.ignore_stale = choice([True, False])
        query.ignore_full = choice([True, False, False])
        live = [row for row, _ in columns.live()]
        query.kv = {row: self.share() for row in live if self.rarely(True, otherwise=False)}
        query.session_row = choice([-1, *live])
        query.first_block = choice([None, 7])
        query.in_flight = choice([0, 1, 9, 200])
        query.seed = self.chance.randrange(3)
        loading = {row: self.share() for row in live if self.rarely(True, otherwise=False)}
        query.costs = choice([NO_COSTS, Costs(self.share(), self.share(), self.share(), 0.1, 0.7, loading)])
        if choice([True, False]):
            query.mask = bytearray(self.rarely(CODE[Reason.NOT_IN_SUBSET], otherwise=0) for _ in range(columns.rows))
        return query


BUSY = spec("utilization-detector", queue=2, kv=0.5, headroom=0.0)
STICKY = spec("prefix-cache-affinity-filter", threshold=0.3, explore=0.3, most_penalty_ms=1.0, tokens_per_second=1.0)
PROFILES = {
    "lora": profile("queue-scorer", "kv-cache-utilization-scorer", "prefix-cache-scorer", "lora-affinity-scorer"),
    "narrow": profile(
        "running-requests-size-scorer", "no-hit-lru-scorer", filters=[BUSY, STICKY], picker="random-picker"
    ),
    "nobody": profile("queue-scorer", filters=["prefill-filter"]),
    "own": profile(
        spec("lorapick-weighted-scorer", weight=2.0),
        spec("lorapick-cost-scorer", weight=-0.5),
        "lorapick-residency-scorer",
        filters=["session-affinity-filter"],
        picker="weighted-random-picker",
    ),
}


def made(name, **fields):
    if name in POLICIES:
        return POLICIES[name](PickingSettings(**fields))
    return make_policy(PickingSettings(profiles=Profiles(decode=PROFILES[name]), **fields))


worlds = st.builds(World, st.integers(0, 2**32), st.integers(1, 9) | st.integers(1, 90))
SHARES = st.sampled_from([0.0, 0.15, 0.5]) | st.floats(0, 1)
policies = st.sampled_from([*POLICIES, *PROFILES])
weights = st.builds(Weights, adapter=SHARES, kv=SHARES, queue=SHARES, gpu=SHARES)


@settings(max_examples=600, deadline=None)
@given(worlds, policies, weights | st.just(Weights()), st.floats(0, 1, exclude_max=True), st.integers(0, 4))
def test_both_fast_picks_are_the_slow_one(world, policy, weights, draw, fallbacks):
    columns, query = world.columns, world.query
    policy = made(policy, weights=weights)
    query.ignore_full &= not policy.waits
    choices = [
        way(query, columns, now=NOW, draw=draw, policy=policy, fallbacks=fallbacks)
        for way in (pick_by_loop, pick_by_columns)
    ]
    winner = oracle(query, columns, now=NOW, draw=draw, policy=policy)
    if winner is None:
        assert choices == [NOBODY, NOBODY]
        return
    scores = {pod.row: pod.score for pod in judge(query, columns, now=NOW, policy=policy) if pod.score is not None}
    assert scores == {row: policy.score(query, columns, row=row, rows=[*scores]) for row in scores}
    others = sorted((row for row in scores if row != winner), key=lambda row: (-scores[row], row))
    assert choices == [(winner, scores[winner], tuple(others[:fallbacks]))] * 2
    assert type(choices[0].score) is type(choices[1].score) is float


@settings(max_examples=500, deadline=None)
@given(worlds)
def test_three_ways_to_filter_agree(world):
    columns, query = world.columns, world.query
    rows = [row for row in range(columns.rows) if veto(query, columns, row=row, now=NOW) == 0]
    assert passing(query, columns, now=NOW) == rows
    assert eligible(query, columns, now=NOW).nonzero()[0].tolist() == rows


@settings(max_examples=100, deadline=None)
@given(worlds, policies, st.floats(0, 1, exclude_max=True))
def test_a_copy_is_judged_as_the_original_was(world, policy, draw):
    columns, query = world.columns, world.query
    policy = made(policy)
    query.ignore_full &= not policy.waits
    before = judge(query, columns, now=NOW, policy=policy)
    view = FrozenView(columns, "legal", reads=policy.reads)
    if query.codes is not None:
        query.codes = view.codes
    for row, _ in [*columns.live()]:
        columns.queue[row] += 1
        columns.load[row] += 1
        columns.load_price[row] += 1
        columns.leave(row, 0.0, kept=0.0)
        columns.scraped[row] = NEVER_SCRAPED
        columns.adapters["legal"][row] ^= TIER_BITS
    columns.add(plain_pod("new"))
    assert judge(query, view, now=NOW, policy=policy) == before


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_knows_its_name(name):
    assert POLICIES[name](PickingSettings()).name == name
