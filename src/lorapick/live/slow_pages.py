"""The pages of one pod that change seldom: its list of models, and what its engine says of its own settings.

In: the report of a metrics page. Out: the same with what these pages add, when they are due.
Not here: what they mean (see `wire.engines.listing`), the metrics page (see `live.scrape`).

Both are asked on a slower interval than metrics, the settings only once for each process. What cannot be had is a
doubt of the report and asked again at the next turn; a pod that is not there at all raises, as for metrics.
"""

import asyncio
from contextlib import AbstractContextManager

import msgspec

from lorapick.live.page import PageClient, PageError
from lorapick.model.pods import PodReport, SilentWhy
from lorapick.model.units import Seconds
from lorapick.wire import models_list
from lorapick.wire.engines import Dialect
from lorapick.wire.engines.listing import EngineSettings, with_lists
from lorapick.wire.engines.sglang_info import EngineSettingsError

_NOT_THERE = (SilentWhy.REFUSED, SilentWhy.TIMEOUT)


class SlowPages:
    """Asks when it is time."""

    def __init__(
        self, client: PageClient, dialect: Dialect, *, every: Seconds, meter: AbstractContextManager[None]
    ) -> None:
        """`every`: seconds between two turns; `meter` is entered around parsing."""
        self._client = client
        self._dialect = dialect
        self._every = every
        self._meter = meter
        self._settings: EngineSettings | None = None
        self._known: models_list.ModelsList | None = None
        self._doubts: list[str] = []
        self.due: Seconds = 0.0
        """When the next turn is, on the event loop's clock."""

    def new_process(self) -> None:
        """Another process answers: nothing of the old one holds."""
        self._settings = self._known = None
        self.due = 0.0

    async def add_to(self, report: PodReport) -> PodReport:
        """The report with what the pages add, when it is their turn.

        Raises:
            PageError: the pod is not there.
        """
        now = asyncio.get_running_loop().time()
        if now < self.due:
            return report
        if self._dialect.models_path is None:
            self.due = float("inf")
            return report
        self._doubts = []
        models = await self._models(self._dialect.models_path)
        if self._settings is None and self._dialect.settings_paths:
            self._settings = await self._ask_settings()
        self.due = now + self._every
        if models is not None and not self._dialect.models_have_adapters:
            report = msgspec.structs.replace(report, base_models=models.base_models)
        elif models is not None:
            known, self._known = self._known, models
            report = with_lists(
                report, models, settings=self._settings, in_memory=self._dialect.models_are_memory, known=known
            )
            if report.registered is not None:
                self._known = models_list.ModelsList(base_models=models.base_models, registered=report.registered)
        return msgspec.structs.replace(report, doubts=(*report.doubts, *self._doubts)) if self._doubts else report

    async def _models(self, path: str) -> models_list.ModelsList | None:
        try:
            body = await self._client.get(path)
            with self._meter:
                return self._dialect.parse_models(body)
        except (models_list.ModelsListError, PageError) as error:
            self._note(path, error)
            return None

    async def _ask_settings(self) -> EngineSettings | None:
        """The first of the paths that the engine has; the others are names of other versions."""
        parse = self._dialect.parse_settings
        assert parse is not None, "paths of settings need a parser"
        error: Exception | None = None
        for path in self._dialect.settings_paths:
            try:
                body = await self._client.get(path)
                with self._meter:
                    return parse(body)
            except (EngineSettingsError, PageError) as problem:
                error = problem
                self._raise_if_gone(problem)
        self._doubts.append(f"{' and '.join(self._dialect.settings_paths)}: {error}")
        return None

    def _note(self, path: str, error: Exception) -> None:
        self._raise_if_gone(error)
        self._doubts.append(f"{path}: {error}")

    def _raise_if_gone(self, error: Exception) -> None:
        if isinstance(error, PageError) and error.why in _NOT_THERE:
            raise error
