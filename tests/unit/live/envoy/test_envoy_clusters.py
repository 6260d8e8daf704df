import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.live.envoy.clusters import address, endpoints


def test_addresses():
    assert address("127.0.0.1:8000") == {"socket_address": {"address": "127.0.0.1", "port_value": 8000}}
    assert address("[::1]:8000") == {"socket_address": {"address": "::1", "port_value": 8000}}
    assert address("unix:run/a.sock") == {"pipe": {"path": "run/a.sock", "mode": 0o600}}


@pytest.mark.parametrize("text", ["", "8000", ":8000", "host:", "host:0", "host:65536", "host:a"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="expected host:port or unix:PATH"):
        address(text)


@given(st.lists(st.integers(1, 65_535), unique=True))
def test_endpoints_keep_their_order(ports):
    document = endpoints(f"10.0.0.1:{port}" for port in ports)
    (assignment,) = document["resources"]
    hosts = assignment["endpoints"][0]["lb_endpoints"]
    assert [host["endpoint"]["address"]["socket_address"]["port_value"] for host in hosts] == ports
