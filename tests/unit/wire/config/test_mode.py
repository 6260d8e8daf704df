"""`mode:` of the configuration. What is wrong with one is in settings-errors.txt."""

import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.model.arms import Mode, ModeKind
from lorapick.wire.config import parse_settings


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        ("", Mode(), "enforce"),
        ("mode: enforce", Mode(), "enforce"),
        ("mode: observe", Mode(kind=ModeKind.OBSERVE), "observe"),
        ("mode: {percent: 25}", Mode(kind=ModeKind.PERCENT, percent=25.0), "percent 25"),
        ("mode: {percent: 0.5}", Mode(kind=ModeKind.PERCENT, percent=0.5), "percent 0.5"),
        ("mode: {kind: observe, route: gie-default}", Mode(kind=ModeKind.OBSERVE, route="gie-default"), "observe"),
    ],
)
def test_modes_are_read(text, mode, told):
    found = parse_settings(f"discovery: {{file: pods.yaml}}\n{text}\n", file="l.yaml", policies=POLICIES).mode
    assert found == mode
    assert found.text == told


def test_the_share_that_picks_are_in_force_for():
    kinds = [Mode(), Mode(kind=ModeKind.OBSERVE), Mode(kind=ModeKind.PERCENT, percent=25.0)]
    assert [mode.enforced for mode in kinds] == [1.0, 0.0, 0.25]
