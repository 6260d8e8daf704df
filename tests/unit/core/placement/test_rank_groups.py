import pytest

from lorapick.core.placement.rank_groups import class_of, rank_classes
from lorapick.model.placement import PlacedAdapter, PodRoom


def fleet(count=6, **more):
    return [PodRoom(pod=f"pod-{number}", slots=4, **more) for number in range(count)]


def want(adapter, rank, replicas=1, **more):
    return PlacedAdapter(adapter=adapter, replicas=replicas, rank=rank, **more)


@pytest.mark.parametrize(("rank", "expected"), [(None, 8), (1, 8), (8, 8), (9, 16), (16, 16), (48, 64), (64, 64)])
def test_ranks_are_rounded_up(rank, expected):
    assert class_of(rank) == expected


def test_one_class_needs_no_groups():
    assert set(rank_classes([want("a", 64), want("b", 60)], fleet()).values()) == {64}
    assert set(rank_classes([], fleet()).values()) == {8}


def test_large_ranks_get_as_many_pods_as_they_need():
    large = [want(f"large-{number}", 64) for number in range(6)]
    small = [want(f"small-{number}", 8) for number in range(10)]
    classes = rank_classes([*large, *small], fleet())
    assert sorted(classes.values()) == [8, 8, 8, 8, 64, 64]


def test_each_class_gets_pods_of_its_own_the_smallest_what_is_left():
    mixed = [want("a", 64), want("b", 16, 5), want("c", 8)]
    assert sorted(rank_classes(mixed, fleet(7)).values()) == [8, 16, 16, 16, 16, 16, 64]
    assert sorted(rank_classes(mixed, fleet(6)).values()) == [16, 16, 16, 16, 16, 64]
    assert sorted(rank_classes(mixed, fleet(2)).values()) == [16, 64]


def test_an_adapter_of_several_replicas_gets_as_many_pods():
    assert sorted(rank_classes([want("a", 64, 3), want("b", 8)], fleet()).values()) == [8, 8, 8, 64, 64, 64]


def test_pods_that_hold_large_ranks_are_taken_first():
    classes = rank_classes([want("a", 64, now_on=("pod-4",)), want("b", 8, now_on=("pod-0",))], fleet())
    assert [pod for pod, rank in classes.items() if rank == 64] == ["pod-4"]


def test_zones_take_turns():
    pods = [PodRoom(pod=f"pod-{number}", slots=4, zone="x" if number < 3 else "y") for number in range(6)]
    classes = rank_classes([want("a", 64, 2), want("b", 8)], pods)
    assert [pod for pod, rank in classes.items() if rank == 64] == ["pod-0", "pod-3"]


def test_only_pods_that_can_serve_them_and_of_the_same_base_model():
    pods = [
        PodRoom(pod="pod-0", slots=4, max_rank=16),
        PodRoom(pod="pod-1", slots=4, max_rank=64),
        PodRoom(pod="pod-2", slots=4, base_model="other"),
    ]
    classes = rank_classes([want("a", 40), want("b", 8)], pods)
    assert classes == {"pod-0": 8, "pod-1": 64, "pod-2": 8}
