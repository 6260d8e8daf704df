"""What somebody should put in order."""

from pictures_kit import ADAPTERS, adapter, checks, findings, healthy, pod

from lorapick.core.doctor.findings import Urgency
from lorapick.core.doctor.picture import AlertPicture

FILES = [adapter(number) for number in range(ADAPTERS)]


def test_pins_that_are_missing_for_long_are_told():
    found = findings(healthy(pins_missing=2, pin_missing_longest=65.0))["pins_missing"]
    assert found.what == "2 pins of 2 not in a slot where they should be; one was missing for 65 s at most"
    assert checks(healthy(pins_missing=2, pin_missing_longest=9.0)) == []
    assert checks(healthy(pins_missing=2)) == ["pins_missing"]


def test_pins_that_do_not_fit_are_told_with_the_reason():
    found = findings(healthy(pins_without_place=1, pin_problems={"big": "no pod takes rank 128"}))
    assert found["pins_do_not_fit"].arithmetic == ("big: no pod takes rank 128",)


def test_quarantined_pairs_are_told():
    alert = AlertPicture(name="quarantine", facts={"pairs": "a01 on pod-2", "count": 1.0})
    assert "pairs: a01 on pod-2" in findings(healthy(alerts=(alert,)))["quarantine"].arithmetic


def test_drift_is_told_in_the_words_of_the_comparison():
    line = "pod-0: max_loras is 4 by configuration and 8 by the pod; correct its entry in the pods file"
    found = findings(healthy(pod_rows=[pod(0, drift=(line,)), *map(pod, range(1, 8))]))["drift"]
    assert (found.pods, found.arithmetic) == (("pod-0",), (line,))


def test_a_picker_that_is_passed_by_is_told():
    found = findings(healthy(envoy_without_picker=2_000))["bypass"]
    assert (found.urgency, found.what) == (
        Urgency.WARN,
        "Envoy sent 2 % of the requests on without asking the picker",
    )
    assert findings(healthy(envoy_without_picker=60_000))["bypass"].urgency is Urgency.PAGE
    assert checks(healthy(envoy_without_picker=900)) == []
    assert checks(healthy(envoy_requests=0)) == []


def test_requests_without_a_decision_are_told():
    assert findings(healthy(passed={"no_model": 5_000}))["undecided"].what == (
        "5000 requests went to any pod without a decision (5000 no_model)"
    )
    assert checks(healthy(passed={"no_model": 500})) == []


def test_faults_weigh_by_their_share():
    assert findings(healthy(faults={"scoring_error": 100}))["faults"].urgency is Urgency.WARN
    assert findings(healthy(faults={"scoring_error": 3}))["faults"].urgency is Urgency.INFO


def test_adapters_that_nobody_can_load_are_told():
    lost = [adapter(0, source=None, known_to=0), *FILES[1:]]
    found = findings(healthy(adapters=lost))["no_source"]
    assert (found.urgency, found.adapters) == (Urgency.WARN, ("a00",))
    unasked = [adapter(0, source=None, known_to=0, requests=0), *FILES[1:]]
    assert findings(healthy(adapters=unasked))["no_source"].urgency is Urgency.INFO
    for near in ({"source": None, "known_to": 1}, {"source": None, "known_to": 0, "declared": False}):
        assert checks(healthy(adapters=[adapter(0, **near), *FILES[1:]])) == []


def test_broken_files_are_told():
    broken = [adapter(0, problem="adapter_config.json is missing"), *FILES[1:]]
    assert findings(healthy(adapters=broken))["files"].arithmetic == ("a00: adapter_config.json is missing",)
