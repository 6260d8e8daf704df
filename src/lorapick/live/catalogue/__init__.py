"""Where adapters come from: folders, a Hugging Face cache, remote storage; and whether they are still the same."""

from lorapick.live.catalogue.folders import CatalogueError, read_catalogue, with_catalogue

__all__ = ["CatalogueError", "read_catalogue", "with_catalogue"]
