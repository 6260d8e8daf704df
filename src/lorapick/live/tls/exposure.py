"""What listens beyond this machine, and what must be so for that.

In: settings. Out: which servers have TLS; refusals (`BindError`) and warnings, each with its remedy (docs/tls.md has
the table). Not here: listening, certificates.
"""

from collections.abc import Iterator

from lorapick.live.admin_token import is_loopback
from lorapick.live.web import BindError, split_bind
from lorapick.model.settings import Settings

SURFACES = ("extproc", "metrics", "admin")


def beyond_loopback(address: str, *, setting: str) -> bool:
    """Whether other machines can reach `host:port` or `unix:PATH`."""
    return not address.startswith("unix:") and not is_loopback(split_bind(address, setting=setting)[0])


def with_tls(settings: Settings) -> tuple[str, ...]:
    """Names of the servers that listen by TLS."""
    return tuple(surface for surface in SURFACES if _has_tls(settings, surface))


def _has_tls(settings: Settings, surface: str) -> bool:
    address, wanted = getattr(settings.server, surface), getattr(settings.tls, surface)
    if address.startswith("unix:"):
        return False
    if wanted.enabled is not None:
        return bool(wanted.enabled)
    if wanted.client_ca is not None:
        return True
    return surface == "extproc" and beyond_loopback(address, setting="server.extproc")


def check_exposure(settings: Settings) -> list[str]:
    """Warnings about what listens beyond loopback.

    Raises:
        BindError: the admin API would answer anybody.
    """
    server = settings.server
    if beyond_loopback(server.admin, setting="server.admin") and not _asks(settings, "admin"):
        raise BindError(
            f"server.admin: {server.admin} can be reached from other machines, and the admin API would show anybody "
            "models and requests; set server.admin_token, server.admin_token_file or tls.admin.client_ca, or listen on "
            "127.0.0.1 (kubectl port-forward reaches it there)"
        )
    return [*_warnings(settings)]


def _warnings(settings: Settings) -> Iterator[str]:
    server, secured = settings.server, with_tls(settings)
    if "extproc" not in secured and beyond_loopback(server.extproc, setting="server.extproc"):
        yield (
            f"server.extproc: {server.extproc} takes plain gRPC from other machines, prompts included; remove "
            "tls.extproc.enabled: false, unless a mesh encrypts"
        )
    for surface in ("metrics", "admin"):
        address = getattr(server, surface)
        if not beyond_loopback(address, setting=f"server.{surface}"):
            continue
        if not _asks(settings, surface):
            yield (
                f"server.{surface}: {address} shows names of adapters and their traffic to other machines; set "
                f"server.{surface}_token_file or tls.{surface}.client_ca, or let a NetworkPolicy say who reaches it"
            )
        elif surface not in secured:
            yield (
                f"server.{surface}: the token for {address} crosses the network as it is; set "
                f"tls.{surface}.enabled: true"
            )
    if settings.tls.min_version != "1.2" and "extproc" in secured:
        yield f"tls.min_version: {settings.tls.min_version} holds for metrics and admin; gRPC takes 1.2 too"


def _asks(settings: Settings, surface: str) -> bool:
    """Whether callers must show something."""
    server, client_ca = settings.server, getattr(settings.tls, surface).client_ca
    names = (f"{surface}_token", f"{surface}_token_file")
    return client_ca is not None or any(getattr(server, name) is not None for name in names)
