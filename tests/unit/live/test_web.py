"""Addresses: what is understood, what is refused, and how the refusal reads."""

import pytest

from lorapick.live.web import BindError, address_of, host_of, is_ip, listen, serving, split_bind


@pytest.mark.parametrize(
    ("bind", "parts"),
    [("127.0.0.1:9091", ("127.0.0.1", 9091)), ("[::1]:0", ("::1", 0)), ("host:65535", ("host", 65535))],
)
def test_split_bind(bind: str, parts: tuple[str, int]) -> None:
    assert split_bind(bind, setting="server.admin") == parts


@pytest.mark.parametrize("bind", ["", "9091", ":9091", "host:", "host:http", "host:65536", "host:-1", "host:٣"])
def test_split_bind_refuses_and_says_what_is_right(bind: str) -> None:
    with pytest.raises(BindError, match=r"server\.admin: .* write host:port"):
        split_bind(bind, setting="server.admin")


def test_listen_on_an_address_of_another_machine() -> None:
    with pytest.raises(BindError, match=r"metrics: cannot listen on 192\.0\.2\.1:9090 .* set server\.metrics"):
        listen("192.0.2.1:9090", what="metrics", setting="server.metrics")


def test_address_of_tells_the_port_that_was_taken() -> None:
    with listen("127.0.0.1:0", what="x", setting="y") as listener:
        host, port = split_bind(address_of(listener), setting="y")
    assert host == "127.0.0.1"
    assert port > 0


@pytest.mark.parametrize(
    ("header", "host"), [("LocalHost:1", "localhost"), ("[::1]:9091", "::1"), ("1.2.3.4", "1.2.3.4"), ("", "")]
)
def test_host_of(header: str, host: str) -> None:
    assert host_of(header) == host


@pytest.mark.parametrize(("host", "verdict"), [("10.0.0.1", True), ("::1", True), ("example.org", False), ("", False)])
def test_is_ip(host: str, verdict: bool) -> None:
    assert is_ip(host) is verdict


async def test_error_inside_the_block_comes_out_as_it_is() -> None:
    async def app(scope: object, receive: object, send: object) -> None: ...

    with pytest.raises(KeyError):
        async with serving(app, "127.0.0.1:0", what="x", setting="y"):
            raise KeyError
