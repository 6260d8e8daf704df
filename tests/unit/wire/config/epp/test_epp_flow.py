"""Flow control as admission."""

from epp_kit import HEAD, file, parse

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
    assert plain.defaults.max_queue == Settings().defaults.max_queue


def test_without_the_gate_the_section_changes_nothing():
    text = HEAD + (
        "featureGates: []\nplugins: [{type: queue-scorer}]\n"
        "flowControl: {maxBytes: '1024', maxRequests: 0, defaultRequestTTL: 0s, noEndpointRequestTTL: 5s,"
        " enableEviction: true, defaultNegativePriorityBand: {maxRequests: 1}}"
    )
    assert with_endpoint_picker(Settings(), parse(text)).admission == Settings().admission
