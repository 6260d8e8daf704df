from lorapick.core.picking.hashing import digest
from lorapick.core.placement.rendezvous_plan import by_hash, by_rendezvous
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom

PODS = tuple(f"pod-{number}" for number in range(8))


def problem(*adapters, slots=4, pods=PODS):
    return PlacementProblem(
        version=1, pods=tuple(PodRoom(pod=pod, slots=slots) for pod in pods), adapters=tuple(adapters)
    )


def want(adapter, replicas=1, now_on=(), **more):
    return PlacedAdapter(adapter=adapter, replicas=replicas, now_on=now_on, **more)


def test_the_order_is_that_of_the_picking_policy():
    seed = digest("a")
    heaviest = max(PODS, key=lambda pod: digest(pod, seed=seed))
    assert PODS[by_hash("a", PODS)[0]] == heaviest
    assert sorted(by_hash("a", PODS)) == list(range(8))


def test_one_replica_more_adds_a_pod():
    for count in range(1, 8):
        fewer, more = (by_rendezvous(problem(want("a", count + extra)))["a"] for extra in (0, 1))
        assert set(fewer) < set(more)


def test_a_pod_that_leaves_moves_only_its_own():
    adapters = [want(f"adapter-{number}") for number in range(20)]
    before = by_rendezvous(problem(*adapters, slots=20))
    gone = before["adapter-0"][0]
    after = by_rendezvous(problem(*adapters, slots=20, pods=[pod for pod in PODS if pod != gone]))
    moved = [name for name in before if before[name] != after[name]]
    assert moved == [name for name in before if before[name] == (gone,)]


def test_the_next_pod_takes_what_a_full_one_cannot():
    adapters = [want(f"adapter-{number}") for number in range(8)]
    placed = by_rendezvous(problem(*adapters, slots=1))
    assert sorted(pod for pods in placed.values() for pod in pods) == list(PODS)
    wide = by_rendezvous(problem(*adapters, slots=8))
    assert placed["adapter-0"] == wide["adapter-0"]


def test_copies_that_are_there_stay_unless_told_otherwise():
    home = PODS[by_hash("a", PODS)[0]]
    other = next(pod for pod in PODS if pod != home)
    assert by_rendezvous(problem(want("a", now_on=(other,)))) == {"a": (other,)}
    assert by_rendezvous(problem(want("a", now_on=(other,))), keep=False) == {"a": (home,)}


def test_first_copies_go_before_second_ones():
    placed = by_rendezvous(problem(want("a", 3), want("b", 3), slots=1, pods=PODS[:3]))
    assert [len(pods) for pods in placed.values()] == [2, 1]


def test_the_last_go_without_and_what_does_not_fit_is_not_placed():
    placed = by_rendezvous(problem(want("large", rank=128), want("a"), want("b"), slots=1, pods=PODS[:1]))
    assert placed == {"large": (), "a": ("pod-0",), "b": ()}


def test_nothing_to_place_or_nowhere_is_no_error():
    assert by_rendezvous(problem()) == {}
    assert by_rendezvous(problem(want("a"), pods=())) == {"a": ()}
    assert by_rendezvous(problem(want("a", 0, now_on=("pod-1",)))) == {"a": ()}


def test_one_that_matters_takes_the_slot_of_one_that_does_not():
    held = want("b", rate=1.0, now_on=("pod-0",))
    assert by_rendezvous(problem(want("a", rate=9.0), held, slots=1, pods=PODS[:1])) == {"a": ("pod-0",), "b": ()}
    assert by_rendezvous(problem(want("a", rate=1.5), held, slots=1, pods=PODS[:1])) == {"a": (), "b": ("pod-0",)}
