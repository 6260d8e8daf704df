from lorapick.core.placement.candidates import FEWEST, candidates
from lorapick.core.placement.rendezvous_plan import by_hash
from lorapick.model.placement import PlacedAdapter, PodRoom

NAMES = tuple(f"pod-{number:02}" for number in range(60))
ORDER = by_hash("a", NAMES)


def pods(**kinds):
    return [PodRoom(pod=name, slots=2, **{key: of(row) for key, of in kinds.items()}) for row, name in enumerate(NAMES)]


def found(adapter, fleet=None, leaders=None, wide=()):
    return candidates([adapter], fleet or pods(), leaders=leaders or {}, wide=wide)


def test_the_first_of_the_order_are_looked_at():
    pairs = found(PlacedAdapter(adapter="a", replicas=1))
    assert pairs.pod.tolist() == list(ORDER[:FEWEST])
    assert pairs.place.tolist() == list(range(FEWEST))
    assert not pairs.held.any() and not pairs.warm.any() and pairs.near.all()


def test_more_replicas_have_more_to_choose_from():
    assert len(found(PlacedAdapter(adapter="a", replicas=30)).pod) == 38
    assert len(found(PlacedAdapter(adapter="a", replicas=1), wide=["a"]).pod) == 60


def test_holders_and_warm_pods_are_among_them():
    held, warm, both = (NAMES[ORDER[place]] for place in (40, 50, 59))
    pairs = found(PlacedAdapter(adapter="a", replicas=1, now_on=(both, held, "gone"), warm_on=(warm, both)))
    assert pairs.place.tolist() == [*range(FEWEST), 40, 50, 59]
    assert pairs.held.tolist()[-3:] == [True, False, True]
    assert pairs.warm.tolist()[-3:] == [False, True, False]


def test_some_of_each_zone_are_among_them():
    rare = set(ORDER[40:])
    pairs = found(PlacedAdapter(adapter="a", replicas=1), pods(zone=lambda row: "b" if row in rare else "a"))
    assert pairs.place.tolist() == [*range(FEWEST), 40, 41]


def test_pods_that_cannot_serve_it_are_not():
    fleet = pods(max_rank=lambda row: 64 if row < 5 else 8)
    pairs = found(PlacedAdapter(adapter="a", replicas=1, rank=32, now_on=("pod-10",)), fleet)
    assert sorted(pairs.pod.tolist()) == [0, 1, 2, 3, 4]


def test_pods_of_its_leader_are_near():
    leader = NAMES[ORDER[30]]
    pairs = found(PlacedAdapter(adapter="a", replicas=1, follows="lead"), leaders={"lead": (leader,)})
    assert pairs.near.tolist() == [*[False] * FEWEST, True]
    assert found(PlacedAdapter(adapter="a", replicas=1, follows="unknown")).near.all()


def test_nobody_and_nowhere_give_no_pairs():
    assert len(candidates([], pods(), leaders={}).pod) == 0
    assert len(candidates([PlacedAdapter(adapter="a", replicas=0)], pods(), leaders={}).pod) == 0
    assert len(candidates([PlacedAdapter(adapter="a", replicas=1)], [], leaders={}).pod) == 0
