"""Flow control as admission."""

from epp_kit import HEAD, file, parse
from msgspec.structs import replace

from lorapick.model.bands import SaturationSettings
from lorapick.model.settings import Fairness, Settings
from lorapick.wire.config.epp import with_endpoint_picker


def test_flow_control_is_admission():
    changed = with_endpoint_picker(Settings(), file("flow"))
    admission = changed.admission
    assert (admission.max_queued, admission.max_wait, admission.fairness) == (2000, 90.0, Fairness.ROUND_ROBIN)
    assert admission.patience == Settings().admission.patience
    assert changed.defaults.max_queue == 3
    assert changed.picking.profiles.waits
    plain = with_endpoint_picker(
        Settings(), parse(HEAD + "featureGates: [flowControl]\nplugins: [{type: queue-scorer}]")
    )
    assert (plain.admission.max_wait, plain.admission.patience, plain.admission.max_queued) == (60.0, 0.0, 1000)
    assert plain.defaults.max_queue == 5, "llm-d's"


def test_who_is_shed_is_said_by_the_detector_with_the_gate_or_without():
    detector = "- {type: utilization-detector, parameters: {queueDepthThreshold: 7, kvCacheUtilThreshold: 0.9}}\n"
    for gate in ("[]", "[flowControl]"):
        text = f"featureGates: {gate}\nplugins:\n- {{type: queue-scorer}}\n{detector}"
        text += "flowControl: {saturationDetector: {pluginRef: utilization-detector}}"
        found = with_endpoint_picker(Settings(), parse(HEAD + text))
        assert found.admission.saturation == SaturationSettings(queue=7.0, kv=0.9)
    assert Settings().admission.saturation is None


def test_without_the_gate_the_section_changes_nothing_but_who_is_shed():
    text = HEAD + (
        "featureGates: []\nplugins: [{type: queue-scorer}]\n"
        "flowControl: {maxBytes: '1024', maxRequests: 0, defaultRequestTTL: 0s, noEndpointRequestTTL: 5s,"
        " enableEviction: true, defaultNegativePriorityBand: {maxRequests: 1}}"
    )
    found = with_endpoint_picker(Settings(), parse(text))
    assert found.admission == replace(Settings().admission, saturation=SaturationSettings())
    assert found.defaults == Settings().defaults
