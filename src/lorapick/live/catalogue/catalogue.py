"""The adapters' files while the picker runs: where pods load from, and whether files are still what they were.

In: the adapters that are declared now. Out: paths for loads (`resolve`), and `AdapterChecked` events when something is
new or different. Files are looked at in threads; weights from elsewhere are fetched when the first pod is to load them.
Not here: one look (see `live.catalogue.inspector`), who loads what and when.

A name stands for the weights that the first load found. Other weights under it are refused for as long as the record
of it exists: engines keep what they computed with the old ones, and read an evicted adapter's files again.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from lorapick.live.catalogue.fetch import Limits, sweep
from lorapick.live.catalogue.inspector import Inspector, Look
from lorapick.live.ports import NoSourceError, SourceError
from lorapick.model.adapters import Adapter
from lorapick.model.events import AdapterChecked, Event
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.wire.adapter_source import AdapterSourceError, SourceReason

log = logging.getLogger(__name__)

MakeEvent: TypeAlias = Callable[[Seconds, int], Event]
_PASSING = (SourceReason.UNREACHABLE, SourceReason.TIMEOUT)
"""What another try may cure: told to who asked, and nobody is kept from asking again."""


class Options(NamedTuple):
    """How often to look, and how much to fetch."""

    every: Seconds = 10.0
    """Between looks at all files."""
    at_once: int = 2
    """Fetches."""
    limits: Limits = Limits()
    """Of one fetch."""
    again_after: Seconds = 300.0
    """Before an adapter is fetched again that was not good."""
    hub: Path | None = None
    """The Hugging Face cache; None: where HF_HUB_CACHE or HF_HOME say."""


class Catalogue:
    """Answers where pods load adapters from. Runs on one event loop; blocks it never."""

    def __init__(
        self,
        settings: Settings,
        *,
        beside: Path,
        submit: Callable[[MakeEvent], object],
        adapters: Callable[[], Mapping[AdapterName, Adapter]],
        options: Options | None = None,
    ) -> None:
        """Look at nothing yet.

        Args:
            settings: the whole configuration; its adapters are those that pods may always be told of.
            beside: folder that relative paths start from.
            submit: the driver's door.
            adapters: those that the fleet knows now, by name; undeclared ones are passed over.
            options: how often to look, and how much to fetch; None: as documented.
        """
        options = options or Options()
        self._submit = submit
        self._adapters = adapters
        self._options = options
        self._stop = threading.Event()
        self._inspector = Inspector(settings, beside=beside, hub=options.hub, stopped=self._stop.is_set)
        self._fetches = asyncio.Semaphore(options.at_once)
        self._looks: dict[AdapterName, Look] = {}
        self._told: dict[AdapterName, tuple[str | None, AdapterFacts]] = {}
        self._under_way: dict[AdapterName, asyncio.Task[Look]] = {}
        self._bad: dict[AdapterName, tuple[Look, Seconds]] = {}
        """What was fetched and is not good, and until when it is not fetched again."""

    async def __call__(self, adapter: AdapterName, pod: Pod) -> str:
        """`resolve`, as `live.ports.Sources` has it."""
        return await self.resolve(adapter, pod.name)

    async def resolve(self, name: AdapterName, pod: PodName) -> str:
        """What `pod` is to be told as the adapter's path. Fetches it first if need be, which may take minutes.

        Who asks for the same adapter meanwhile waits for the same fetch; who gives up waiting ends it for nobody.

        Raises:
            NoSourceError: nobody declared where it is from.
            SourceError: nobody may load it now; the text says why, and what would help.
        """
        adapter = self._adapters().get(name)
        if adapter is None or not adapter.declared or adapter.source is None:
            raise NoSourceError(
                f"nobody said where {pod} loads {name} from: give it a `source` in adapters.list",
                reason=SourceReason.UNDECLARED,
            )
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.create_task(self._load(adapter), name=f"adapter {name}")
            task.add_done_callback(lambda done: self._over(name, done))
        look = await asyncio.shield(task)
        if look.problem is not None or look.path is None:
            problem = look.problem or AdapterSourceError(SourceReason.MISSING, f"{name}: not fetched")
            raise SourceError(str(problem), lasting=problem.reason not in _PASSING, reason=problem.reason)
        return look.path

    def path(self, name: AdapterName) -> str | None:
        """What pods are told now, without looking: what `resolve` would answer. None: not known, or not allowed."""
        look = self._looks.get(name)
        return look.path if look is not None and look.problem is None else None

    def allow(self, name: AdapterName, source: str) -> None:
        """Refuse whatever else than `resolve` answered, for who is to check what pods are told.

        Raises:
            SourceError: it was not answered so.
        """
        look = self._looks.get(name)
        if look is None or look.problem is not None or look.path != source:
            raise SourceError(f"{source} is not where {name} is loaded from now", reason=SourceReason.NOT_ALLOWED)

    async def run(self) -> None:
        """Clear what earlier fetches left, then look at all files again and again, until cancelled."""
        try:
            await self._clear()
            while True:
                await self.look()
                await asyncio.sleep(self._options.every)
        finally:
            self._stop.set()
            tasks = [*self._under_way.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Look at the files of all declared adapters once."""
        declared = {name: each for name, each in self._adapters().items() if each.declared and each.source is not None}
        for known in (self._looks, self._told, self._bad):
            for name in [name for name in known if name not in declared]:
                del known[name]
        for adapter in await asyncio.to_thread(self._changed, [*declared.values()], dict(self._looks)):
            if adapter.name not in self._under_way and not self._is_bad(adapter):
                last = self._looks.get(adapter.name)
                look = await asyncio.to_thread(self._inspector.look, adapter, last, load=False)
                if self._looks.get(adapter.name) is last and adapter.name not in self._under_way:
                    self._note(look)

    def _changed(self, declared: list[Adapter], looks: Mapping[AdapterName, Look]) -> list[Adapter]:
        """Whom to look at again: in a thread, because it asks the file system twice for each."""
        found = []
        for adapter in declared:
            last = looks.get(adapter.name)
            if last is None or last.adapter != adapter or not self._inspector.unchanged(last):
                found.append(adapter)
        return found

    async def _load(self, adapter: Adapter) -> Look:
        bad = self._bad.get(adapter.name)
        if bad is not None and self._is_bad(adapter):
            return bad[0]
        look = await asyncio.to_thread(self._inspector.look, adapter, self._looks.get(adapter.name), load=True)
        if look.problem is None and look.path is None:
            look = await self._fetch(adapter)
        if not _passes(look):
            self._note(look)
        return look

    async def _fetch(self, adapter: Adapter) -> Look:
        async with self._fetches:
            log.info("adapter %s is fetched from %s", adapter.name, adapter.source)
            try:
                return await asyncio.to_thread(self._inspector.fetch, adapter, limits=self._options.limits)
            except AdapterSourceError as error:
                look = Look(adapter, problem=error)
        if not _passes(look):
            self._bad[adapter.name] = look, asyncio.get_running_loop().time() + self._options.again_after
        return look

    def _is_bad(self, adapter: Adapter) -> bool:
        """Whether it was fetched lately and not good; when that is long ago, nobody is kept from fetching it again."""
        look, until = self._bad.get(adapter.name, (None, 0.0))
        if look is None:
            return False
        if look.adapter == adapter and asyncio.get_running_loop().time() < until:
            return True
        del self._bad[adapter.name]
        return False

    def _note(self, look: Look) -> None:
        """Tell the core what is new."""
        name, problem, facts = look.adapter.name, look.problem, look.facts
        self._looks[name] = look
        told = (None if problem is None else str(problem), facts)
        before = self._told.get(name, (None, AdapterFacts()))
        self._told[name] = told
        if told == before:
            return
        if told[0] != before[0]:
            log.warning("adapter %s is not good: %s", name, problem) if problem else log.info(
                "adapter %s is good", name
            )
        self._submit(lambda t, i: AdapterChecked(t=t, id=i, adapter=name, problem=told[0], facts=facts))

    def _over(self, name: AdapterName, task: "asyncio.Task[Look]") -> None:
        if self._under_way.get(name) is task:
            del self._under_way[name]

    async def _clear(self) -> None:
        store = self._inspector.store
        if store is None:
            return
        try:
            await asyncio.to_thread(sweep, store)
        except OSError as error:
            log.error("placement.store %s cannot be written: %s; nothing can be fetched", store, error)


def _passes(look: Look) -> bool:
    return look.problem is not None and look.problem.reason in _PASSING
