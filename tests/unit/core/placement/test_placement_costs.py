from lorapick.core.placement.candidates import candidates
from lorapick.core.placement.costs import CHURN, DEAREST, GROUP, RANK_GUIDE, pair_costs
from lorapick.core.placement.rank_groups import rank_classes
from lorapick.core.placement.rendezvous_plan import by_hash
from lorapick.model.placement import PlacedAdapter, PodRoom


def costs(adapter, pod, *, classes=None, leaders=None):
    pairs = candidates([adapter], [pod], leaders=leaders or {})
    return pair_costs([adapter], [pod], pairs=pairs, classes=classes or rank_classes([adapter], [pod]))


def values(found):
    return {name: int(column[0]) for name, column in found._asdict().items()}


def test_a_copy_that_stays_costs_nothing():
    adapter = PlacedAdapter(adapter="a", replicas=1, now_on=("pod",), rate=3.0, rank=8)
    assert costs(adapter, PodRoom(pod="pod", slots=1, load=9.0)).total.tolist() == [0]


def test_a_load_stops_all_that_run_there():
    adapter = PlacedAdapter(adapter="a", replicas=1, load_seconds=0.5)
    found = values(costs(adapter, PodRoom(pod="pod", slots=1, load=3.0)))
    assert found == {"load": 2000, "churn": CHURN, "rank": 0, "group": 0, "place": 0}


def test_a_warm_copy_is_cheaper_to_bring():
    adapter = PlacedAdapter(adapter="a", replicas=1, load_seconds=0.5, warm_on=("pod",), warm_seconds=0.02)
    assert values(costs(adapter, PodRoom(pod="pod", slots=1)))["load"] == 20


def test_no_part_drowns_the_others():
    adapter = PlacedAdapter(adapter="a", replicas=1, load_seconds=1e6)
    assert values(costs(adapter, PodRoom(pod="pod", slots=1, load=500.0)))["load"] == DEAREST


def test_a_large_rank_taxes_all_that_run_there():
    adapter = PlacedAdapter(adapter="a", replicas=1, rank=32, now_on=("pod",))
    pod = PodRoom(pod="pod", slots=1, load=2.0)
    # Two doublings of 7 %, two requests, a minute.
    assert values(costs(adapter, pod, classes={"pod": 8}))["rank"] == 16_800
    assert values(costs(adapter, pod, classes={"pod": 32}))["rank"] == 0


def test_a_small_rank_among_large_ones_is_slowed_itself():
    adapter = PlacedAdapter(adapter="a", replicas=2, rank=8, now_on=("pod",), rate=1.0)
    # A doubling of 7 %, half of one request per second of a second each, a minute.
    assert values(costs(adapter, PodRoom(pod="pod", slots=1), classes={"pod": 16}))["rank"] == 2_100


def test_ranks_guide_before_there_is_traffic_and_unknown_ones_do_not():
    pod = PodRoom(pod="pod", slots=1)
    assert values(costs(PlacedAdapter(adapter="a", replicas=1, rank=64), pod, classes={"pod": 8}))["rank"] == (
        3 * RANK_GUIDE
    )
    assert values(costs(PlacedAdapter(adapter="a", replicas=1), pod, classes={"pod": 64}))["rank"] == 0


def test_followers_pay_where_their_leader_is_not():
    adapter = PlacedAdapter(adapter="a", replicas=1, follows="lead")
    pod = PodRoom(pod="pod", slots=1)
    assert values(costs(adapter, pod, leaders={"lead": ("pod",)}))["group"] == 0
    assert values(costs(adapter, pod, leaders={"lead": ("other",)}))["group"] == GROUP


def test_places_follow_the_hash():
    pods = [PodRoom(pod=f"pod-{number}", slots=1) for number in range(5)]
    adapter = PlacedAdapter(adapter="a", replicas=1)
    pairs = candidates([adapter], pods, leaders={})
    found = pair_costs([adapter], pods, pairs=pairs, classes=rank_classes([adapter], pods))
    assert found.place.tolist() == [0, 1, 2, 3, 4]
    assert pairs.pod.tolist() == list(by_hash("a", tuple(pod.pod for pod in pods)))
