"""A small client of the Kubernetes API for tests: plain HTTP, JSON, no library whose habits would hide the server's.

In: an address, a CA file, a token. Out: objects as dicts; `ApiError` with the server's status and words. Not here: what
the objects mean.
"""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]

GROUPS = {
    "pods": "api/v1",
    "events": "api/v1",
    "serviceaccounts": "api/v1",
    "namespaces": "api/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "inferencepools": "apis/inference.networking.k8s.io/v1",
    "inferenceobjectives": "apis/inference.networking.x-k8s.io/v1alpha2",
    "inferencemodelrewrites": "apis/inference.networking.x-k8s.io/v1alpha2",
    "loraadapters": "apis/lorapick.dev/v1alpha1",
}
OF_THE_CLUSTER = {"namespaces", "customresourcedefinitions"}
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The server refused: its HTTP status, and its words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status


class Api:
    """One server, one identity, one namespace."""

    def __init__(self, url: str, *, authority: str, token: str, namespace: str = "default") -> None:
        self.url, self.token, self.namespace = url, token, namespace
        self._context = ssl.create_default_context(cafile=authority)

    def get(self, kind: str, name: str) -> Object:
        """Answer one object."""
        return self._ask("GET", self.path(kind, name))

    def list(self, kind: str, *, query: str = "") -> Object:
        """Answer the list of all of a kind."""
        return self._ask("GET", self.path(kind) + query)

    def create(self, kind: str, body: Mapping[str, Any], *, query: str = "") -> Object:
        """Create an object and answer it."""
        return self._ask("POST", self.path(kind) + query, body)

    def merge(self, kind: str, name: str, body: Mapping[str, Any]) -> Object:
        """Change an object by a merge patch; `name` may end in `/status`."""
        return self._ask("PATCH", self.path(kind, name), body, content=MERGE)

    def delete(self, kind: str, name: str, *, grace_seconds: int | None = None) -> Object:
        """Delete an object; 0 is what a kubelet says when it has ended a pod."""
        body = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        return self._ask("DELETE", self.path(kind, name), body)

    def account_token(self, account: str) -> str:
        """Answer a token of a service account, as a pod would have it mounted."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = self._ask("POST", self.path("serviceaccounts", f"{account}/token"), body)
        return str(answer["status"]["token"])

    def watch(self, kind: str, *, since: str, seconds: int = 20) -> Iterator[Object]:
        """Yield events after the resource version `since`, until the server ends the watch after `seconds`.

        Raises:
            ApiError: the server refused the watch, or ended it with an error event; `status` is 410 where it has
                forgotten what came after `since`.
        """
        path = f"{self.path(kind)}?watch=true&resourceVersion={since}&timeoutSeconds={seconds}"
        with self._open("GET", path, None, content="", timeout=seconds + 10) as answer:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"]["code"], event["object"]["message"])
                yield event

    def path(self, kind: str, name: str = "") -> str:
        """Answer the path of a kind, or of one of it."""
        where = "" if kind in OF_THE_CLUSTER else f"namespaces/{self.namespace}/"
        return f"{GROUPS[kind]}/{where}{kind}" + (f"/{name}" if name else "")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, content: str = "") -> Object:
        with self._open(method, path, body, content=content or "application/json", timeout=15) as answer:
            return dict(json.load(answer))

    def _open(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, content: str, timeout: float
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = content
        request = urllib.request.Request(f"{self.url}/{path}", data=data, headers=headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=timeout, context=self._context)  # type: ignore[no-any-return]
        except urllib.error.HTTPError as error:
            with error:
                words = error.read().decode(errors="replace")
            raise ApiError(error.code, words[:500]) from None
