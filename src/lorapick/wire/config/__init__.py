"""The configuration file `lorapick.yaml`: text to `Settings`, with errors that say what would be right.

Use `parse_settings`, `later_keys` and `settings_hash`; everything else here is how they do it.
"""

from lorapick.wire.config.later import Later, later_keys, one_per_key
from lorapick.wire.config.problems import ConfigError, Problem, unreadable
from lorapick.wire.config.settings import parse_settings, settings_hash

__all__ = [
    "ConfigError",
    "Later",
    "Problem",
    "later_keys",
    "one_per_key",
    "parse_settings",
    "settings_hash",
    "unreadable",
]
