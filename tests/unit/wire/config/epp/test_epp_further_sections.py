"""Heads and gates."""

import pytest
from epp_kit import HEAD, parse

from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp.further_sections import GATES


def test_gates_are_told():
    told = parse(HEAD + "featureGates: [flowControl=false, dataLayer]\nplugins: [{type: queue-scorer}]").parts
    assert [part.what for part in told if part.field == "featureGates"] == ["flowControl=false", "dataLayer=true"]
    assert set(GATES) >= {"flowControl", "dataLayer"}


def test_heads_are_checked():
    with pytest.raises(ConfigError, match=r"apiVersion.*must be") as caught:
        parse("apiVersion: v1\nkind: EndpointPickerConfigs\nplugins: []")
    assert 'did you mean "EndpointPickerConfig"?' in str(caught.value)
