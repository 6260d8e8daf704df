"""vLLM's routes that change and list what the front end serves: load, unload, models; and the emulated disk.

In: HTTP requests, the emulated disk. Out: vLLM's statuses and texts.
Not here: what a load does to memory (see `pod.engine`), other engines' routes (see `sglang`) and lists (see `lists`).

The emulated disk holds the adapters the pod was told of, at `/adapters/<name>`; a real folder with a PEFT
`adapter_config.json` exists too, and its rank is read.
"""

import asyncio
from collections import defaultdict
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from lorapick.live.podserver.bodies import LoadBody, UnloadBody, read_body
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.options import CATALOGUE_ROOT, PodServerOptions, adapter_spec
from lorapick.live.podserver.refusals import (
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
            spec = await self.find(name, path)
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

    def path(self, name: AdapterName) -> str:
        """From where an adapter was loaded."""
        return self._paths.get(name, CATALOGUE_ROOT + name)

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

    async def find(self, name: AdapterName, path: str) -> AdapterSpec:
        """What is on the disk at a path, under a name. Raises RefusalError: nothing, or nothing that can be read."""
        return await asyncio.to_thread(self._find, name, path)

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
