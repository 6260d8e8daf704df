"""Names of adapters, pods and aliases that operators write, checked against a running picker.

In: names. Out: rows and pods; or `OperationError` that says what is known instead. Not here: what is done with them.
"""

from collections.abc import Iterable, Mapping, Sequence

from lorapick.core.placement.guard import cannot_serve
from lorapick.core.placement.wants import fits
from lorapick.core.state import FleetState
from lorapick.live.operations import OperationError
from lorapick.live.problems import nearest
from lorapick.model.pods import Pod
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName
from lorapick.wire.api import ApiReason

MOST_TOLD = 5
"""Pods that a message names one by one."""


def is_known(state: FleetState, name: AdapterName) -> bool:
    """Whether the operator or a pod named this adapter."""
    return name in state.adapters or state.residency.registry.known(name)


def check_adapter(state: FleetState, name: AdapterName) -> None:
    """Raises OperationError when there is no such adapter."""
    if is_known(state, name):
        return
    if name in state.aliases:
        leads = ", ".join(target.adapter for target in state.aliases[name].to)
        detail = f"{name!r} is an alias; name an adapter that it leads to: {leads}"
        raise OperationError(404, ApiReason.ADAPTER_UNKNOWN, detail=detail)
    names = state.residency.names()
    detail = f"no adapter {name!r} among {len(names)}; GET /v1/adapters lists them, PUT /v1/adapters/NAME declares one"
    raise OperationError(404, ApiReason.ADAPTER_UNKNOWN, detail=detail, near=nearest(name, names))


def check_pods(state: FleetState, names: Iterable[PodName]) -> None:
    """Raises OperationError when there is no such pod."""
    for name in names:
        if name not in state.columns.row_of:
            known = [*state.columns.row_of]
            detail = f"no pod {name!r} among {len(known)}; GET /v1/fleet lists them"
            raise OperationError(404, ApiReason.POD_UNKNOWN, detail=detail, near=nearest(name, known))


def meant(state: FleetState, pods: Sequence[PodName], *, selector: Mapping[str, str]) -> list[tuple[int, Pod]]:
    """Pods by name; none named: those that the selector fits."""
    live = state.columns.live()
    return [(row, pod) for row, pod in live if (pod.name in pods if pods else fits(selector, pod))]


def why_unfit(state: FleetState, name: AdapterName, *, row: int) -> str | None:
    """Why nobody can be told to load an adapter on a pod, however long one waits; None: it can be done."""
    caches = state.residency.home(row).caches
    if not caches.loads:
        pod = state.columns.pods[row]
        return f"{pod.engine.value if pod is not None else 'its engine'} cannot be told to load over HTTP"
    adapter = state.adapters.get(name)
    if not state.residency.registry.accepts(row, name):
        if not caches.registers:
            return "does not know its name, and can be told none while it runs"
        if adapter is None or adapter.source is None:
            return "does not know its name, and the adapter was declared without a source"
    return cannot_serve(state, row, name=name)


def check_fit(
    state: FleetState, name: AdapterName, *, pods: Sequence[PodName], selector: Mapping[str, str] | None = None
) -> None:
    """Raises OperationError when a named pod, or every pod that the selector fits, can never hold the adapter."""
    found = meant(state, pods, selector=selector or {})
    if not found:
        said = ", ".join(f"{key}={value}" for key, value in (selector or {}).items())
        detail = f"no pod has the labels {said}; GET /v1/fleet lists the pods" if said else "there are no pods"
        raise OperationError(409, ApiReason.UNFIT, detail=detail)
    reasons = {pod.name: why_unfit(state, name, row=row) for row, pod in found}
    unfit = {pod: why for pod, why in reasons.items() if why is not None}
    if unfit and (pods or len(unfit) == len(found)):
        told = "; ".join(f"pod {pod}: {why}" for pod, why in [*unfit.items()][:MOST_TOLD])
        more = f"; and {len(unfit) - MOST_TOLD} more" if len(unfit) > MOST_TOLD else ""
        raise OperationError(409, ApiReason.UNFIT, detail=f"{name} cannot be loaded: {told}{more}")


def check_enabled(state: FleetState) -> None:
    """Raises OperationError when the configuration says that nobody is told to load anything."""
    if not state.settings.placement.enabled:
        detail = "placement.enabled is false, so no pod is told anything; set it to true in the configuration"
        raise OperationError(409, ApiReason.PLACEMENT_OFF, detail=detail)
    if not state.placement.leads:
        detail = "another replica leads, and tells pods what to load; ask it (the Lease names it)"
        raise OperationError(409, ApiReason.PLACEMENT_OFF, detail=detail)


def pods_of(state: FleetState, rows: Iterable[int]) -> tuple[PodName, ...]:
    """Names of rows, in their order."""
    return tuple(state.columns.targets[row].pod for row in rows)


def resident_rows(state: FleetState, name: AdapterName) -> list[int]:
    """Rows that hold an adapter in a slot; where loads end in host memory, there."""
    return [row for row, _ in state.columns.live() if is_resident(state, name, row=row)]


def is_resident(state: FleetState, name: AdapterName, *, row: int) -> bool:
    """Whether what a load brings about is there. Weights whose name a pod forgot (vLLM's unload) are of no use."""
    home = state.residency.home(row)
    cell = home.cells.get(name)
    if cell is None or not state.residency.registry.accepts(row, name):
        return False
    return cell.tier.on_gpu or (home.caches.loads_to_host and cell.tier is Tier.CPU)


def wanted_rows(state: FleetState, name: AdapterName) -> list[int]:
    """Rows that should hold an adapter as of the last tick."""
    return sorted(row for row, wanted in state.placement.wanted.items() if name in wanted)
