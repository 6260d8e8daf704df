import pytest
from retention_kit import policy

from lorapick.core.retention.policies import RETENTIONS, make_retention
from lorapick.model.retention import Retention, RetentionFacts
from lorapick.model.settings import RetentionSettings
from lorapick.wire.config import ConfigError, parse_settings


def test_each_is_found_by_its_name():
    for name in RETENTIONS:
        retention: Retention = policy(name)
        assert retention.name == name


def test_one_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"^retention\.policy: 'mru' is unknown; use one of lru, lfu, window, cost$"):
        make_retention(RetentionSettings(policy="mru"), lambda _: RetentionFacts())


def test_the_default_exists():
    assert make_retention(RetentionSettings(), lambda _: RetentionFacts()).name == "window"


def test_the_configuration_takes_these_names_and_no_others():
    def parsed(name):
        text = f"discovery: {{pods: []}}\nretention: {{policy: {name}}}"
        return parse_settings(text, file="l.yaml", policies=("weighted",)).retention.policy

    assert [parsed(name) for name in RETENTIONS] == [*RETENTIONS]
    with pytest.raises(ConfigError) as refused:
        parsed("mru")
    assert all(name in str(refused.value) for name in RETENTIONS)
