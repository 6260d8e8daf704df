"""`lorapick serve` as a process: what listens where, by TLS, and for whom."""

import asyncio
import contextlib
import ipaddress
import json
import socket
import ssl
import sys
from pathlib import Path

import aiohttp
import grpc
import pytest
import trustme
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lorapick.live.addresses import free_ports
from lorapick.live.serve import serve
from lorapick.live.web import BindError
from lorapick.model.settings import ServerSettings, Settings
from lorapick.testing.stack import Stack

pytestmark = pytest.mark.e2e
LISTENS = "0A"
"""State of a socket in /proc/net/tcp."""


def listeners(pid):
    """Addresses that a process listens on by TCP, as the kernel knows them."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            name = str(link.readlink())
            if name.startswith("socket:["):
                inodes.add(name[8:-1])
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and inode in inodes:
                words = bytes.fromhex(local.partition(":")[0])
                packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
                found.append(ipaddress.ip_address(socket.inet_ntop(family, packed)))
    return found


def on_loopback(address):
    """gRPC listens by IPv6 on addresses of IPv4 too, and so on them alone."""
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def descendants(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from descendants(int(child))


@contextlib.asynccontextmanager
async def served(folder, **sections):
    """A picker with this configuration, and where it listens."""
    pods = {"pods": [{"name": "a", "address": "127.0.0.1:1"}]}
    (folder / "lorapick.yaml").write_text(yaml.safe_dump({"discovery": pods, **sections}))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lorapick.cli.main", "serve", "--config", "lorapick.yaml", "--json"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        assert line, (await process.stderr.read()).decode()
        yield process, json.loads(line)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def elsewhere(**more):
    """The default hosts with ports of nobody."""
    names = ("health", "metrics", "admin")
    default = ServerSettings()
    hosts = {name: getattr(default, name).rpartition(":")[0] for name in names}
    return {name: f"{hosts[name]}:{port}" for name, port in zip(names, free_ports(3), strict=True)} | more


async def test_by_default_a_picker_listens_on_loopback_alone(tmp_path):
    async with served(tmp_path, server=elsewhere()) as (process, told):
        assert told["extproc"].startswith("unix:")
        found = listeners(process.pid)
        assert len(found) == 3  # health, metrics, admin
        assert all(map(on_loopback, found)), found


async def test_a_whole_installation_listens_on_loopback_alone():
    async with Stack(pods=1):
        found = {pid: listeners(pid) for pid in descendants("self")}
        assert sum(map(bool, found.values())) >= 3  # Envoy, the picker, the pod
        assert all(on_loopback(address) for addresses in found.values() for address in addresses), found


async def test_a_picker_by_tls_with_tokens(tmp_path):
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(tmp_path / "tls.key")
    (tmp_path / "tls.crt").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    (tmp_path / "token").write_text("s3cret\n")
    port, server = free_ports(1)[0], elsewhere(metrics_token_file="token", admin_token_file="token")
    on = {"enabled": True}
    tls = {"folder": ".", "reload_every": "100ms", "extproc": on, "metrics": on, "admin": on}
    async with served(tmp_path, server=server | {"extproc": f"127.0.0.1:{port}"}, tls=tls) as (_, told):
        root = authority.cert_pem.bytes()
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=root.decode()), force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def scrape(token):
                headers = {"authorization": f"Bearer {token}"}
                async with session.get(f"https://{told['metrics']}/metrics", headers=headers) as answer:
                    return answer.status, await answer.text()

            assert (await scrape("wrong"))[0] == 401
            status, page = await scrape("s3cret")
            assert status == 200
            assert 'lorapick_tls_not_after_seconds{server="extproc"}' in page
            async with session.post(f"https://{told['admin']}/v1/placement/plan") as answer:
                assert answer.status == 401
            # Broken files: the last good stay, and the doctor says so.
            (tmp_path / "tls.key").write_text("broken")
            for _ in range(100):
                async with session.get(f"https://{told['admin']}/v1/doctor") as answer:
                    checks = [finding["check"] for finding in (await answer.json())["diagnosis"]["findings"]]
                if "certificate" in checks:
                    break
                await asyncio.sleep(0.05)
            assert "certificate" in checks
            assert "lorapick_tls_files_broken 1.0" in (await scrape("s3cret"))[1]
        async with grpc.aio.secure_channel(told["extproc"], grpc.ssl_channel_credentials(root)) as channel:
            asked = health_pb2.HealthCheckRequest(service="liveness")
            answer = await health_pb2_grpc.HealthStub(channel).Check(asked, timeout=5)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_an_admin_api_for_everybody_ends_a_picker_before_anything_listens(tmp_path):
    settings = Settings(server=ServerSettings(admin="0.0.0.0:9091"))
    with pytest.raises(BindError, match="the admin API would show anybody models and requests"):
        await serve(settings, beside=tmp_path, static=None)
