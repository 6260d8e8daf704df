"""Status and Events of LoraAdapters."""

import itertools

from hypothesis import given, settings
from objects_kit import JSON

from lorapick.wire.kubernetes.status import AdapterTruth, conditions, event, news, next_status


def truth(**changes):
    return AdapterTruth(**{"generation": 3, "desired": 2, "pods": ("a", "b"), **changes})


def said(found):
    return {each.type: (each.status, each.reason) for each in conditions(found)}


def test_conditions():
    assert said(truth()) == {
        "Accepted": (True, "Accepted"),
        "Placed": (True, "Loaded"),
        "Degraded": (False, "AsExpected"),
    }
    assert said(truth(pods=("a",)))["Placed"] == (False, "Waiting")
    assert said(truth(desired=0, pods=()))["Placed"] == (True, "OnDemand")
    assert said(truth(trouble=("LoadFailing", "x")))["Degraded"] == (True, "LoadFailing")
    assert said(truth(refused=("Invalid", "x"))) == {
        "Accepted": (False, "Invalid"),
        "Placed": (False, "NotAccepted"),
        "Degraded": (True, "Invalid"),
    }


def test_a_status_is_written_once():
    first = next_status(truth(), None, now=0.0)
    assert first is not None
    assert (first["replicas"], first["desiredReplicas"], first["observedGeneration"]) == (2, 2, 3)
    assert next_status(truth(), first, now=100.0) is None
    assert next_status(truth(), {**first, "others": 1}, now=100.0) is None


def test_a_conditions_time_moves_with_its_status():
    first = next_status(truth(pods=("a",)), None, now=0.0)
    assert first is not None
    second = next_status(truth(), first, now=60.0)
    assert second is not None
    times = {each["type"]: each["lastTransitionTime"] for each in second["conditions"]}
    assert times == {
        "Accepted": "1970-01-01T00:00:00Z",
        "Placed": "1970-01-01T00:01:00Z",
        "Degraded": "1970-01-01T00:00:00Z",
    }


def test_events_are_about_trouble_and_where_it_has_come_to():
    quiet = next_status(truth(desired=0, pods=()), None, now=0.0)
    waiting = next_status(truth(pods=()), quiet, now=1.0)
    loaded = next_status(truth(), waiting, now=2.0)
    broken = next_status(truth(trouble=("LoadFailing", "why")), loaded, now=3.0)
    mended = next_status(truth(), broken, now=4.0)
    chain = [None, quiet, waiting, loaded, broken, mended]
    told = [[each.reason for each in news(new, old)] for old, new in itertools.pairwise(chain)]
    assert told == [[], ["Waiting"], ["Loaded"], ["LoadFailing"], []]


def test_an_event():
    item = {
        "apiVersion": "lorapick.dev/v1alpha1",
        "kind": "LoraAdapter",
        "metadata": {"name": "sql", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
    }
    status = next_status(truth(trouble=("LoadFailing", "why")), None, now=0.0)
    assert status is not None
    found = event(item, news(status, None)[-1], by="picker", now=0.0)
    assert found["type"] == "Warning"
    assert found["involvedObject"]["uid"] == "u"
    assert found["metadata"]["namespace"] == "ns"
    assert (found["reason"], found["message"]) == ("LoadFailing", "why")
    other = event(item, news(status, None)[-1], by="picker", now=1.0)
    assert other["metadata"]["name"] != found["metadata"]["name"]


def test_a_status_names_few_pods_and_counts_all():
    found = next_status(truth(pods=tuple(f"p{n}" for n in range(200)), trouble=("X", "y" * 9999)), None, now=0.0)
    assert found is not None
    assert (found["replicas"], len(found["pods"])) == (200, 50)
    assert max(len(each["message"]) for each in found["conditions"]) == 1024


@settings(max_examples=30)
@given(JSON)
def test_any_status_that_stands_is_replaced(before):
    found = next_status(truth(), before, now=0.0)
    assert found is not None
    assert next_status(truth(), found, now=1.0) is None
    news(found, before)
