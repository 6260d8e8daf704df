import os
import socket

import pytest

from lorapick.live.addresses import free_ports
from lorapick.live.envoy.config import EnvoySettings
from lorapick.live.envoy.process import EnvoyError, EnvoyProcess, binary, replace_file
from lorapick.live.processes import becomes_true


def envoy(tmp_path, port):
    return EnvoyProcess(
        EnvoySettings(
            listen=f"127.0.0.1:{port}",
            extproc=("unix:/nowhere.sock",),
            endpoints_file=f"{tmp_path}/eds/pods.json",
            admin=f"unix:{os.path.relpath(tmp_path / 'admin.sock')}",
        ),
        directory=tmp_path,
    )


def test_the_binary_is_the_packages_own():
    assert os.access(binary(), os.X_OK)


async def test_it_comes_back_when_it_dies_and_not_when_it_is_stopped(tmp_path):
    (port,) = free_ports(1)
    process = envoy(tmp_path, port)
    await process.start([])
    first = process.pid
    os.kill(first, 9)

    async def another():
        return process.pid not in (None, first)

    assert await becomes_true(another, within=10.0)
    await process.stop()
    assert process.pid is None


async def test_a_port_that_another_has_is_told_in_envoys_words(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(EnvoyError, match=r"(?s)ended while starting.*[Aa]ddress already in use"):
            await envoy(tmp_path, holder.getsockname()[1]).start([])


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "pods.json"
    replace_file(path, b"one")
    before = path.stat().st_ino
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_ino != before
    assert [entry.name for entry in tmp_path.iterdir()] == ["pods.json"]
