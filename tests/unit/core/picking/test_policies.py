"""Policies by name."""

import pytest

from lorapick.core.picking.policies import POLICIES, make_policy
from lorapick.model.settings import PickingSettings


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_is_made_by_its_name(name):
    assert make_policy(PickingSettings(policy=name)).name == name


def test_an_unknown_policy_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"'best' is unknown; use one of weighted, cost, round-robin"):
        make_policy(PickingSettings(policy="best"))
