import socket
from pathlib import Path

import pytest

from lorapick.live.addresses import free_ports, host_and_port, in_use, unix_address


def test_free_ports_differ_and_are_free():
    ports = free_ports(20) + free_ports(20)
    assert len({*ports}) == 40
    assert not any(in_use(f"127.0.0.1:{port}") for port in ports)


def test_a_port_in_use_is_seen():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        assert in_use(f"127.0.0.1:{holder.getsockname()[1]}")


def test_a_host_that_is_not_ours_is_an_error():
    with pytest.raises(ValueError, match=r"cannot listen on 192\.0\.2\.1:8080"):
        in_use("192.0.2.1:8080")


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host:x", "host:0", "host:70000"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="not host:port"):
        host_and_port(text)


def test_ipv6():
    assert host_and_port("[::1]:80") == ("::1", 80)


def test_a_socket_path_is_absolute_while_it_fits(tmp_path, monkeypatch):
    assert unix_address(tmp_path / "a.sock") == f"unix:{tmp_path}/a.sock"
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert unix_address(Path("a.sock")) == "unix:a.sock"
    with pytest.raises(ValueError, match="longer than the 107 bytes"):
        unix_address(tmp_path / ("e" * 120) / "a.sock")
