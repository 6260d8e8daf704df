"""The status table."""

import pytest

from lorapick.model.reasons import STATUS, Reason, status_of


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        (404, "adapter_unknown"),
        (400, "body_invalid"),
        (413, "body_too_large"),
        (429, "shed queue_full slots_full pressure_soft pressure_hard load_budget probation"),
        (503, "pressure_critical deadline no_pod"),
    ],
)
def test_status_of_each_rejection(status, reasons):
    assert {status_of(Reason(reason)) for reason in reasons.split()} == {status}


def test_every_other_reason_ends_as_503():
    assert {status_of(reason) for reason in Reason if reason not in STATUS} == {503}


def test_words_are_metric_label_values():
    assert all(reason.value == reason.name.lower() for reason in Reason)
