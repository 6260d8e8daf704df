"""Whether some pod can serve each adapter of a rollout at all.

In: adapters with what their files told, pods. Out: findings: a fault where no pod can, a warning where some cannot.
Not here: what fits (see `core.placement.compat`, `gate.modules`).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lorapick.core.placement.compat import Misfit, MisfitReason, other_base, problems
from lorapick.model.adapters import Adapter
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName
from lorapick.plan.gate.modules import misfits
from lorapick.plan.gate.values import Finding, Level
from lorapick.plan.sizes.models import BaseModel, built_in
from lorapick.wire.peft import PeftConfig

NOBODY_LOOKED = AdapterFacts()
_built_in = lru_cache(maxsize=64)(built_in)


class AdapterFiles(NamedTuple):
    """What an adapter's files say."""

    facts: AdapterFacts
    config: PeftConfig | None = None
    """None: only facts are known."""


def faults(
    adapters: Sequence[Adapter],
    pods: Sequence[Pod],
    *,
    files: Mapping[AdapterName, AdapterFiles],
    limits: bool = True,
    model: BaseModel | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with the adapters, in their order.

    Args:
        adapters: those that are asked about.
        pods: at least one.
        files: of those that have any.
        limits: whether the pods' base models and highest ranks are what the pods say; False: nobody knows them.
        model: what all pods serve; None: what is built in under the names that they have for it, or that the
            adapter has for it where those say nothing.

    Raises:
        PeftError: an adapter's configuration has a pattern that is none.
    """
    judge = _Judge(pods, limits=limits, model=model)
    return tuple(finding for each in adapters for finding in judge.findings(each, files.get(each.name)))


class _Judge:
    """Knows the fleet."""

    def __init__(self, pods: Sequence[Pod], *, limits: bool, model: BaseModel | None) -> None:
        self._pods = pods
        self._limits = limits
        self._model = model
        self._modules: dict[tuple[AdapterName, str], list[Misfit]] = {}
        """By adapter and model: pods are many, models few."""

    def findings(self, adapter: Adapter, files: AdapterFiles | None) -> Iterator[Finding]:
        """Of one adapter."""
        if not adapter.name.isprintable() or " " in adapter.name:
            message = f"{adapter.name!r} is no name of an adapter: printable and without blanks; rename it"
            yield _fault(adapter, Misfit(MisfitReason.NAME, message))
        foreign = self._foreign(adapter, files)
        if foreign is not None:
            yield _fault(adapter, Misfit(MisfitReason.BASE_MODEL, foreign))
        found = [self._misfits(adapter, pod, files=files, modules=foreign is None) for pod in self._pods]
        unfit = [each for each in found if each]
        nowhere = len(unfit) == len(self._pods)
        others = f" (and {len(unfit) - 1} more pods)" if len(unfit) > 1 else ""
        for misfit in unfit[0] if unfit else ():
            # What is said of modules names the model and no pod.
            words = misfit.message if misfit.reason is MisfitReason.MODULES else f"{misfit.message}{others}"
            yield _fault(adapter, misfit._replace(message=words), level=Level.FAIL if nowhere else Level.WARN)

    def _foreign(self, adapter: Adapter, files: AdapterFiles | None) -> str | None:
        """What to say of an adapter whose own files name a base model that no pod serves."""
        base = files.facts.base_model if files is not None else None
        if base is None or adapter.base_model is not None or not self._limits:
            return None
        if not all(other_base(base, pod.base_model) for pod in self._pods):
            return None
        served = ", ".join(dict.fromkeys(pod.base_model for pod in self._pods))
        return f"{adapter.name} was trained on {base}; the pods serve {served}: its answers would be wrong"

    def _misfits(self, adapter: Adapter, pod: Pod, *, files: AdapterFiles | None, modules: bool) -> list[Misfit]:
        facts = files.facts if files is not None else NOBODY_LOOKED
        asked = adapter
        if not self._limits:
            asked, facts = Adapter(name=adapter.name), AdapterFacts(needs=facts.needs)
        found = problems(asked, pod, facts=facts)
        model = self._served(adapter, pod, files=files)
        other = not modules or any(each.reason is MisfitReason.BASE_MODEL for each in found)
        if model is None or files is None or files.config is None or other:
            return found
        key = (adapter.name, model.name)
        if key not in self._modules:
            self._modules[key] = [*misfits(adapter.name, files.config, facts=files.facts, model=model)]
        return [*found, *self._modules[key]]

    def _served(self, adapter: Adapter, pod: Pod, *, files: AdapterFiles | None) -> BaseModel | None:
        """The model whose modules count: what the pod serves, else what the adapter says that it is for."""
        if self._model is not None:
            return self._model
        named = [pod.base_model] if self._limits else []
        named += [adapter.base_model or "", (files.facts.base_model if files is not None else None) or ""]
        return next((model for name in named if name and (model := _built_in(name)) is not None), None)


def _fault(adapter: Adapter, misfit: Misfit, *, level: Level = Level.FAIL) -> Finding:
    return Finding(rule=misfit.reason.value, level=level, message=misfit.message, adapter=adapter.name)
