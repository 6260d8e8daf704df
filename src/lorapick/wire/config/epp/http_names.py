"""Headers that the plugins of one file name.

In: the plugins. Out: `HttpNames`. Not here: reading requests (see `wire.extproc.headers`).
"""

from lorapick.core.picking.epp.filters import TEST_HEADER
from lorapick.model.profiles import HttpNames
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.selecting import AGENTS

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
    return HttpNames(
        keep=tuple(keep),
        session=tuple(sessions),
        fairness=fairness,
        token=_token(registry),
        primary_port=port,
        served=served,
    )


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
