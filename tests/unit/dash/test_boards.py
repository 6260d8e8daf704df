"""The dashboard is one that Grafana imports: its schema, places, variables, a question in every panel."""

import json

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from lorapick.dash.boards import dashboard_json
from lorapick.dash.boards.board import UID
from lorapick.dash.boards.rows import rows
from lorapick.dash.rules import Thresholds
from lorapick.model.settings import AlertSettings, SloSettings


@pytest.fixture(scope="module")
def board():
    return json.loads(dashboard_json(Thresholds(), note="a note"))


def test_it_says_what_it_is(board):
    assert board["uid"] == UID
    assert len(UID) <= 40
    assert board["schemaVersion"] >= 39
    assert board["description"] == "a note"
    assert "id" not in board
    assert board["time"] == {"from": "now-3h", "to": "now"}


def test_the_same_thresholds_give_the_same_bytes():
    assert dashboard_json(Thresholds()) == dashboard_json(Thresholds())


def test_no_panel_lies_on_another_or_sticks_out(board):
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["w"] > 0 and place["h"] > 0 and place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    bottom = max(y for _, y in taken) + 1
    assert len(taken) == 24 * bottom, "there is a hole"


def test_every_panel_has_an_id_a_text_and_a_question_to_the_chosen_prometheus(board):
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        if panel["type"] == "row":
            assert not panel["collapsed"]
            continue
        assert panel["description"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert [target["refId"] for target in panel["targets"]] == sorted({t["refId"] for t in panel["targets"]})
        assert all(target["expr"] for target in panel["targets"])


def test_rows_are_those_that_one_asks_for(board):
    assert [panel["title"] for panel in board["panels"] if panel["type"] == "row"] == [
        "Is it thrash?",
        "What users feel",
        "Adapters",
        "Pods and slots",
        "Prefill on other pods",
        "Placement",
        "The picker",
    ]


def test_variables_are_a_prometheus_and_pods(board):
    source, pods = board["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert (pods["name"], pods["type"], pods["multi"], pods["includeAll"]) == ("pod", "query", True, True)
    assert pods["allValue"] == ".*"


def test_thresholds_are_those_of_the_configuration():
    alerts = AlertSettings(swap_rate=0.25, hit_ratio=0.6, residency=200.0)
    board = json.loads(dashboard_json(Thresholds(alerts=alerts, slo=SloSettings(latency_p95=1.25))))
    steps = {
        panel["title"]: [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
        for panel in board["panels"]
        if "thresholds" in panel.get("fieldConfig", {}).get("defaults", {})
    }
    assert steps["Swaps per second, by pod"] == [None, 0.1, 0.25]
    assert steps["Hit ratio"] == [None, 0.6, 0.9]
    assert steps["Mean residency"] == [None, 60.0, 200.0]
    assert steps["Latency"] == [None, 1.25]


def test_what_is_asked_is_what_is_drawn(board):
    asked = [ask.expr for row in rows(Thresholds()) for drawn in row.panels for ask in drawn.asks]
    drawn = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert asked == drawn


def test_grafanas_own_types_read_it_back_and_lose_nothing(board):
    register_default_plugins()
    back = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    assert lost(board, back) == []


def lost(value: object, read: object, path: str = "") -> list[str]:
    """Places whose value is not there any more; defaults may have been added."""
    if isinstance(value, dict) and isinstance(read, dict):
        return [each for key, part in value.items() for each in lost(part, read.get(key), f"{path}/{key}")]
    if isinstance(value, list) and isinstance(read, list) and len(value) == len(read):
        pairs = zip(value, read, strict=True)
        return [each for number, (part, other) in enumerate(pairs) for each in lost(part, other, f"{path}/{number}")]
    return [] if value == read else [path]
