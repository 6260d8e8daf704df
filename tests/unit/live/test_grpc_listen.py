"""Addresses that gRPC can and cannot have."""

from pathlib import Path

import pytest

from lorapick.live.grpc_listen import GrpcListener
from lorapick.live.web import BindError


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", ":80", "127.0.0.1:x"])
async def test_no_addresses(address: str) -> None:
    with pytest.raises(BindError, match="server"):
        GrpcListener(address, setting="server.health")


async def test_an_address_of_another_machine() -> None:
    with pytest.raises(BindError, match="no address of this machine"):
        GrpcListener("192.0.2.1:8000", setting="server.health")


async def test_a_path_too_long(tmp_path: Path) -> None:
    with pytest.raises(BindError, match="at most 107"):
        GrpcListener(f"unix:{tmp_path}/{'x' * 108}", setting="server.extproc")


async def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(BindError, match="exists and is no socket"):
        GrpcListener(f"unix:{tmp_path}/file", setting="server.extproc")
    assert (tmp_path / "file").read_text() == "precious"


async def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BindError, match="cannot listen on socket"):
        GrpcListener(f"unix:{tmp_path}/file/x.sock", setting="server.extproc")


async def test_a_successors_socket_is_left(tmp_path: Path) -> None:
    first = GrpcListener(f"unix:{tmp_path}/x.sock", setting="server.extproc")
    (tmp_path / "x.sock").unlink()
    (tmp_path / "other").touch()  # so that the inode is not used again
    second = GrpcListener(f"unix:{tmp_path}/x.sock", setting="server.extproc")
    first.release()
    assert (tmp_path / "x.sock").exists()
    second.release()
    assert not (tmp_path / "x.sock").exists()
    await first.server.stop(None)
    await second.server.stop(None)
