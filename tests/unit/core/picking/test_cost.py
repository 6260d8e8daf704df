"""The least seconds, those of others counted in."""

from random import Random

import numpy as np
import pytest

from lorapick.core.columns import PodColumns
from lorapick.core.picking.cost import Cost
from lorapick.core.picking.query import Costs, Query
from lorapick.model import events
from lorapick.model.settings import LoadTimes, PickingSettings, Settings
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod

POLICY = Cost(PickingSettings())


def one_row(tier, *, load=3.0, price=0.5, kv=0.0, **costs):
    """Score of one pod, worked out from these numbers."""
    columns = PodColumns()
    columns.adapter_row("legal")
    columns.add(plain_pod("p"))
    columns.load[0], columns.load_price[0] = load, price
    query = Query("r", "legal" if tier is not None else None)
    if tier is not None:
        columns.adapters["legal"][0] = tier
        query.codes = columns.adapters["legal"]
    query.kv = {0: kv} if kv else {}
    query.costs = Costs(**{"base": 1.0, "each": 0.1, "prefill": 0.4, "from_cpu": 0.2, "from_disk": 0.7, **costs})
    score = POLICY.score(query, columns, row=0, rows=[0])
    assert POLICY.score_rows(query, columns, rows=[0]) == [score]
    assert POLICY.scores(query, columns, may=np.ones(1, dtype=bool)).tolist() == [score]
    return score


@pytest.mark.parametrize(
    ("tier", "seconds"),
    [
        (None, 2.0),
        (Tier.GPU_SERVING, 2.0),
        (Tier.GPU_IDLE, 2.0),
        (Tier.LOADING, 2.0 + 0.3),
        (Tier.CPU, 2.0 + 0.2 + 0.5),
        (Tier.DISK, 2.0 + 0.7 + 0.5),
    ],
)
def test_the_formula(tier, seconds):
    assert one_row(tier, remaining={0: 0.3}) == pytest.approx(-seconds)


def test_its_parts():
    assert one_row(None, load=0.0) == pytest.approx(-1.4)
    assert one_row(None, kv=0.75) == pytest.approx(-(1.0 + 0.6 + 0.1))
    assert one_row(Tier.LOADING) == pytest.approx(-2.0), "nobody knows how long it takes"


@pytest.mark.parametrize("seed", range(60))
def test_three_ways_agree_to_the_last_bit(seed):
    chance, columns = Random(seed), PodColumns()
    columns.adapter_row("legal")
    size = chance.randrange(1, 80)
    for row in range(size):
        columns.add(plain_pod(f"p{row}"))
        columns.adapters["legal"][row] = chance.choice([*Tier])
        columns.load[row] = float(chance.randrange(200))
        columns.load_price[row] = chance.uniform(0, 30)
    query = Query("r", "legal")
    query.codes = columns.adapters["legal"]
    query.kv = {row: chance.random() for row in range(size) if chance.random() < 0.3}
    query.hashed = 0.7
    remaining = {row: chance.random() for row in range(size) if chance.random() < 0.3}
    query.costs = Costs(*(chance.random() for _ in range(5)), remaining=remaining)
    rows = [row for row in range(size) if chance.random() < 0.8] or [0]
    may = np.zeros(size, dtype=bool)
    may[rows] = True
    one_by_one = [POLICY.score(query, columns, row=row, rows=rows) for row in rows]
    assert POLICY.score_rows(query, columns, rows=rows) == one_by_one
    assert POLICY.scores(query, columns, may=may)[rows].tolist() == one_by_one


# -- through events


def fleet(*pods, adapters=("legal", "code", "tax")):
    settings = Settings(picking=PickingSettings(policy="cost"), load_times=LoadTimes(cpu=0.2, disk=0.7))
    return Playbook(pods=pods, adapters=adapters, settings=settings)


def test_a_holder_wins_until_its_queue_costs_more_than_a_load():
    book = fleet("a", "b")
    book.use("legal", "a")
    assert book.arrive("legal") == ["r1 -> a (gpu_idle) else b"]
    book.report("a", running=10)
    assert book.arrive("legal") == ["r2 -> a (gpu_serving) else b"]
    book.report("a", running=40)
    assert book.arrive("legal") == ["r3 -> b (disk) else a"]


def test_a_load_goes_where_it_harms_fewest():
    book = fleet("a", "b")
    book.report("a", running=12)
    book.report("b", running=11)
    assert book.arrive("legal") == ["r1 -> b (disk) else a"]


def test_a_load_goes_where_nobody_is_thrown_out_that_is_wanted():
    book = fleet(plain_pod("a", max_loras=1), plain_pod("b", max_loras=1))
    book.use("code", "a")
    book.now = 400.0
    book.use("tax", "b")
    for pod in ("a", "b"):
        book.report(pod, running=2)
    assert book.arrive("legal") == ["r1 -> a (disk) else b"], "code is asked for no more"


def test_it_learns_from_answers():
    book = fleet("a")
    before = book.fleet.state.prices.service.expected(0)
    for _ in range(300):
        book.arrive("base", id="x")
        book.now += 2.0
        book.report("a")
        book.end("x", status=200)
    after = book.fleet.state.prices.service.expected(0)
    assert before < 0.5 < 0.8 < after < 2.1
    disk = book.fleet.state.prices.loads.disk
    book.arrive("legal", id="y")
    book.now += 30.0
    book.apply(events.RequestEnded, request_id="y", outcome="served", status=500)
    assert book.fleet.state.prices.loads.disk == disk, "errors teach nothing"


def test_its_explanation_has_scores_and_no_terms():
    book = fleet("a", "b")
    book.use("legal", "a")
    book.arrive("legal")
    assert book.verdict("r1", "a").terms is None and POLICY.weights() == {}
    assert book.verdict("r1", "a").score > book.verdict("r1", "b").score
    score = book.verdict("r1", "b").score
    book.report("b", running=30)
    assert book.verdict("r1", "b").score == score, "as it was then"
