"""Whom a request means: how each engine finds an adapter's name in a body, and what model its answer names.

In: the fields of a body that name models and adapters. Out: `Meant`, or a refusal in the engine's words.
Not here: the routes that change what is served (see `adapters`, `sglang`), the shape of refusals (see `refusals`).

vLLM and LoRAX read `model` alone. SGLang takes the base model for any `model` without a colon, and `trtllm-serve` for
any at all; that is no mistake of the emulator's.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from lorapick.live.podserver.adapters import AdapterRoutes
from lorapick.live.podserver.bodies import NamedBody
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.refusals import RefusalError, bad_request, internal, unknown_model
from lorapick.live.podserver.sglang import SglangRoutes
from lorapick.model.pods import Engine
from lorapick.model.units import AdapterName
from lorapick.pod.errors import PodError
from lorapick.wire.asking import SEPARATOR


class Meant(NamedTuple):
    """Who is to answer."""

    adapter: AdapterName | None
    """None: the base model."""
    shown: str
    """The model that the answer names."""


Meaning = Callable[[NamedBody], Awaitable[Meant]]


def meaning_of(
    options: PodServerOptions, driver: PodDriver, *, adapters: AdapterRoutes, sglang: SglangRoutes | None
) -> Meaning:
    """How the emulated engine reads its bodies."""
    match options.engine:
        case Engine.SGLANG:
            assert sglang is not None
            return _Sglang(options, sglang)
        case Engine.TRTLLM:
            return _Trtllm(options, driver, adapters=adapters)
        case Engine.TRITON:
            return _Triton(options, driver)
        case _:
            return _Vllm(options, driver)


class _Vllm:
    """`model` is the name of the base model or of an adapter."""

    def __init__(self, options: PodServerOptions, driver: PodDriver) -> None:
        self._base = options.base_model
        self._driver = driver

    async def __call__(self, body: NamedBody) -> Meant:
        """Raises RefusalError (404)."""
        name = body.model
        if not name or name == self._base:
            return Meant(None, self._base)
        if name not in self._driver.registered:
            raise unknown_model(name, self._base)
        return Meant(name, name)


class _Sglang:
    """What stands behind a colon in `model`, else `lora_path`; the answer repeats `model`, whatever that was."""

    def __init__(self, options: PodServerOptions, routes: SglangRoutes) -> None:
        self._base = options.base_model
        self._routes = routes

    async def __call__(self, body: NamedBody) -> Meant:
        """Raises RefusalError (400)."""
        shown = body.model or self._base
        adapter = shown.partition(":")[2].strip() or body.lora_path
        if adapter is None:
            return Meant(None, shown)
        if not isinstance(adapter, str):
            raise bad_request("lora_path must be one name in requests to the emulated pod", param="lora_path")
        await self._routes.want(adapter)
        return Meant(adapter, shown)


class _LoraRequest(msgspec.Struct):
    lora_name: str
    lora_int_id: int
    lora_path: str = ""


class _Trtllm:
    """`lora_request`; its number decides which weights run, and the name and path that came with it first."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, *, adapters: AdapterRoutes) -> None:
        self._base = options.base_model
        self._driver = driver
        self._adapters = adapters
        self._by_id: dict[int, AdapterName] = {}
        driver.restarted.append(self._by_id.clear)

    async def __call__(self, body: NamedBody) -> Meant:
        """Raises RefusalError (400)."""
        if body.lora_path is not None:
            raise bad_request("1 validation error: lora_path: Extra inputs are not permitted")
        if body.lora_request is None:
            return Meant(None, self._base)
        asked = _lora_request(body.lora_request)
        adapter = self._by_id.get(asked.lora_int_id)
        if adapter is None:
            adapter = await self._read(asked)
            self._by_id[asked.lora_int_id] = adapter
        return Meant(adapter, self._base)

    async def _read(self, asked: _LoraRequest) -> AdapterName:
        try:
            spec = await self._adapters.find(asked.lora_name, asked.lora_path)
        except RefusalError:
            raise bad_request(f"lora_path ({asked.lora_path}) does not exist.") from None
        try:
            self._driver.know(spec)
        except PodError as error:
            raise internal(str(error)) from None
        return spec.name


def _lora_request(given: Any) -> _LoraRequest:
    try:
        return msgspec.convert(given, _LoraRequest)
    except msgspec.ValidationError as error:
        raise bad_request(f"1 validation error: lora_request: {error}") from None


class _Triton:
    """One name for model and adapter, as the frontend has it when started with `--lora-separator=_lora_`."""

    def __init__(self, options: PodServerOptions, driver: PodDriver) -> None:
        self._base = options.base_model
        self._driver = driver

    async def __call__(self, body: NamedBody) -> Meant:
        """Raises RefusalError (400)."""
        name = body.model or ""
        if name == self._base:
            return Meant(None, name)
        prefix = self._base + SEPARATOR
        adapter = name.removeprefix(prefix)
        if not name.startswith(prefix):
            raise bad_request(f"Unknown model: {name}")
        if adapter not in self._driver.registered:
            raise bad_request(f"Unknown LoRA: {adapter}; for model: {name}")
        return Meant(adapter, name)
