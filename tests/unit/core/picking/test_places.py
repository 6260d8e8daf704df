"""Codes of zones and nodes."""

from lorapick.core.columns import PodColumns
from lorapick.core.picking.places import EVERYWHERE, NOWHERE, Places
from lorapick.model.pods import Pod


def pod(name, *, zone=None, node=None):
    return Pod(name=name, address=f"{name}:1", zone=zone, labels={"node": node} if node is not None else {})


def test_equal_codes_are_one_place_and_no_name_is_none():
    places = Places(
        [pod("a", zone="x", node="n"), None, pod("b", zone="y", node="n"), pod("c", zone="x"), pod("d")], label="node"
    )
    assert places.zone[0] == places.zone[3] == places.zone_codes["x"]
    assert places.node[0] == places.node[2] == places.node_codes["n"]
    assert len({*places.zone.tolist()}) == 4
    assert len({*places.node.tolist()}) == 4
    assert len({EVERYWHERE, *places.zone_codes.values(), *places.node_codes.values()}) == places.count - 1 == 4
    assert places.of_row[0].tolist() == [EVERYWHERE] * 5
    assert places.of_row[1].tolist() == [1, NOWHERE, 2, 1, NOWHERE]
    assert places.of_row[2].tolist() == [3, NOWHERE, 3, NOWHERE, NOWHERE]


def test_another_label_names_other_nodes():
    assert Places([pod("a", node="n")], label="host").node_codes == {}


def test_columns_keep_them_until_a_pod_comes_goes_or_changes():
    columns = PodColumns()
    row = columns.add(pod("a", zone="x"))
    first = columns.places("node")
    assert columns.places("node") is first
    assert columns.places("host") is not first
    columns.describe(row, pod("a", zone="y"))
    assert [*columns.places("node").zone_codes] == ["y"]
    columns.add(pod("b", zone="x"))
    assert [*columns.places("node").zone_codes] == ["y", "x"]
    columns.remove("a")
    assert [*columns.places("node").zone_codes] == ["x"]
    assert columns.places("node").pods[row] is None
