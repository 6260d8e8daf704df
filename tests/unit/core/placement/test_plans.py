from lorapick.core.placement.plans import Action, PlanCosts, fits, moves, shortfalls
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom


def problem(*adapters, slots=2, zones=(None, None, None)):
    pods = tuple(PodRoom(pod=f"pod-{number}", slots=slots, zone=zone) for number, zone in enumerate(zones))
    return PlacementProblem(version=1, pods=pods, adapters=adapters)


def told(found):
    return [(move.pod, move.action.value, move.why, move.source) for move in found]


def test_a_pod_serves_its_base_model_and_ranks_up_to_its_limit():
    pod = PodRoom(pod="pod-0", slots=1, base_model="llama", max_rank=16)
    assert fits(PlacedAdapter(adapter="a", replicas=1, base_model="llama", rank=16), pod)
    assert fits(PlacedAdapter(adapter="a", replicas=1, base_model="llama"), pod)
    assert not fits(PlacedAdapter(adapter="a", replicas=1, base_model="llama", rank=17), pod)
    assert not fits(PlacedAdapter(adapter="a", replicas=1, base_model="qwen", rank=8), pod)


def test_growth_keeps_and_loads():
    asked = problem(PlacedAdapter(adapter="a", replicas=2, now_on=("pod-0",)))
    assert told(moves(asked, {"a": ("pod-0", "pod-1")})) == [
        ("pod-0", "keep", "has it", None),
        ("pod-1", "load", "wants 2, has 1", None),
    ]


def test_a_pod_that_is_no_choice_is_named():
    asked = problem(PlacedAdapter(adapter="a", replicas=1, now_on=("pod-9",)))
    assert told(moves(asked, {"a": ("pod-1",)})) == [("pod-1", "load", "wants 1, has 0; pod-9 is no choice now", None)]


def test_a_load_names_the_copy_that_it_replaces():
    asked = problem(PlacedAdapter(adapter="a", replicas=1, now_on=("pod-0",)))
    assert told(moves(asked, {"a": ("pod-1",)})) == [
        ("pod-1", "load", "from pod-0: better placed by rank, group or load", "pod-0"),
        ("pod-0", "drop", "to pod-1: better placed by rank, group or load", None),
    ]


def test_a_copy_that_does_not_fit_is_said_to():
    asked = problem(PlacedAdapter(adapter="a", replicas=1, rank=128, now_on=("pod-0",)))
    assert moves(asked, {"a": ("pod-1",)})[1].why == "to pod-1: rank 128 or base model base does not fit there"


def test_a_full_pod_is_the_reason():
    other = PlacedAdapter(adapter="b", replicas=1, now_on=("pod-0",))
    asked = problem(PlacedAdapter(adapter="a", replicas=1, now_on=("pod-0",)), other, slots=1)
    assert moves(asked, {"a": ("pod-1",), "b": ("pod-0",)})[0].why == "from pod-0: its slot goes to another"


def test_zones_are_the_reason():
    asked = problem(PlacedAdapter(adapter="a", replicas=2, now_on=("pod-0", "pod-1")), zones=("x", "x", "y"))
    assert moves(asked, {"a": ("pod-1", "pod-2")})[1].why == "from pod-0: other copies are in zone x"


def test_fewer_copies_and_no_slot_differ():
    asked = problem(
        PlacedAdapter(adapter="a", replicas=1, now_on=("pod-0", "pod-1")),
        PlacedAdapter(adapter="b", replicas=1, now_on=("pod-2",)),
    )
    placed = {"a": ("pod-0",), "b": ()}
    drops = [move for move in moves(asked, placed) if move.action is Action.DROP]
    assert [move.why for move in drops] == ["wants 1, has 2", "its slot goes to one that matters more"]
    assert shortfalls(asked, placed) == {"b": 1}


def test_costs_add_up():
    assert PlanCosts(load=1.0, churn=2.0, rank=3.0, group=4.0, zone=5.0, spread=6.0, preference=7.0).total == 28.0
