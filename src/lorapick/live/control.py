"""Tell pods to do what no request asks for: unload an adapter, load one again.

In: effects that the driver hands on. Out: HTTP requests to the pods' own control paths, and the events that say what
came of them. One command at a time per pod, each bounded in time; whatever happens, exactly one event follows for each
adapter of a command. Nothing is unloaded that could not be loaded again: the path for that is the one that the engine
itself lists, read before the unload and remembered.
Not here: whom to unload or load and when (see `core.relief`, `core.restoring`). Register and Touch are refused with a
log line: nobody asks for them yet.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import aiohttp
import msgspec

from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import By, Event, LoadFailed, LoadSucceeded, Unloaded, UnloadFailed
from lorapick.model.pods import Engine, Pod
from lorapick.model.units import AdapterName, Bytes, PodName, Seconds
from lorapick.wire import models_list

log = logging.getLogger(__name__)

Command = Load | Unload | Register | Touch
MakeEvent = Callable[[Seconds, int], Event]


class Paths(NamedTuple):
    """Where an engine takes commands."""

    load: str
    unload: str
    models: str = "/v1/models"


PATHS: dict[Engine, Paths] = {Engine.SGLANG: Paths(load="/load_lora_adapter", unload="/unload_lora_adapter")}
"""Of engines whose unload frees memory (`core.residency.engines`). SGLang 0.5.23: bodies `{"lora_name", "lora_path"}`
and `{"lora_name"}`, answered by 200 or 400 with `success`, `error_message` and `loaded_adapters`; an unload once no
request of the adapter is in flight."""
TIMEOUT: Seconds = 30.0
"""Of one command for one adapter. An unload waits for the adapter's requests; the core gives up after twice this."""
MAX_BODY: Bytes = 4 * 1024 * 1024
_TOLD = 200
"""Characters of an answer that a log line holds."""


class _Answer(msgspec.Struct):
    """SGLang's. The adapters are names, or names with paths."""

    success: bool | None = None
    error_message: str | None = None
    loaded_adapters: Any = None

    def lists(self, name: AdapterName) -> bool | None:
        """Whether the pod has the adapter; None: it does not say."""
        known = isinstance(self.loaded_adapters, dict | list)
        return name in self.loaded_adapters if known else None


class _RefusedError(Exception):
    """Why a command is not done, or came to nothing."""


class PodControl:
    """The control paths of all pods. Runs on one event loop; nothing is done before `run`."""

    def __init__(
        self,
        *,
        submit: Callable[[MakeEvent], object],
        find: Callable[[PodName], Pod | None],
        timeout: Seconds = TIMEOUT,
    ) -> None:
        """Do nothing yet.

        Args:
            submit: the driver's door.
            find: the pod of a name; None: it is gone.
            timeout: seconds that one command may take for one adapter.
        """
        self._submit = submit
        self._find = find
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._under_way: dict[PodName, asyncio.Task[None]] = {}
        self._came_from: dict[PodName, dict[AdapterName, str]] = {}
        """Paths of adapters that were unloaded, as their pods listed them."""

    def perform(self, command: Command) -> None:
        """Begin to do it; what came of it is submitted as events, never before this returns."""
        if isinstance(command, Load | Unload):
            asyncio.get_running_loop().call_soon(self._begin, command)
        else:
            log.error("no driver for %s yet", type(command).__name__)

    async def run(self) -> None:
        """Keep connections until cancelled; what is under way then is given up."""
        self._session = aiohttp.ClientSession()
        try:
            await asyncio.Event().wait()
        finally:
            session, self._session = self._session, None
            tasks = [*self._under_way.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await session.close()

    def _begin(self, command: Load | Unload) -> None:
        pod = self._find(command.pod)
        paths = PATHS.get(pod.engine) if pod is not None else None
        if pod is None or self._session is None:
            self._failed(command, "the pod is gone" if pod is None else "the picker is ending")
        elif paths is None and isinstance(command, Unload):
            self._failed(command, f"an unload frees nothing on {pod.engine.value}")
        elif paths is None:
            self._failed(command, f"nobody loads on {pod.engine.value} by command yet")
        elif command.pod in self._under_way:
            self._failed(command, "another command is under way there")
        else:
            door = _Door(self._session, f"http://{pod.address}", at=paths)
            task = asyncio.create_task(self._do(command, door), name=f"command {command.pod}")
            self._under_way[command.pod] = task
            task.add_done_callback(lambda done: self._over(command.pod, done))

    def _over(self, pod: PodName, task: "asyncio.Task[None] | None") -> None:
        if self._under_way.get(pod) is task:
            del self._under_way[pod]

    async def _do(self, command: Load | Unload, door: "_Door") -> None:
        adapters = _adapters(command)
        for adapter in adapters:
            problem = None
            try:
                async with asyncio.timeout(self._timeout):
                    await (self._load if isinstance(command, Load) else self._unload)(
                        adapter, pod=command.pod, door=door
                    )
            except TimeoutError:
                problem = f"no answer within {self._timeout:g} s"
            except _RefusedError as refusal:
                problem = str(refusal)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                problem = f"{type(error).__name__}: {error}"
            if adapter == adapters[-1]:
                # The pod may take another command as soon as the core hears of this one's end.
                self._over(command.pod, asyncio.current_task())
            self._tell(command, adapter, problem=problem)

    async def _unload(self, adapter: AdapterName, *, pod: PodName, door: "_Door") -> None:
        known = self._came_from.setdefault(pod, {})
        listed = await door.paths()
        if adapter not in listed and adapter in known:
            return  # unloaded before, and that was not heard
        path = listed.get(adapter)
        if path is None:
            raise _RefusedError(
                "its list of models gives no path for the adapter (root), so nobody could load it again"
            )
        known[adapter] = path
        for gone in [name for name in self._came_from if self._find(name) is None]:
            del self._came_from[gone]
        status, text = await door.post(door.at.unload, {"lora_name": adapter})
        answer = _read(status, text)
        if status == 200 and answer.success is not False:
            return
        if status not in (400, 404) or answer.lists(adapter) is not False:
            raise _RefusedError(_told(status, text))

    async def _load(self, adapter: AdapterName, *, pod: PodName, door: "_Door") -> None:
        path = self._came_from.get(pod, {}).get(adapter)
        if path is None:
            raise _RefusedError("nobody knows the adapter's path there")
        status, text = await door.post(door.at.load, {"lora_name": adapter, "lora_path": path})
        answer = _read(status, text)
        loaded = status == 200 and answer.success is not False
        there = status == 400 and (answer.lists(adapter) or "already loaded" in (answer.error_message or ""))
        if not loaded and not there:
            raise _RefusedError(_told(status, text))
        self._came_from[pod].pop(adapter, None)

    def _failed(self, command: Load | Unload, why: str) -> None:
        for adapter in _adapters(command):
            self._tell(command, adapter, problem=why)

    def _tell(self, command: Load | Unload, adapter: AdapterName, *, problem: str | None) -> None:
        """Submit the event; `problem` None: it is done."""
        pod, loads = command.pod, isinstance(command, Load)
        if problem is not None:
            log.warning("pod %s did not %s %s: %s", pod, "load" if loads else "unload", adapter, problem)
        if loads and problem is None:
            self._submit(lambda t, i: LoadSucceeded(t=t, id=i, pod=pod, adapter=adapter, by=By.CONTROLLER))
        elif problem is None:
            self._submit(lambda t, i: Unloaded(t=t, id=i, pod=pod, adapter=adapter))
        elif loads:
            self._submit(lambda t, i: LoadFailed(t=t, id=i, pod=pod, adapter=adapter, by=By.CONTROLLER, why=problem))
        else:
            self._submit(lambda t, i: UnloadFailed(t=t, id=i, pod=pod, adapter=adapter, why=problem))


class _Door:
    """One pod's control paths."""

    def __init__(self, session: aiohttp.ClientSession, url: str, *, at: Paths) -> None:
        self._session = session
        self._url = url
        self.at = at

    async def paths(self) -> dict[AdapterName, str | None]:
        """From where the pod has loaded each adapter that it lists; None: it does not say.

        Raises:
            ModelsListError: what it answers is no list of models.
        """
        async with self._session.get(self._url + self.at.models, allow_redirects=False) as response:
            text = await _whole(response)
            if response.status != 200:
                raise _RefusedError(f"{self.at.models}: {_told(response.status, text)}")
            return models_list.paths(text)

    async def post(self, path: str, body: dict[str, str]) -> tuple[int, bytes]:
        """Status and text of an answer."""
        async with self._session.post(self._url + path, json=body, allow_redirects=False) as response:
            return response.status, await _whole(response)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body.

    Raises:
        _RefusedError: it is too long.
    """
    text = bytearray()
    async for chunk in response.content.iter_any():
        text += chunk
        if len(text) > MAX_BODY:
            raise _RefusedError(f"an answer of more than {MAX_BODY} bytes")
    return bytes(text)


def _adapters(command: Load | Unload) -> tuple[AdapterName, ...]:
    return command.adapters if isinstance(command, Load) else (command.adapter,)


def _read(status: int, text: bytes) -> _Answer:
    """An answer to a command.

    Raises:
        _RefusedError: it is none.
    """
    try:
        return msgspec.json.decode(text, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _RefusedError(_told(status, text)) from None


def _told(status: int, text: bytes) -> str:
    return f"status {status}: {text[:_TOLD].decode(errors='replace')}"
