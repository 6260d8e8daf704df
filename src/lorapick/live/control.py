"""Tell pods to do what no request asks for: unload an adapter.

In: effects that the driver hands on. Out: HTTP requests to the pods' own control paths, and the events that say what
came of them. One request at a time per pod, each bounded in time; whatever happens, exactly one event follows.
Not here: whom to unload and when (see `core.relief`). Load, Register and Touch are refused with a log line: nobody asks
for them yet.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec

from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import Event, Unloaded, UnloadFailed
from lorapick.model.pods import Engine, Pod
from lorapick.model.units import AdapterName, Bytes, PodName, Seconds

log = logging.getLogger(__name__)

Command = Load | Unload | Register | Touch
MakeEvent = Callable[[Seconds, int], Event]

UNLOAD_PATHS: dict[Engine, str] = {Engine.SGLANG: "/unload_lora_adapter"}
"""Of engines whose unload frees memory (`core.residency.engines`). SGLang 0.5.23: body `{"lora_name"}`, answered by 200
or 400 with `success`, `error_message` and `loaded_adapters` once no request of the adapter is in flight."""
TIMEOUT: Seconds = 30.0
"""An engine waits for the adapter's requests first; the core gives up after twice this."""
MAX_BODY: Bytes = 1024 * 1024
_TOLD = 200
"""Characters of an answer that a log line holds."""


class _Answer(msgspec.Struct):
    """SGLang's. The adapters are names, or names with paths."""

    success: bool | None = None
    loaded_adapters: Any = None


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
            timeout: seconds that one request may take.
        """
        self._submit = submit
        self._find = find
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._under_way: dict[PodName, asyncio.Task[None]] = {}

    def perform(self, command: Command) -> None:
        """Begin to do it; what came of it is submitted as an event, never before this returns."""
        if isinstance(command, Unload):
            asyncio.get_running_loop().call_soon(self._begin, command)
        else:
            log.error("no driver for %s yet", type(command).__name__)

    async def run(self) -> None:
        """Keep connections until cancelled; what is under way then is given up."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout))
        try:
            await asyncio.Event().wait()
        finally:
            session, self._session = self._session, None
            tasks = [*self._under_way.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await session.close()

    def _begin(self, command: Unload) -> None:
        pod = self._find(command.pod)
        path = UNLOAD_PATHS.get(pod.engine) if pod is not None else None
        if pod is None or self._session is None:
            self._failed(command, "the pod is gone" if pod is None else "the picker is ending")
        elif path is None:
            self._failed(command, f"an unload frees nothing on {pod.engine.value}")
        elif command.pod in self._under_way:
            self._failed(command, "another command is under way there")
        else:
            doing = self._unload(command, self._session, url=f"http://{pod.address}{path}")
            task = self._under_way[command.pod] = asyncio.create_task(doing, name=f"unload {command.pod}")
            task.add_done_callback(lambda _: self._under_way.pop(command.pod, None))

    async def _unload(self, command: Unload, session: aiohttp.ClientSession, *, url: str) -> None:
        try:
            body = {"lora_name": command.adapter}
            async with session.post(url, json=body, allow_redirects=False) as response:
                text = await response.content.read(MAX_BODY)
                problem = _problem(command.adapter, status=response.status, text=text)
        except TimeoutError:
            problem = f"no answer within {self._timeout:g} s"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
        # The pod may take another command as soon as the core hears of this one's end.
        self._under_way.pop(command.pod, None)
        if problem is not None:
            self._failed(command, problem)
        else:
            pod, adapter = command.pod, command.adapter
            self._submit(lambda t, i: Unloaded(t=t, id=i, pod=pod, adapter=adapter))

    def _failed(self, command: Unload, why: str) -> None:
        log.warning("pod %s did not unload %s: %s", command.pod, command.adapter, why)
        pod, adapter = command.pod, command.adapter
        self._submit(lambda t, i: UnloadFailed(t=t, id=i, pod=pod, adapter=adapter, why=why))


def _problem(name: AdapterName, *, status: int, text: bytes) -> str | None:
    """What is wrong with an answer to an unload; None: the adapter is not there any more, or never was."""
    told = f"status {status}: {text[:_TOLD].decode(errors='replace')}"
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return told
    if status == 200:
        return told if answer.success is False else None
    if status in (400, 404) and isinstance(answer.loaded_adapters, dict | list) and name not in answer.loaded_adapters:
        return None
    return told
