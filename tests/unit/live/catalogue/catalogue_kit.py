"""A catalogue with its fleet's adapters, and what it told of them."""

from pathlib import Path

import msgspec

from lorapick.live.catalogue import Catalogue, Options
from lorapick.model.adapters import Adapter
from lorapick.model.events import AdapterChecked
from lorapick.model.settings import PlacementSettings, Settings


class Kit:
    """A catalogue to ask, and what it submitted."""

    def __init__(self, beside: Path, *adapters: Adapter, options: Options | None = None, **settings) -> None:
        placement = PlacementSettings(**{key: settings.pop(key) for key in ("store", "sources") if key in settings})
        self.adapters = {each.name: msgspec.structs.replace(each, declared=True) for each in adapters}
        self.told: list[AdapterChecked] = []
        self.catalogue = Catalogue(
            Settings(adapters=tuple(self.adapters.values()), placement=placement, **settings),
            beside=beside,
            submit=lambda make: self.told.append(make(0.0, len(self.told))),
            adapters=lambda: self.adapters,
            options=options,
        )

    def news(self) -> list[AdapterChecked]:
        """What was told since the last call."""
        told, self.told = self.told, []
        return told

    async def look(self) -> list[AdapterChecked]:
        """What one round tells."""
        await self.catalogue.look()
        return self.news()

    async def resolve(self, name: str) -> str:
        return await self.catalogue.resolve(name, "pod-01")
