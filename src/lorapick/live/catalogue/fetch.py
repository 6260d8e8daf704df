"""Fetch an adapter from remote storage into the store, a folder that pods read too.

In: a URL, and what has to be true of what is behind it. Out: a folder `NAME@FINGERPRINT` that is complete and never
changes, or `AdapterSourceError`. Everything happens beside it first and is renamed at the end: what has that name is
whole. Blocks for as long as it takes: call it in a thread. Not here: which adapters, when, how many at once (see
`live.catalogue.catalogue`).

Credentials come from the environment: AWS_* (and what else botocore reads) for s3, the file that NETRC names for http.
Redirects are followed; declare `sha256` for weights from hosts that are not yours.
"""

import errno
import fcntl
import filecmp
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import aiohttp
import fsspec
from fsspec.callbacks import Callback

from lorapick.live.catalogue.files import Contents, Files, fingerprint, read_config, read_contents
from lorapick.live.catalogue.memory import file_name
from lorapick.model.units import AdapterName, Bytes, Seconds
from lorapick.wire.adapter_source import AdapterSourceError, Remote, SourceReason
from lorapick.wire.peft import CONFIG_FILE, LARGEST_CONFIG, WEIGHTS_FILE

CONNECT: Seconds = 10.0
SILENCE: Seconds = 20.0
"""Without a byte, after which a connection counts as dead."""
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_STAGING = ".fetching-"
_LOCK = "lock"
_TOLD = 300
"""Characters of a library's own words in a message."""


class Limits(NamedTuple):
    """What one fetch may take."""

    size: Bytes = 8_000_000_000
    seconds: Seconds = 600.0


class Order(NamedTuple):
    """What is to be fetched, and what it has to pass before it counts."""

    name: AdapterName
    remote: Remote
    check: Callable[[Contents], None]
    """Called with what the files say; raises `AdapterSourceError` when that is not good."""


class Fetched(NamedTuple):
    """What is in the store now."""

    folder: Path
    contents: Contents


class Meter:
    """Stops a transfer that is too long, too large, or no longer wanted."""

    def __init__(self, limits: Limits, *, stopped: Callable[[], bool], what: str) -> None:
        """Begin to count time."""
        self._limits = limits
        self._until = monotonic() + limits.seconds
        self._stopped = stopped
        self._what = what

    @property
    def left(self) -> Seconds:
        """Time that is left, at least a little."""
        return max(0.1, self._until - monotonic())

    def of_file(self, most: Bytes) -> Any:
        """What fsspec tells how many bytes there are and how many came.

        It raises `AdapterSourceError` from within the transfer: too many, too long, or nobody wants them any more.
        """

        def watch(size: int | None, value: int, **_: object) -> None:
            if max(size or 0, value) > most:
                told = f"{self._what}: more than {most} bytes, the most that is fetched; is this an adapter?"
                raise AdapterSourceError(SourceReason.TOO_LARGE, told)
            self.go_on()

        return Callback(hooks={"limits": watch})

    def go_on(self) -> None:
        """Look at the clock.

        Raises:
            AdapterSourceError: it takes too long, or nobody wants it any more.
        """
        if self._stopped():
            raise AdapterSourceError(SourceReason.UNREACHABLE, f"{self._what}: given up, the picker ends")
        if monotonic() > self._until:
            told = f"{self._what}: not fetched within {self._limits.seconds:g} s; bring it nearer"
            raise AdapterSourceError(SourceReason.TIMEOUT, told)


def fetch(order: Order, *, store: Path, limits: Limits, stopped: Callable[[], bool]) -> Fetched:
    """Bring an adapter's two files into the store.

    Raises:
        AdapterSourceError: it cannot be had, is not what it should be, or nobody wants it. Nothing of it is left then.
    """
    url = order.remote.url
    try:
        with _staging(store) as staging:
            try:
                files = Files(staging / CONFIG_FILE, staging / WEIGHTS_FILE)
                contents = _download(order, files, limits=limits, stopped=stopped)
            except AdapterSourceError as error:
                raise AdapterSourceError(error.reason, str(error).replace(str(staging), url)) from error
            name = store_name(order.name, contents.facts.fingerprint or "")
            return Fetched(_install(staging, into=store / name), contents)
    except OSError as error:
        why = error.strerror or str(error)
        raise AdapterSourceError(
            SourceReason.NO_STORE, f"placement.store {store}: {why}, while {url} was fetched"
        ) from error


def store_name(name: AdapterName, fingerprint: str) -> str:
    """The name of an adapter's folder in the store: another one for other weights."""
    return f"{file_name(name).removesuffix('.json')}@{fingerprint[:12]}"


def sweep(store: Path) -> None:
    """Remove what fetches left behind whose process has ended; those of others that run stay.

    Raises:
        OSError: the store cannot be written.
    """
    store.mkdir(parents=True, exist_ok=True)
    for left in store.glob(f"{_STAGING}*"):
        try:
            with (left / _LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
        except (BlockingIOError, FileNotFoundError, NotADirectoryError):
            continue


@contextmanager
def _staging(store: Path) -> Iterator[Path]:
    """A folder to fetch into, removed at the end; its lock tells `sweep` that somebody is at it."""
    store.mkdir(parents=True, exist_ok=True)
    outer = Path(tempfile.mkdtemp(prefix=_STAGING, dir=store))
    try:
        with (outer / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (outer / "adapter").mkdir(mode=0o755)
            yield outer / "adapter"
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def _download(order: Order, files: Files, *, limits: Limits, stopped: Callable[[], bool]) -> Contents:
    """Fetch the small file, then the large one if that is an adapter's, and look at both."""
    meter = Meter(limits, stopped=stopped, what=order.remote.url)
    system = _file_system(order.remote)
    _get(system, f"{order.remote.url}/{CONFIG_FILE}", file=files.config, most=LARGEST_CONFIG, meter=meter)
    read_config(files.config)
    _get(system, f"{order.remote.url}/{WEIGHTS_FILE}", file=files.weights, most=limits.size, meter=meter)
    contents = read_contents(files).with_fingerprint(fingerprint(files.weights, go_on=meter.go_on))
    order.check(contents)
    return contents


def _file_system(remote: Remote) -> Any:
    """Of fsspec. None is kept: what the environment says may change, and its connections end with it."""
    if remote.scheme == "s3":
        waits = {"connect_timeout": CONNECT, "read_timeout": SILENCE, "retries": {"max_attempts": 3}}
        try:
            return fsspec.filesystem("s3", skip_instance_cache=True, max_concurrency=1, config_kwargs=waits)
        except ImportError as error:
            raise AdapterSourceError(
                SourceReason.UNREADABLE, f"{remote.url}: s3 needs another package: pip install 'lorapick[s3]'"
            ) from error
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=SILENCE)
    return fsspec.filesystem(
        remote.scheme, skip_instance_cache=True, client_kwargs={"timeout": timeout, "trust_env": True}, max_redirects=5
    )


def _get(system: Any, url: str, *, file: Path, most: Bytes, meter: Meter) -> None:
    try:
        system.get_file(url, str(file), callback=meter.of_file(most), timeout=meter.left)
    except AdapterSourceError:
        raise
    except Exception as error:  # fsspec's file systems raise what their libraries do
        if isinstance(error, OSError) and error.errno in _DISK:
            raise
        raise _translated(error, url) from error


def _translated(error: Exception, url: str) -> AdapterSourceError:
    """What a library raised, as a reason and what would help."""
    kind, status = type(error).__name__, getattr(error, "status", None)
    told = f"{url}: {kind}: {str(error)[:_TOLD]}".rstrip(": ")
    if isinstance(error, FileNotFoundError):
        return AdapterSourceError(SourceReason.MISSING, f"{url}: there is no such file; correct the adapter's source")
    if isinstance(error, PermissionError) or status in (401, 403) or kind == "NoCredentialsError":
        return AdapterSourceError(
            SourceReason.CREDENTIALS, f"{told}; give credentials by the environment (AWS_* for s3, NETRC for http)"
        )
    if isinstance(error, TimeoutError):
        return AdapterSourceError(SourceReason.TIMEOUT, f"{told}; no answer in time")
    return AdapterSourceError(SourceReason.UNREACHABLE, told)


def _install(staging: Path, *, into: Path) -> Path:
    """Make it read-only, durable, and visible under its name, in this order."""
    for file in staging.iterdir():
        file.chmod(0o444)
        _sync(file)
    _sync(staging)
    try:
        staging.rename(into)
    except OSError:
        # It is there already: fetched before and not recorded, or by another picker. What differs is no use to anyone.
        if not into.is_dir():
            raise
        if not _same(staging, into):
            shutil.rmtree(into)
            staging.rename(into)
    _sync(into.parent)
    return into


def _same(one: Path, other: Path) -> bool:
    names = (CONFIG_FILE, WEIGHTS_FILE)
    return filecmp.cmpfiles(one, other, names, shallow=False)[0] == [*names]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
