"""Headers and metadata that the plugins of one file name.

In: the plugins. Out: `HttpNames`. Not here: reading requests (see `wire.extproc.headers`).
"""

from lorapick.core.picking.epp.filters import TEST_HEADER
from lorapick.model.profiles import AttributeReport, HttpNames
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.selecting import AGENTS
from lorapick.wire.config.epp.values import Plugin

SERVED = "x-conformance-test-served-endpoint"


def names_of(registry: Registry) -> HttpNames:
    """Of all plugins that the file defines.

    Raises:
        Refused: two of them want tokens under different names.
    """
    keep: dict[str, None] = {}
    sessions: dict[str, None] = {}
    fairness: tuple[str, ...] = ()
    served: str | None = None
    port: int | None = None
    reports: list[AttributeReport] = []
    for plugin in registry.plugins.values():
        sessions |= dict.fromkeys(plugin.parameters.get("sessions", ()))
        match plugin.type.type:
            case "header-label-affinity-scorer" | "header-profile-handler":
                keep[plugin.parameters["header"]] = None
            case "header-based-testing-filter":
                keep[TEST_HEADER] = None
            case "agent-identity":
                fairness = (*AGENTS, *plugin.parameters.get("agents", ()))
            case "data-parallel-profile-handler":
                port = plugin.parameters["port"]
            case "destination-endpoint-served-verifier":
                served = SERVED
            case "request-attribute-reporter":
                reports.append(_report(plugin, before=reports))
    return HttpNames(
        keep=tuple(keep),
        session=tuple(sessions),
        fairness=fairness,
        token=_token(registry),
        primary_port=port,
        served=served,
        reports=tuple(reports),
    )


def _report(plugin: Plugin, *, before: list[AttributeReport]) -> AttributeReport:
    found: AttributeReport = plugin.parameters["report"]
    if (found.namespace, found.name) in [(each.namespace, each.name) for each in before]:
        assert plugin.at is not None, "injected plugins report nothing"
        plugin.at.refuse(f"another plugin reports {found.name} in {found.namespace} already", value="")
    return found


def _token(registry: Registry) -> str | None:
    first: str | None = None
    for plugin in registry.plugins.values():
        token: str | None = plugin.parameters.get("token")
        if token is None:
            continue
        if first is not None and token != first:
            assert plugin.at is not None, "injected plugins have no tokens"
            plugin.at.refuse(f'sessions have one token here, and another plugin has it in "{first}"', value="")
        first = token
    return first
