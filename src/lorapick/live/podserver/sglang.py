"""SGLang's adapter routes: load, unload, what it says of itself; and its list of adapters in memory, which is bounded.

In: HTTP requests, names that requests want. Out: SGLang's statuses and fields.
Not here: the disk (see `adapters`), what a load does to memory (see `pod.engine`).

As in SGLang 0.5.23: with `max_loaded_loras` a load over it unloads who was used least lately and is not pinned; such an
adapter is served all the same, and loaded again when a request names it. A name that was never loaded, or was unloaded
by somebody, is refused. Pins bound what is unloaded here; slots are the pod model's, which has no pins.
"""

import asyncio
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lorapick.live.podserver.adapters import AdapterRoutes
from lorapick.live.podserver.bodies import LoadBody, UnloadBody, read_body
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.options import CATALOGUE_ROOT, PodServerOptions
from lorapick.live.podserver.refusals import RefusalError, bad_request
from lorapick.model.units import AdapterName
from lorapick.pod.errors import PodError, UnknownAdapter
from lorapick.pod.values import AdapterSpec


class _Ref(NamedTuple):
    spec: AdapterSpec
    path: str
    pinned: bool = False


class SglangRoutes:
    """One pod's adapters as SGLang keeps them."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, *, adapters: AdapterRoutes) -> None:
        self._options = options
        self._driver = driver
        self._adapters = adapters
        self._known = {each.name: _Ref(each, CATALOGUE_ROOT + each.name) for each in options.adapters}
        """Whoever was loaded and not unloaded by command."""
        self._used: dict[AdapterName, None] = dict.fromkeys(self._known)
        """Those in memory, least lately used first."""
        self._lock = asyncio.Lock()
        driver.restarted.append(self._restarted)

    def routes(self) -> list[Route]:
        """Their paths."""
        return [
            Route("/load_lora_adapter", self.load, methods=["POST"]),
            Route("/load_lora_adapter_from_tensors", self.load_tensors, methods=["POST"]),
            Route("/unload_lora_adapter", self.unload, methods=["POST"]),
            Route("/server_info", self.server_info),
            Route("/get_server_info", self.server_info),
        ]

    async def want(self, name: AdapterName) -> None:
        """A request names an adapter: it is in memory afterwards, and was used.

        Raises:
            RefusalError: 400; it was never loaded.
        """
        if name not in self._driver.registered:
            ref = self._known.get(name)
            if ref is None:
                listed = ", ".join(self._driver.registered)
                raise bad_request(f"Got LoRA adapter that has never been loaded: {name} (loaded: {listed})")
            async with self._lock:
                if name not in self._driver.registered:
                    self._driver.fetch(ref.spec)
                    self._use(name)
                    await self._make_room(but=name)
        self._use(name)

    async def load(self, request: Request) -> Response:
        """POST /load_lora_adapter: make the name known, with the weights in host memory."""
        body = read_body(LoadBody, request.headers.get("content-type", ""), await request.body())
        async with self._lock:
            return self._answer(await self._load(body))

    async def _load(self, body: LoadBody) -> str:
        """Do it; why not, or nothing."""
        name = body.lora_name
        if name in self._driver.registered:
            return f"LoRA adapter {name} is already loaded."
        pins = sum(ref.pinned for each, ref in self._known.items() if each in self._used)
        if body.pinned and pins >= self._options.config.limits.max_loras:
            return f"Failed to load LoRA adapter {name} as a pinned adapter: not all slots may be pinned."
        try:
            spec = await self._adapters.find(name, body.lora_path)
            self._driver.fetch(spec)
        except (PodError, RefusalError) as problem:
            return f"Failed to load LoRA adapter {name}: {problem}"
        self._known[name] = _Ref(spec, body.lora_path, body.pinned)
        self._use(name)
        return await self._make_room(but=name)

    async def load_tensors(self, request: Request) -> Response:
        """POST /load_lora_adapter_from_tensors: refused, an emulated pod has no weights to put them into."""
        await request.body()
        return self._answer("Failed to load LoRA adapter from tensors: an emulated pod takes adapters from paths only.")

    async def unload(self, request: Request) -> Response:
        """POST /unload_lora_adapter: forget the name; answer when the weights are gone."""
        body = read_body(UnloadBody, request.headers.get("content-type", ""), await request.body())
        async with self._lock:
            self._known.pop(body.lora_name, None)
            self._used.pop(body.lora_name, None)
            try:
                await self._driver.unload_freeing(body.lora_name)
            except UnknownAdapter:
                # Refused before it reaches the engine, so that nothing is said of what is loaded.
                return self._answer(f"LoRA with name {body.lora_name} does not exist.", listed=False)
        return self._answer("")

    async def server_info(self, request: Request) -> Response:
        """GET /server_info, /get_server_info: its arguments, those that say how many adapters it holds."""
        del request
        started = [
            {"lora_name": each.name, "lora_path": CATALOGUE_ROOT + each.name, "pinned": False}
            for each in self._options.adapters
        ]
        facts = {
            "enable_lora": True,
            "max_loras_per_batch": self._options.config.limits.max_loras + 1,
            "max_loaded_loras": self._options.max_loaded_loras,
            "lora_paths": started,
            "dp_size": 1,
        }
        return MsgspecResponse(facts)

    def path(self, name: AdapterName) -> str:
        """From where an adapter was loaded."""
        ref = self._known.get(name)
        return ref.path if ref is not None else CATALOGUE_ROOT + name

    def _restarted(self) -> None:
        """Only those of the start are known."""
        self._known = {each.name: _Ref(each, CATALOGUE_ROOT + each.name) for each in self._options.adapters}
        self._used = dict.fromkeys(self._known)

    def _use(self, name: AdapterName) -> None:
        self._used.pop(name, None)
        self._used[name] = None

    async def _make_room(self, *, but: AdapterName) -> str:
        """Unload who is too many; why that cannot be, or nothing."""
        most = self._options.max_loaded_loras
        while most is not None and len(self._driver.registered) > most:
            free = (name for name in self._used if name != but and not self._known[name].pinned)
            name = next(free, None)
            if name is None:
                return "Found no LoRA adapter to evict: all are pinned."
            del self._used[name]
            await self._driver.unload_freeing(name)
        return ""

    def _answer(self, error: str, *, listed: bool = True) -> Response:
        loaded = {each: self.path(each) for each in self._driver.registered} if listed else None
        answer = {"success": not error, "error_message": error, "loaded_adapters": loaded}
        return MsgspecResponse(answer, status_code=400 if error else 200)
