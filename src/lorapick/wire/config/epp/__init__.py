"""llm-d's `EndpointPickerConfig`: text to what it comes to here, with errors that say what would be right.

Use `parse_endpoint_picker`, `with_endpoint_picker` and `is_endpoint_picker`; `TYPES` is the table of all plugin types.
"""

from lorapick.wire.config.epp.applying import with_endpoint_picker
from lorapick.wire.config.epp.catalogue import TYPES
from lorapick.wire.config.epp.file import is_endpoint_picker, parse_endpoint_picker
from lorapick.wire.config.epp.values import EndpointPicker, Kind, Part, PluginType, Support

__all__ = [
    "TYPES",
    "EndpointPicker",
    "Kind",
    "Part",
    "PluginType",
    "Support",
    "is_endpoint_picker",
    "parse_endpoint_picker",
    "with_endpoint_picker",
]
