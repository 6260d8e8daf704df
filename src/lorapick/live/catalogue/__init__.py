"""Where adapters come from: folders, a Hugging Face cache, remote storage; and whether they are still the same."""

from lorapick.live.catalogue.catalogue import Catalogue, Options
from lorapick.live.catalogue.fetch import Limits
from lorapick.live.catalogue.folders import CatalogueError, read_catalogue, with_catalogue
from lorapick.wire.adapter_source import SourceReason

__all__ = [
    "Catalogue",
    "CatalogueError",
    "Limits",
    "Options",
    "SourceReason",
    "read_catalogue",
    "with_catalogue",
]
