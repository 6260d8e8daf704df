"""The section `tracing`."""

import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.model.settings import TracingSettings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.settings import parse_settings


def parse(text: str) -> TracingSettings:
    return parse_settings(text, file="x.yaml", policies=POLICIES).tracing


def test_it_is_off_unless_asked_for() -> None:
    assert parse("{}") == TracingSettings(enabled=False, sample=0.1)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("http://otel:4318", "http://otel:4318/v1/traces"),
        ("https://otel/", "https://otel/v1/traces"),
        ("http://otel:4318/other/path", "http://otel:4318/other/path"),
    ],
)
def test_an_address_without_a_path_gets_the_usual_one(written: str, read: str) -> None:
    assert parse(f"tracing: {{enabled: true, endpoint: '{written}', sample: 1}}") == TracingSettings(
        enabled=True, endpoint=read, sample=1.0
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{endpoint: otel:4318}", "must be the URL of an OTLP receiver"),
        ("{endpoint: 'http://'}", "must be the URL of an OTLP receiver"),
        ("{endpoint: 'http://[x'}", "must be the URL of an OTLP receiver"),
        ("{sample: 1.5}", "tracing.sample"),
        ("{sampel: 1}", "sample"),
    ],
)
def test_what_is_wrong_is_said(section: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"tracing: {section}")
    assert said in str(caught.value)
