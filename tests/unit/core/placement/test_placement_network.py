import numpy as np
import pytest

from lorapick.core.placement.network import Network, NotSolved


def arcs(*rows):
    network = Network()
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    where = network.add(table[:, 0], table[:, 1], costs=table[:, 2], capacities=table[:, 3])
    assert where == slice(0, len(rows))
    return network


def test_the_cheapest_way_is_used_as_far_as_it_carries():
    network = arcs((0, 1, 5, 2), (0, 1, 1, 2))
    assert network.flow(np.array([3, -3])).tolist() == [1, 2]


def test_blocks_stand_behind_one_another():
    network = arcs((0, 1, 1, 1))
    column = np.array([1], dtype=np.int64)
    assert network.add(column, column + 1, costs=column, capacities=column) == slice(1, 2)
    assert network.flow(np.array([1, 0, -1])).tolist() == [1, 1]


def test_what_cannot_flow_is_an_error():
    with pytest.raises(NotSolved, match=r"Infeasible.*report"):
        arcs((0, 1, 1, 1)).flow(np.array([2, -2]))


def test_nothing_flows_nowhere():
    assert Network().flow(np.zeros(1, dtype=np.int64)).tolist() == []
