"""Whether some pod can serve each adapter of a rollout at all.

In: adapters with what their files told, pods. Out: findings: a fault where no pod can, a warning where some cannot.
Not here: what fits (see `core.placement.compat`).
"""

from collections.abc import Iterator, Mapping, Sequence

from lorapick.core.placement.compat import other_base, problems
from lorapick.model.adapters import Adapter
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName
from lorapick.plan.gate.values import Finding, Level


def faults(
    adapters: Sequence[Adapter], pods: Sequence[Pod], *, facts: Mapping[AdapterName, AdapterFacts]
) -> tuple[Finding, ...]:
    """What is wrong with the adapters, in their order."""
    return tuple(finding for adapter in adapters for finding in _of(adapter, pods, facts=facts.get(adapter.name)))


def _of(adapter: Adapter, pods: Sequence[Pod], *, facts: AdapterFacts | None) -> Iterator[Finding]:
    if not adapter.name.isprintable() or " " in adapter.name:
        message = f"{adapter.name!r} is no name of an adapter: printable and without blanks; rename it"
        yield Finding(rule="name", level=Level.FAIL, message=message, adapter=adapter.name)
    base = facts.base_model if facts is not None else None
    if base is not None and adapter.base_model is None and all(other_base(base, pod.base_model) for pod in pods):
        served = ", ".join(dict.fromkeys(pod.base_model for pod in pods))
        message = f"{adapter.name} was trained on {base}; the pods serve {served}: its answers would be wrong"
        yield Finding(rule="base_model", level=Level.FAIL, message=message, adapter=adapter.name)
    found = [problems(adapter, pod, facts=facts) for pod in pods]
    unfit = [misfits for misfits in found if misfits]
    level = Level.FAIL if len(unfit) == len(pods) else Level.WARN
    for misfit in unfit[0] if unfit else ():
        others = f" (and {len(unfit) - 1} more pods)" if len(unfit) > 1 else ""
        yield Finding(rule=misfit.reason.value, level=level, message=f"{misfit.message}{others}", adapter=adapter.name)
