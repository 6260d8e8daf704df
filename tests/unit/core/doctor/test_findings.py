"""Findings as values: order of urgencies, and what is a page."""

import msgspec

from lorapick.core.doctor.findings import ORDER, Diagnosis, Finding, Remedy, Urgency


def found(urgency):
    return Diagnosis(findings=(Finding(check="x", urgency=urgency, what="y"),))


def test_only_what_harms_now_is_a_page():
    assert found(Urgency.PAGE).pages
    assert not found(Urgency.WARN).pages
    assert not Diagnosis().pages


def test_every_urgency_has_its_place():
    assert sorted(ORDER) == sorted(Urgency)


def test_a_diagnosis_can_be_read_again():
    remedy = Remedy(action="a", price="none")
    one = Diagnosis(findings=(Finding(check="x", urgency=Urgency.INFO, what="y", remedies=(remedy,)),))
    assert msgspec.json.decode(msgspec.json.encode(one), type=Diagnosis) == one
