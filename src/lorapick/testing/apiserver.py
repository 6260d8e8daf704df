"""A Kubernetes API server for tests: objects with resource versions, lists, watches, conflicts; and faults on demand.

In: HTTP on a loopback port. Out: what an API server would answer, for all namespaced kinds alike, without schemas,
admission or rights. Not here: what a real one does beyond that (see `make test-k8s`).

kmock 0.8 has neither resource versions nor selectors nor conflicts, which are what is to be tested here.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Plural with its group and version, namespace, name."""
DEFAULT_GRACE_S = 30


class ApiServer:
    """Use `running()`; then `url`, and the methods that do what others would do."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.kinds: set[str] = {"pods", "events", "leases", "inferencepools", "loraadapters"}
        """Plurals that exist; others answer 404."""
        self.requests: list[tuple[str, str]] = []
        """Method and path (with query) of all that came."""
        self.refuse: dict[str, int] = {}
        """Plural to the status that every request for it gets."""
        self.hang: set[str] = set()
        """Plurals of which requests get no answer."""
        self.url = ""
        self._versions = itertools.count(100)
        self._log: list[tuple[int, str, str, Object]] = []
        """Version, kind of change, plural, object."""
        self._oldest = 0
        self._news = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._streams: set[asyncio.Task[Any]] = set()
        self._cut = asyncio.Event()

    # -- life

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["ApiServer"]:
        """Serve while the block runs."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        """Serve on a port of one's own; after `stop`, on the same one."""
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._cut = asyncio.Event()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Be away; objects stay."""
        if self._runner is not None:
            await self.disconnect()
            await self._runner.cleanup()
            self._runner = None

    async def disconnect(self) -> None:
        """Break all watches."""
        self._cut.set()
        await asyncio.sleep(0)
        self._cut = asyncio.Event()

    async def compact(self) -> None:
        """Forget all changes until now: watches that begin before answer 410."""
        self._oldest = next(self._versions)
        self._log.clear()

    # -- what others do

    async def put(self, plural: str, item: Mapping[str, Any], *, namespace: str = "default") -> Object:
        """Create an object, or change it to this (labels, spec and status as given)."""
        stored: Object = json.loads(json.dumps(item))
        metadata = stored.setdefault("metadata", {})
        key = (plural, namespace, metadata["name"])
        before = self.objects.get(key)
        metadata.setdefault("namespace", namespace)
        metadata.setdefault("uid", f"uid-{metadata['name']}")
        stamp = before["metadata"]["creationTimestamp"] if before is not None else _now()
        metadata.setdefault("creationTimestamp", stamp)
        return await self._store(key, stored, change="ADDED" if before is None else "MODIFIED")

    async def merge(self, plural: str, name: str, *, patch: Mapping[str, Any], namespace: str = "default") -> Object:
        """Change some of an object."""
        key = (plural, namespace, name)
        return await self._store(key, _merged(self.objects[key], patch), change="MODIFIED")

    async def begin_delete(self, name: str, *, grace: float = DEFAULT_GRACE_S, namespace: str = "default") -> None:
        """Mark a pod as going, as the API server does at once."""
        until = datetime.now(UTC) + timedelta(seconds=grace)
        stamp = until.isoformat().replace("+00:00", "Z")
        await self.merge("pods", name, patch={"metadata": {"deletionTimestamp": stamp}}, namespace=namespace)

    async def delete(self, plural: str, name: str, *, namespace: str = "default") -> None:
        """Remove an object, as the kubelet has it removed in the end."""
        key = (plural, namespace, name)
        await self._store(key, self.objects[key], change="DELETED")

    def get(self, plural: str, name: str, *, namespace: str = "default") -> Object:
        """An object as it is."""
        return self.objects[plural, namespace, name]

    def all(self, plural: str) -> list[Object]:
        """All objects of a kind."""
        return [item for (kind, _, _), item in self.objects.items() if kind == plural]

    # -- storage

    async def _store(self, key: Key, item: Object, *, change: str) -> Object:
        version = next(self._versions)
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(version)}}
        before = self.objects.get(key)
        generation = before["metadata"].get("generation", 1) if before is not None else 0
        same = before is not None and before.get("spec") == item.get("spec")
        item["metadata"]["generation"] = generation if same else generation + 1
        if change == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = item
        self._log.append((version, change, key[0], item))
        async with self._news:
            self._news.notify_all()
        return item

    # -- HTTP

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        found = _place(request.path)
        plural = found[0] if found is not None else ""
        if plural in self.hang:
            await asyncio.sleep(3600)
        if plural in self.refuse:
            return _status(self.refuse[plural], "refused by the test")
        if found is None or plural not in self.kinds:
            return _status(404, "the server could not find the requested resource")
        _, namespace, name, sub = found
        if request.method == "GET":
            if name:
                item = self.objects.get((plural, namespace, name))
                return _status(404, f"{plural} {name} not found") if item is None else web.json_response(item)
            if request.query.get("watch") == "true":
                return await self._watch(request, plural, namespace=namespace)
            return self._list(request, plural, namespace=namespace)
        body = await request.json()
        if request.method == "POST":
            return await self._create(plural, body, namespace=namespace)
        return await self._update((plural, namespace, name), body, method=request.method, sub=sub)

    def _list(self, request: web.Request, plural: str, *, namespace: str) -> web.Response:
        items = [item for item in self.all(plural) if _fits(item, request.query, namespace=namespace)]
        limit, start = int(request.query.get("limit", "0")), int(request.query.get("continue", "0"))
        page = items[start : start + limit] if limit else items
        more = str(start + limit) if limit and start + limit < len(items) else ""
        version = max([self._oldest, *(entry[0] for entry in self._log), 99])
        metadata = {"resourceVersion": str(version), "continue": more}
        return web.json_response({"kind": "List", "metadata": metadata, "items": page})

    async def _watch(self, request: web.Request, plural: str, *, namespace: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        if since < self._oldest:
            return _status(410, "too old resource version")
        await response.prepare(request)
        known = {
            item["metadata"]["name"] for item in self.all(plural) if _fits(item, request.query, namespace=namespace)
        }
        cut, deadline = self._cut, asyncio.get_running_loop().time() + float(request.query.get("timeoutSeconds", "60"))
        while not cut.is_set() and asyncio.get_running_loop().time() < deadline:
            for version, change, kind, item in [*self._log]:
                if version <= since or kind != plural:
                    continue
                since = version
                name = item["metadata"]["name"]
                if _fits(item, request.query, namespace=namespace):
                    known.add(name)
                    await response.write(json.dumps({"type": change, "object": item}).encode() + b"\n")
                elif name in known and item["metadata"]["namespace"] == namespace:
                    known.discard(name)  # whoever leaves the selector is gone for this watch
                    await response.write(json.dumps({"type": "DELETED", "object": item}).encode() + b"\n")
            if since < self._oldest:
                error = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
                await response.write(json.dumps(error).encode() + b"\n")
                return response
            async with self._news:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), timeout=0.02)
        if request.transport is not None:
            request.transport.abort()
        return response

    async def _create(self, plural: str, body: Object, *, namespace: str) -> web.Response:
        key = (plural, namespace, body["metadata"]["name"])
        if key in self.objects:
            return _status(409, f"{plural} {key[2]} already exists")
        return web.json_response(await self.put(plural, body, namespace=namespace), status=201)

    async def _update(self, key: Key, body: Object, *, method: str, sub: str) -> web.Response:
        before = self.objects.get(key)
        if before is None:
            return _status(404, f"{key[0]} {key[2]} not found")
        version = (body.get("metadata") or {}).get("resourceVersion")
        if version is not None and version != before["metadata"]["resourceVersion"]:
            return _status(409, "the object has been modified; please apply your changes to the latest version")
        changed = _merged(before, body) if method == "PATCH" else body
        if sub == "status":
            changed = {**before, "status": changed.get("status")}
        return web.json_response(await self._store(key, changed, change="MODIFIED"))


def _place(path: str) -> tuple[str, str, str, str] | None:
    """Plural, namespace, name, subresource. Kinds of the older x-k8s group have its name before theirs."""
    parts = path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    if len(parts) < 3 or parts[0] != "namespaces":
        return None
    plural = f"{parts[2]}.{group}" if parts[2] in ("inferenceobjectives", "inferencemodelrewrites") else parts[2]
    return plural, parts[1], parts[3] if len(parts) > 3 else "", parts[4] if len(parts) > 4 else ""


def _fits(item: Object, query: Mapping[str, str], *, namespace: str) -> bool:
    metadata = item["metadata"]
    wanted = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part)
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    labels = metadata.get("labels") or {}
    return metadata["namespace"] == namespace and wanted.items() <= labels.items() and name in ("", metadata["name"])


def _merged(before: Any, patch: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(patch, dict):
        return patch
    found = dict(before)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "status": "Failure", "code": code, "message": message}, status=code)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
