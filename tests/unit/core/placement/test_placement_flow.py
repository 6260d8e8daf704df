import numpy as np

from lorapick.core.placement.candidates import candidates
from lorapick.core.placement.costs import pair_costs
from lorapick.core.placement.flow import ZONE, choose
from lorapick.core.placement.rank_groups import rank_classes
from lorapick.model.placement import PlacedAdapter, PodRoom


def chosen(adapters, pods):
    pairs = candidates(adapters, pods, leaders={})
    costs = pair_costs(adapters, pods, pairs=pairs, classes=rank_classes(adapters, pods))
    found = choose(adapters, pods, pairs=pairs, costs=costs.total)
    placed = {each.adapter: [] for each in adapters}
    for adapter, pod in zip(pairs.adapter[found.pairs], pairs.pod[found.pairs], strict=True):
        placed[adapters[adapter].adapter].append(pods[pod].pod)
    return {name: sorted(own) for name, own in placed.items()}, found


def zoned(*zones, slots=4):
    return [PodRoom(pod=f"pod-{number}", slots=slots, zone=zone) for number, zone in enumerate(zones)]


def test_copies_of_one_adapter_are_on_different_pods_and_zones():
    for number in range(10):
        name = f"adapter-{number}"
        placed, found = chosen([PlacedAdapter(adapter=name, replicas=2)], zoned("x", "x", "x", "y"))
        assert "pod-3" in placed[name] and len(placed[name]) == 2
        assert found.zone == 0


def test_a_zone_too_full_is_paid_for():
    _, found = chosen([PlacedAdapter(adapter="a", replicas=4)], zoned("x", "x", "x", "y"))
    assert found.zone == ZONE


def test_copies_leave_a_zone_that_has_all_of_them():
    adapter = PlacedAdapter(adapter="a", replicas=2, now_on=("pod-0", "pod-1"), load_seconds=0.5)
    placed, _ = chosen([adapter], zoned("x", "x", "y"))
    assert "pod-2" in placed["a"]


def test_pods_without_zones_and_single_zones_change_nothing():
    for zones in ((None, None), ("x", "x"), ("x", None)):
        placed, found = chosen([PlacedAdapter(adapter="a", replicas=2)], zoned(*zones))
        assert placed == {"a": ["pod-0", "pod-1"]} and found.zone == 0


def test_busy_adapters_are_kept_apart():
    busy = [PlacedAdapter(adapter=f"busy-{number}", replicas=1, rate=50.0) for number in range(4)]
    rare = [PlacedAdapter(adapter=f"rare-{number}", replicas=1, rate=0.1) for number in range(40)]
    placed, _ = chosen([*busy, *rare], zoned(None, None, None, None, slots=12))
    assert sorted(placed[each.adapter][0] for each in busy) == ["pod-0", "pod-1", "pod-2", "pod-3"]
    counts = np.bincount([int(pods[0][-1]) for pods in placed.values()])
    assert counts.max() - counts.min() <= 2


def test_what_is_there_is_not_moved_to_spread_it():
    held = [PlacedAdapter(adapter=f"busy-{n}", replicas=1, rate=50.0, now_on=("pod-0",)) for n in range(6)]
    rare = [PlacedAdapter(adapter=f"rare-{n}", replicas=1, rate=0.1, now_on=("pod-1",)) for n in range(12)]
    placed, _ = chosen([*held, *rare], zoned(None, None, None, slots=64))
    assert all(placed[each.adapter] == list(each.now_on) for each in [*held, *rare])


def test_the_last_go_without():
    adapters = [PlacedAdapter(adapter=f"adapter-{number}", replicas=1) for number in range(5)]
    placed, _ = chosen(adapters, zoned(None, None, slots=2))
    assert [len(own) for own in placed.values()] == [1, 1, 1, 1, 0]


def test_one_that_matters_takes_the_slot_of_one_that_does_not():
    adapters = [
        PlacedAdapter(adapter="a", replicas=1, rate=5.0, load_seconds=60.0),
        PlacedAdapter(adapter="b", replicas=1, rate=1.0, now_on=("pod-0",)),
    ]
    assert chosen(adapters, zoned(None, slots=1))[0] == {"a": ["pod-0"], "b": []}


def test_no_slots_no_pods_nobody():
    assert chosen([PlacedAdapter(adapter="a", replicas=1)], zoned(None, slots=0))[0] == {"a": []}
    assert chosen([PlacedAdapter(adapter="a", replicas=1)], [])[0] == {"a": []}
    assert chosen([], zoned(None))[0] == {}
