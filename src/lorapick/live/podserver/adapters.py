"""The routes that change and list what the front end serves: load, unload, models.

In: HTTP requests, the emulated disk. Out: vLLM's statuses and texts, or SGLang's statuses and fields.
Not here: what a load does to memory (see `pod.engine`).

The emulated disk holds the adapters the pod was told of, at `/adapters/<name>`; a real folder with a PEFT
`adapter_config.json` exists too, and its rank is read.
"""

import asyncio
import time
import uuid
from collections import defaultdict
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from lorapick.live.podserver.bodies import LoadBody, UnloadBody, read_body
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.options import CATALOGUE_ROOT, PodServerOptions, adapter_spec
from lorapick.live.podserver.refusals import (
    Json,
    RefusalError,
    internal,
    invalid_input,
    not_found,
    unknown_adapter_path,
)
from lorapick.model.units import AdapterName
from lorapick.pod.errors import PodError, UnknownAdapter
from lorapick.pod.values import AdapterSpec


class _PeftConfig(msgspec.Struct):
    r: int = 16


class AdapterRoutes:
    """The adapter routes of one pod."""

    def __init__(self, options: PodServerOptions, driver: PodDriver) -> None:
        self._options = options
        self._driver = driver
        self._disk = {adapter.name: adapter for adapter in (*options.adapters, *options.catalogue)}
        self._paths: dict[AdapterName, str] = {}
        self._locks: defaultdict[AdapterName, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(self, request: Request) -> Response:
        """POST /v1/load_lora_adapter: activate in a GPU slot, then make the name known."""
        body = read_body(LoadBody, request.headers.get("content-type", ""), await request.body())
        name, path = body.lora_name, body.lora_path
        # As in vLLM, two loads of one name take turns, so that the second one sees the first one's name.
        async with self._locks[name]:
            self._check_load(body)
            spec = await asyncio.to_thread(self._find, name, path)
            try:
                failed = await self._driver.load(spec)
            except PodError as error:
                raise internal(f"Call to add_lora method failed: {error}") from None
            if failed is not None:
                raise internal(f"Call to add_lora method failed: {failed}")
            self._paths[name] = path
        return Response(f"Success: LoRA adapter '{name}' added successfully.")

    async def unload(self, request: Request) -> Response:
        """POST /v1/unload_lora_adapter: forget the name; memory keeps the weights."""
        body = read_body(UnloadBody, request.headers.get("content-type", ""), await request.body())
        name = body.lora_name
        if not name:
            raise invalid_input("'lora_name' needs to be provided to unload a LoRA adapter.")
        async with self._locks[name]:
            try:
                self._driver.unload(name)
            except UnknownAdapter:
                raise not_found(f"The lora adapter '{name}' cannot be found.") from None
        return Response(f"Success: LoRA adapter '{name}' removed successfully.")

    async def unload_freeing(self, request: Request) -> Response:
        """POST /unload_lora_adapter of SGLang: forget the name; answer when the weights are gone."""
        body = read_body(UnloadBody, request.headers.get("content-type", ""), await request.body())
        name, error = body.lora_name, ""
        try:
            await self._driver.unload_freeing(name)
        except UnknownAdapter:
            error = f"LoRA adapter with name {name} is not loaded."
        return self._updated(error)

    async def load_to_host(self, request: Request) -> Response:
        """POST /load_lora_adapter of SGLang: make the name known, with the weights in host memory."""
        body = read_body(LoadBody, request.headers.get("content-type", ""), await request.body())
        name, path, error = body.lora_name, body.lora_path, ""
        if name in self._driver.registered:
            error = f"LoRA adapter {name} is already loaded."
        else:
            try:
                self._driver.fetch(await asyncio.to_thread(self._find, name, path))
                self._paths[name] = path
            except (PodError, RefusalError) as problem:
                error = f"Failed to load LoRA adapter {name}: {problem}"
        return self._updated(error)

    def _updated(self, error: str) -> Response:
        loaded = {each: self._paths.get(each, CATALOGUE_ROOT + each) for each in self._driver.registered}
        answer = {"success": not error, "error_message": error, "loaded_adapters": loaded}
        return MsgspecResponse(answer, status_code=400 if error else 200)

    async def server_info(self, request: Request) -> Response:
        """GET /server_info of SGLang: its arguments, those that say how many adapters it holds."""
        del request
        slots = self._options.config.limits.max_loras + 1
        return MsgspecResponse({"enable_lora": True, "max_loras_per_batch": slots, "max_loaded_loras": None})

    async def models(self, request: Request) -> Response:
        """GET /v1/models: the base model and every registered adapter, in memory or not."""
        del request
        base = self._options.base_model
        cards = [_card(base, root=base, parent=None, max_model_len=self._options.config.max_model_len)]
        for name in self._driver.registered:
            root = self._paths.get(name, CATALOGUE_ROOT + name)
            cards.append(_card(name, root=root, parent=base, max_model_len=None))
        return MsgspecResponse({"object": "list", "data": cards})

    def _check_load(self, body: LoadBody) -> None:
        name = body.lora_name
        if not name or not body.lora_path:
            raise invalid_input("Both 'lora_name' and 'lora_path' must be provided.")
        if "," in name:
            # vLLM takes it; its metrics page then means two adapters, and nothing that reads the page can know better.
            raise invalid_input(f"The lora adapter name '{name}' has a comma, which joins names in the metrics.")
        if name == self._options.base_model:
            raise invalid_input(f"The lora adapter '{name}' conflicts with a served base model.")
        if name in self._driver.registered and not body.load_inplace:
            raise invalid_input(
                f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, "
                "set 'load_inplace' to True."
            )

    def _find(self, name: AdapterName, path: str) -> AdapterSpec:
        if path.startswith(CATALOGUE_ROOT) and path.removeprefix(CATALOGUE_ROOT) in self._disk:
            found = self._disk[path.removeprefix(CATALOGUE_ROOT)]
            return AdapterSpec(name=name, rank=found.rank, size=found.size)
        folder = Path(path)
        try:
            config = msgspec.json.decode((folder / "adapter_config.json").read_bytes(), type=_PeftConfig)
        except msgspec.DecodeError as error:
            raise internal(f"Call to add_lora method failed: {path}/adapter_config.json: {error}") from None
        except (OSError, ValueError):  # ValueError: no path at all, such as one with a NUL
            raise unknown_adapter_path(name, path) from None
        size = sum(file.stat().st_size for file in sorted(folder.glob("adapter_model.*")))
        return adapter_spec(name, rank=config.r, size=size or None)


def _card(name: str, *, root: str, parent: str | None, max_model_len: int | None) -> Json:
    now = int(time.time())
    permission = {
        "id": f"modelperm-{uuid.uuid4().hex}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": now,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": max_model_len,
        "permission": [permission],
    }
