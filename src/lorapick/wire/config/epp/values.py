"""What an `EndpointPickerConfig` comes to, as values.

In: nothing. Out: values. Not here: reading (see `file`), what types there are (see `catalogue`).
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from lorapick.model.bands import Band, CeilingSettings, ChanceSettings, Ordering, SaturationSettings
from lorapick.model.disaggregation import Decide
from lorapick.model.profiles import Profiles
from lorapick.model.settings import Fairness
from lorapick.model.units import Bytes, Seconds, Tokens
from lorapick.wire.config.document import At


class Kind(StrEnum):
    """What a plugin is for."""

    FILTER = "filter"
    SCORER = "scorer"
    PICKER = "picker"
    HANDLER = "profile handler"
    DECIDER = "decider"
    ADMITTER = "admission"
    PRODUCER = "data producer"
    PARSER = "parser"
    SOURCE = "data source"
    EXTRACTOR = "extractor"
    DISCOVERY = "discovery"
    DETECTOR = "saturation detector"
    FAIRNESS = "fairness policy"
    ORDERING = "ordering policy"
    LIMIT = "usage limit policy"
    EVICTION = "eviction policy"
    HEADERS = "request header processor"
    RESPONSE = "response plugin"
    SCREENER = "screener"
    TEST = "conformance test"


class Support(StrEnum):
    """What becomes of a plugin of a type."""

    SAME = "same"
    """It means the same here."""
    DIFFERS = "differs"
    """It does what it is for, with a difference that is said."""
    ALWAYS = "always"
    """Accepted, and changes nothing: lorapick does that anyway, or has no need of it."""
    OWN = "lorapick"
    """A type that only lorapick has."""
    REFUSED = "refused"
    """Refused by name, with the reason and the nearest alternative."""


ReadParameters = Callable[[At | None], dict[str, Any]]
"""Parameters of a plugin (None: none are written) as arguments of what runs here; defaults filled in."""


class PluginType(NamedTuple):
    """One type that a plugin may have."""

    type: str
    kinds: tuple[Kind, ...]
    support: Support
    does: str
    """What it does here; of a refused one, why it is."""
    read: ReadParameters
    instead: str = ""
    """Of a refused or deprecated one: what to use."""
    deprecated: bool = False
    """By llm-d."""


class Plugin(NamedTuple):
    """One entry of `plugins`, or one that was injected."""

    name: str
    type: PluginType
    parameters: dict[str, Any]
    written: str
    """Parameters as the file has them, on one line; empty: none."""
    at: At | None
    """Its entry; None: it was injected."""

    def is_a(self, kind: Kind) -> bool:
        """Whether it is of a kind."""
        return kind in self.type.kinds


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a file and what it will do."""

    field: str
    """Path in the file; empty: it was injected."""
    line: int | None
    what: str
    """Type of the plugin, or the key."""
    name: str = ""
    """Of the plugin, where it is not the type."""
    parameters: str = ""
    support: Support
    does: str


class Split(NamedTuple):
    """Whether other pods prefill."""

    decide: Decide
    uncached_tokens: Tokens | None = None
    """From how many on; None: as configured."""


class Flow(NamedTuple):
    """Who waits at the picker, as far as the file says; None: as configured."""

    max_queued: int | None = None
    max_bytes: Bytes | None = None
    bands: tuple[Band, ...] | None = None
    max_wait: Seconds | None = None
    fairness: Fairness | None = None
    ordering: Ordering | None = None
    patience: Seconds | None = None
    max_queue: int | None = None
    """Queue depth at which a pod takes no more."""
    saturation: SaturationSettings | None = None
    """From when on priorities below 0 are shed."""
    chance: ChanceSettings | None = None
    """How likely they are before that."""
    ceilings: CeilingSettings | None = None
    """From when on others wait though pods have room."""


class EndpointPicker(NamedTuple):
    """All of one file."""

    file: str
    profiles: Profiles
    split: Split
    flow: Flow
    fallbacks: int | None
    """Endpoints named after the picked one; None: as configured."""
    prefix_blocks: int | None
    engine: str | None
    """Of pods that do not say."""
    endpoints: str | None
    """File with the pods (`file-discovery`)."""
    parts: tuple[Part, ...]
    """In the order of the file, injected ones last."""
    deprecated: tuple[str, ...]
    differences: tuple[str, ...]
    """What happens here that does not with llm-d, whatever the file says."""
