"""Alerts that page somebody are in the diagnosis, whatever the figures of this instant are."""

import pytest
from pictures_kit import findings, healthy

from lorapick.core.doctor.diagnose import diagnose
from lorapick.core.doctor.findings import Urgency
from lorapick.core.doctor.picture import AlertPicture
from lorapick.core.doctor.standing import CHECKS
from lorapick.model.alerts import Alert, Severity

PAGES = [alert for alert in Alert if alert.severity is Severity.PAGE]


@pytest.mark.parametrize("alert", PAGES)
def test_a_page_that_stands_is_now_though_its_figure_is_well_again(alert):
    standing = AlertPicture(name=alert, since=9_990.0, facts={"share": 0.11})
    found = diagnose(healthy(alerts=(standing,)))
    (finding,) = found.findings
    assert (finding.check, finding.urgency, found.pages) == (CHECKS[alert][0], Urgency.PAGE, True)
    assert finding.arithmetic == (f"the alert {alert} stands for 10 s: share: 0.11",)
    assert f"/runbooks/{alert}" in finding.remedies[0].action


def test_a_page_makes_the_finding_of_its_check_one():
    crowded = {"active_adapters": 60, "active_per_slot": 60 / 64}
    assert findings(healthy(fleet=crowded))["room"].urgency is Urgency.WARN
    found = findings(healthy(fleet=crowded, alerts=(AlertPicture(name="thrash"),)))
    assert [*found] == ["thrash"]
    assert found["thrash"].urgency is Urgency.PAGE
    assert found["thrash"].arithmetic[-1] == "the alert thrash stands"


def test_warnings_and_alerts_of_other_versions_change_nothing():
    others = (AlertPicture(name="active_adapters"), AlertPicture(name="unheard_of"))
    assert diagnose(healthy(alerts=others)).findings == ()
