"""The table of all plugin types: those of llm-d-router in August 2026, and lorapick's own.

In: nothing. Out: `TYPES`. docs/endpoint-picker-config.md has the same table; a test holds that they say the same.
"""

from lorapick.wire.config.epp.further import FURTHER
from lorapick.wire.config.epp.handling import HANDLING
from lorapick.wire.config.epp.scheduling import SCHEDULING
from lorapick.wire.config.epp.values import PluginType

TYPES: dict[str, PluginType] = {each.type: each for each in (*SCHEDULING, *HANDLING, *FURTHER)}
"""By type, in the order of the documentation."""
