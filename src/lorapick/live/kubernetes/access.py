"""Where the API server is, and how one is let in.

In: settings; the files that Kubernetes gives to a pod, or a kubeconfig. Out: `Access`: URL, TLS, a fresh token for each
request, the namespace.
Not here: requests (see `client`).

In a cluster this needs nothing beyond aiohttp. A kubeconfig has many ways to log in (commands, OIDC, certificates in
place): kubernetes-asyncio knows them, and is imported only then (ADR 0017).
"""

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from lorapick.model.settings import KubernetesSettings
from lorapick.model.units import Seconds
from lorapick.wire.config import ConfigError, Problem

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_FOR: Seconds = 60.0
"""The kubelet replaces tokens long before they expire; they are read again after so long."""
DEFAULT_NAMESPACE = "default"


class Access:
    """One API server, one identity."""

    def __init__(
        self,
        url: str,
        *,
        namespace: str,
        tls: ssl.SSLContext | None = None,
        headers: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
    ) -> None:
        """Say where it is; `headers` gives the credentials for the next request."""
        self.url = url.rstrip("/")
        self.namespace = namespace
        self.tls = tls
        self._headers = headers

    async def headers(self) -> Mapping[str, str]:
        """Headers that let the next request in."""
        return {} if self._headers is None else await self._headers()


class TokenFile:
    """A bearer token in a file that is replaced now and then."""

    def __init__(self, path: Path, *, clock: Callable[[], Seconds] = time.monotonic) -> None:
        """Read nothing yet."""
        self._path = path
        self._clock = clock
        self._until = float("-inf")
        self._token = ""

    async def headers(self) -> Mapping[str, str]:
        """The token as it is now; the last one that could be read when it cannot."""
        if self._clock() >= self._until:
            try:
                self._token = (await asyncio.to_thread(self._path.read_text)).strip()
            except OSError:
                if not self._token:
                    raise
            self._until = self._clock() + TOKEN_FOR
        return {"Authorization": f"Bearer {self._token}"}


async def find_access(
    settings: KubernetesSettings,
    *,
    beside: Path,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The API server that the settings mean.

    Raises:
        ConfigError: there is none to be found; the message says where it was looked for.
    """
    if settings.server is not None:
        return Access(settings.server, namespace=settings.namespace or DEFAULT_NAMESPACE)
    if settings.kubeconfig is not None:
        return await _of_kubeconfig(settings, beside / settings.kubeconfig)
    return _in_cluster(settings, environment=environment, folder=service_account)


def _in_cluster(settings: KubernetesSettings, *, environment: Mapping[str, str], folder: Path) -> Access:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise _none("this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set); name a kubeconfig, or a server")
    try:
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        (folder / "token").read_bytes()
        written = (folder / "namespace").read_text().strip() if settings.namespace is None else ""
    except (OSError, ssl.SSLError) as error:
        raise _none(f"the service account's files cannot be read ({error}); is its token mounted?") from None
    return Access(
        f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=settings.namespace or written or DEFAULT_NAMESPACE,
        tls=tls,
        headers=TokenFile(folder / "token").headers,
    )


async def _of_kubeconfig(settings: KubernetesSettings, path: Path) -> Access:
    try:
        from kubernetes_asyncio import client, config
    except ImportError:
        raise _none("a kubeconfig needs kubernetes-asyncio; install lorapick[k8s]") from None
    found: Any = client.Configuration()
    try:
        await config.load_kube_config(
            config_file=str(path), context=settings.context, client_configuration=found, persist_config=False
        )
        contexts, current = config.list_kube_config_contexts(config_file=str(path))
        tls = _tls(found)
    except (config.ConfigException, yaml.YAMLError, OSError, ValueError, KeyError, TypeError) as error:
        raise _none(f"the kubeconfig {path} cannot be used: {error}") from None
    chosen: Any = next((each for each in contexts if each["name"] == settings.context), current)

    async def headers() -> Mapping[str, str]:
        try:
            token = await found.get_api_key_with_prefix("BearerToken")  # renews it, where it can be
        except config.ConfigException as error:
            raise OSError(f"no new token: {error}") from error
        return {"Authorization": token} if token else {}

    namespace = settings.namespace or chosen["context"].get("namespace") or DEFAULT_NAMESPACE
    return Access(found.host, namespace=namespace, tls=tls, headers=headers)


def _tls(found: Any) -> ssl.SSLContext | None:
    if not found.host.startswith("https://"):
        return None
    tls = ssl.create_default_context(cafile=found.ssl_ca_cert)
    if found.cert_file:
        tls.load_cert_chain(found.cert_file, keyfile=found.key_file)
    if not found.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _none(message: str) -> ConfigError:
    return ConfigError([Problem(file="discovery.kubernetes", message=message)])
