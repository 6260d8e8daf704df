"""A whole installation on one machine: Envoy in front, pickers beside it, emulated pods behind.

In: `StackOptions`. Out: an OpenAI-compatible endpoint that has answered a request, and the pids of all parts.
Not here: what the parts do, the terminal (`cli.up`), traffic (`live.traffic`).

`lorapick up`, `lorapick demo` and tests all start this one. Whatever happens to this process, its children end with
it (see `live.processes`).
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from lorapick.live.addresses import free_ports, unix_address
from lorapick.live.envoy.config import EnvoySettings
from lorapick.live.envoy.counters import EnvoyCounters, read_counters
from lorapick.live.envoy.process import EnvoyError, EnvoyProcess
from lorapick.live.logs import new_log
from lorapick.live.processes import Child, ChildExit, ChildSpec, becomes_true
from lorapick.live.stack_options import (
    PickerPlace,
    StackOptions,
    adapters_document,
    configuration,
    emulated_pods,
    picker_command,
    pod_command,
    pods_document,
)
from lorapick.live.watchdog import Watchdog, probe_grpc
from lorapick.model.pods import Pod
from lorapick.model.units import Seconds
from lorapick.wire.config import verbatim

_POD_WITHIN: Seconds = 40.0
_PICKER_WITHIN: Seconds = 40.0
_ANSWER_WITHIN: Seconds = 30.0
_TRIES_AT_START = 3
"""Starts of one part, while the stack starts, after which it is not just slow."""


class StackError(RuntimeError):
    """A part did not come up; the text holds the end of its log."""


class Stack:
    """`async with Stack(pods=4, policy="round-robin") as stack: ...`; or `start` and `aclose`."""

    def __init__(
        self,
        options: StackOptions | None = None,
        *,
        on_exit: Callable[[ChildExit], None] | None = None,
        **changes: Any,
    ) -> None:
        self.options = msgspec.structs.replace(options or StackOptions(), **changes)
        self.pods: tuple[Pod, ...] = ()
        self.pickers: tuple[PickerPlace, ...] = ()
        self._on_exit = on_exit
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._pod_children: list[Child] = []
        self._picker_children: list[Child] = []
        self._envoy: EnvoyProcess | None = None
        self._watchers: list[asyncio.Task[None]] = []
        self.watchdogs: list[Watchdog] = []

    @property
    def endpoint(self) -> str:
        """URL of the OpenAI endpoint, without `/v1`."""
        return f"http://{self._started().settings.listen}"

    @property
    def admin(self) -> str:
        """URL of the first picker's page and admin API."""
        return f"{self._scheme('admin')}://{self.pickers[0].admin}"

    @property
    def metrics(self) -> str:
        """URL of the first picker's Prometheus page."""
        return f"{self._scheme('metrics')}://{self.pickers[0].metrics}/metrics"

    def _scheme(self, server: str) -> str:
        wanted = (self.options.configuration.get("tls") or {}).get(server) or {}
        return "https" if wanted.get("enabled", "client_ca" in wanted) else "http"

    @property
    def envoy_admin(self) -> str:
        """Address of Envoy's admin API: `unix:PATH`."""
        return self._started().settings.admin

    @property
    def pod_pids(self) -> list[int | None]:
        """Pid of each emulated pod; None: it is down."""
        return [child.pid for child in self._pod_children]

    @property
    def picker_pid(self) -> int | None:
        """Pid of the first picker; None: it is down."""
        return self._picker_children[0].pid

    @property
    def picker_pids(self) -> list[int | None]:
        """Pid of each picker; None: it is down."""
        return [child.pid for child in self._picker_children]

    @property
    def envoy_pid(self) -> int | None:
        """Envoy's pid; None: it is down, or not up yet."""
        return None if self._envoy is None else self._envoy.pid

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Start everything; return when a request has come back through Envoy.

        Raises:
            StackError: a part did not come up; everything has been ended again.
        """
        try:
            await self._start()
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End everything, Envoy first so that nothing new arrives; safe to call twice."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        self._watchers.clear()
        if self._envoy is not None:
            await self._envoy.stop()
        children = [*self._picker_children, *self._pod_children]
        await asyncio.gather(*(child.stop(grace=3.0) for child in children))
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def kill_pod(self, number: int) -> None:
        """Kill an emulated pod (SIGKILL). It stays away until `start_pod`, unless `restart_pods` is set."""
        self._pod_children[number].kill()

    async def start_pod(self, number: int) -> None:
        """Start a killed pod again, at its old address, with nothing loaded; return when it answers."""
        child = self._pod_children[number]
        if not await becomes_true(lambda: _is(child.pid is None), within=5.0):
            raise StackError(f"{child.spec.name} still runs (pid {child.pid}): kill it first")
        await child.stop()
        self._pod_children[number] = await self._start_child(child.spec)
        await self._pod_answers(self.pods[number], self._pod_children[number])

    def kill_picker(self, number: int = 0) -> None:
        """Kill a picker (SIGKILL); it is started again at once."""
        self._picker_children[number].kill()

    async def counters(self) -> EnvoyCounters | None:
        """Return what Envoy counted since its start; None while it is down."""
        return await read_counters(self._started().settings.admin)

    def set_endpoints(self, addresses: Sequence[str]) -> None:
        """Tell Envoy that the pods are these now."""
        self._started().set_endpoints(addresses)

    # -- starting

    async def _start(self) -> None:
        directory = self._directory()
        self.pods = self.options.external or emulated_pods(self.options)
        self.pickers = self._places(directory)
        self._write_files(directory)
        await self._start_pods(directory)
        await self._start_pickers(directory)
        await self._all_answer()
        await self._start_envoy(directory)
        await self._first_answer()

    def _directory(self) -> Path:
        if self.options.run_dir is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="lorapick-", ignore_cleanup_errors=True)
            return Path(self._temporary.name)
        directory = self.options.run_dir.absolute()
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def _places(self, directory: Path) -> tuple[PickerPlace, ...]:
        """Only the first picker gets the addresses that were asked for."""
        asked = (self.options.health, self.options.metrics, self.options.admin)
        places = []
        for number in range(self.options.pickers):
            free = [f"127.0.0.1:{port}" for port in free_ports(3)]
            if number == 0:
                free = [want or some for want, some in zip(asked, free, strict=True)]
            places.append(
                PickerPlace(
                    extproc=unix_address(directory / f"extproc-{number}.sock"),
                    health=free[0],
                    metrics=free[1],
                    admin=free[2],
                    configuration=directory / f"lorapick-{number}.yaml",
                    envoy_admin=_envoy_admin(directory),
                    number=number,
                )
            )
        return tuple(places)

    def _write_files(self, directory: Path) -> None:
        pods_file = directory / "pods.yaml"
        pods_file.write_bytes(msgspec.yaml.encode(pods_document(self.pods)))
        (directory / "adapters.yaml").write_bytes(msgspec.yaml.encode(adapters_document(self.options)))
        for place in self.pickers:
            document = configuration(self.options, place, pods_file=pods_file)
            place.configuration.write_bytes(verbatim.write(document))

    async def _start_pods(self, directory: Path) -> None:
        for pod in () if self.options.external else self.pods:
            spec = ChildSpec(
                name=pod.name,
                argv=pod_command(pod, self.options, adapters_file=directory / "adapters.yaml"),
                log=new_log(directory / f"{pod.name}.log"),
                restart_after=self.options.restart_pods,
            )
            self._pod_children.append(await self._start_child(spec))

    async def _start_pickers(self, directory: Path) -> None:
        for number, place in enumerate(self.pickers):
            spec = ChildSpec(
                name=f"picker-{number}",
                argv=picker_command(self.options, place),
                log=new_log(directory / f"picker-{number}.log"),
            )
            child = await self._start_child(spec)
            self._picker_children.append(child)
            self._watch(child, place)

    def _watch(self, child: Child, place: PickerPlace) -> None:
        watchdog = Watchdog(
            name=child.spec.name,
            pid=lambda: child.pid,
            probe=lambda timeout: probe_grpc(place.extproc, timeout),
            kill=child.replace,
        )
        self.watchdogs.append(watchdog)
        self._watchers.append(asyncio.create_task(watchdog.run(), name=f"watch {child.spec.name}"))

    async def _start_child(self, spec: ChildSpec) -> Child:
        child = Child(spec, on_exit=self._on_exit)
        await child.start()
        return child

    async def _start_envoy(self, directory: Path) -> None:
        (port,) = free_ports(1)
        settings = EnvoySettings(
            listen=self.options.endpoint or f"127.0.0.1:{port}",
            extproc=tuple(place.extproc for place in self.pickers),
            endpoints_file=str(directory / "eds" / "pods.json"),
            admin=_envoy_admin(directory),
            body=self.options.body,
            observe=self.options.observe,
            max_body=self.options.max_body,
            longest_hold=self.options.longest_hold,
            retries=self.options.fallbacks + 1,
            pass_encoders=self.options.pass_encoders,
        )
        self._envoy = EnvoyProcess(
            settings, directory=directory, concurrency=self.options.concurrency, on_exit=self._on_exit
        )
        try:
            await self._envoy.start([pod.address for pod in self.pods])
        except EnvoyError as error:
            raise StackError(str(error)) from None

    def _started(self) -> EnvoyProcess:
        if self._envoy is None:
            raise StackError("the stack has not been started")
        return self._envoy

    # -- waiting

    async def _all_answer(self) -> None:
        """Wait for all parts behind Envoy; the first failure ends the others' waiting."""
        try:
            async with asyncio.TaskGroup() as group:
                for pod, child in zip(self.pods, self._pod_children, strict=False):
                    group.create_task(self._pod_answers(pod, child))
                for place, child in zip(self.pickers, self._picker_children, strict=True):
                    group.create_task(_comes_up(child, partial(probe_grpc, place.extproc, 1.0), _PICKER_WITHIN))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _pod_answers(self, pod: Pod, child: Child) -> None:
        await _comes_up(child, partial(_answers, f"http://{pod.address}/health"), _POD_WITHIN)

    async def _first_answer(self) -> None:
        """Wait until a request for the base model, which loads no adapter, comes back through Envoy and the picker."""
        body = {"model": self.pods[0].base_model, "prompt": "hello", "max_tokens": 1}
        seen: list[str] = []

        async def answered() -> bool:
            seen.append(await _post(f"{self.endpoint}/v1/completions", body))
            return seen[-1].startswith("200")

        if not await becomes_true(answered, within=_ANSWER_WITHIN, every=0.1):
            log = self._picker_children[0].log_tail()
            raise StackError(
                f"no request came through in {_ANSWER_WITHIN:.0f} s; the last answer: {seen[-1]}\n"
                f"the picker says:\n{log}"
            )


async def _comes_up(child: Child, check: Callable[[], Awaitable[bool]], within: Seconds) -> None:
    async def up() -> bool:
        if child.given_up or child.starts > _TRIES_AT_START:
            raise StackError(f"{child.spec.name} ends while starting; its log says:\n{child.log_tail()}")
        return await check()

    if not await becomes_true(up, within=within, every=0.1):
        raise StackError(f"{child.spec.name} gave no answer in {within:.0f} s; its log says:\n{child.log_tail()}")


def _envoy_admin(directory: Path) -> str:
    return unix_address(directory / "envoy-admin.sock")


async def _is(value: bool) -> bool:
    return value


async def _answers(url: str) -> bool:
    status = await _request("GET", url, None)
    return status.startswith("200")


async def _post(url: str, body: dict[str, Any]) -> str:
    return await _request("POST", url, body)


async def _request(method: str, url: str, body: dict[str, Any] | None) -> str:
    """Return status and the start of the body, or the reason why there is none."""
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
            async with session.request(method, url, json=body) as response:
                return f"{response.status} {(await response.text())[:300]}"
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return f"none ({type(error).__name__}: {error})"
