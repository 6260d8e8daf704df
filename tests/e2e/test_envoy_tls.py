"""Our ext_proc server over TLS on a port, behind a real Envoy: as gateways in a cluster ask it."""

import contextlib

import pytest
import trustme
from envoy_kit import bench

from lorapick.live.envoy.clusters import PickerTls
from lorapick.live.extproc_server import ExtProcServer
from lorapick.live.processes import becomes_true
from lorapick.live.tls.keeper import Keeper
from lorapick.model.settings import ServerSettings, Settings
from lorapick.model.tls import SurfaceTls, TlsSettings
from lorapick.testing import extproc as gateway

pytestmark = pytest.mark.e2e


class Files:
    """An authority of servers, one of clients, and what they issue, in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.servers, self.clients = trustme.CA(), trustme.CA()
        self.servers.cert_pem.write_to_path(folder / "servers.crt")
        self.clients.cert_pem.write_to_path(folder / "clients.crt")
        self.issue("tls", self.servers)
        self.issue("envoy", self.clients)

    def issue(self, name, authority):
        made = authority.issue_cert("localhost", "127.0.0.1")
        (self.folder / f"{name}.crt").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
        made.private_key_pem.write_to_path(self.folder / f"{name}.key")

    def path(self, name):
        return str(self.folder / name)


@contextlib.asynccontextmanager
async def stack(files, surface, envoy):
    """Envoy, a picker that sends all to the second pod, and its certificate's keeper."""
    tls = TlsSettings(certificate="tls.crt", key="tls.key", extproc=surface)
    keeper = Keeper(tls, beside=files.folder, surfaces=("extproc",))
    async with bench() as this:
        settings = Settings(server=ServerSettings(body="full_duplex_streamed", drain_timeout=1.0))
        picker = gateway.ScriptedPicker()
        picker.answer = gateway.dispatch(this.pods[1].address)
        server = ExtProcServer(picker, settings, address="127.0.0.1:0", credentials=keeper.grpc("extproc"))
        await server.start()
        try:
            await this.start_envoy(body="full_duplex_streamed", extproc=(server.address,), picker_tls=envoy)
            yield this, picker, keeper
        finally:
            await this.envoy.stop()
            await server.stop()


async def picked(this, picker):
    """Whether a request was decided by the picker."""
    picker.heard.clear()
    status, answer, _ = await this.post()
    asked = any(call[0] == "decide" for call in picker.heard)
    return status == 200 and answer["port"] == this.pods[1].port and asked


async def test_envoy_asks_over_tls_and_goes_on_with_a_new_certificate(tmp_path):
    files = Files(tmp_path)
    envoy = PickerTls(ca=files.path("servers.crt"), name="localhost")
    async with stack(files, SurfaceTls(enabled=True), envoy) as (this, picker, keeper):
        for _ in range(3):
            assert await picked(this, picker)
        files.issue("tls", files.servers)
        keeper.look()
        assert keeper.reloads == 1
        assert await picked(this, picker)


async def test_envoy_shows_a_certificate_to_a_picker_that_asks_for_one(tmp_path):
    files = Files(tmp_path)
    asks = SurfaceTls(client_ca="clients.crt")
    shows = PickerTls(ca=files.path("servers.crt"), certificate=files.path("envoy.crt"), key=files.path("envoy.key"))
    async with stack(files, asks, shows) as (this, picker, _):
        assert await picked(this, picker)


@pytest.mark.parametrize("wrong", ["no certificate", "another authority"])
async def test_envoy_without_the_right_certificate_gets_no_answer(tmp_path, wrong):
    files = Files(tmp_path)
    if wrong == "no certificate":
        surface, envoy = SurfaceTls(client_ca="clients.crt"), PickerTls(ca=files.path("servers.crt"))
    else:
        surface, envoy = SurfaceTls(enabled=True), PickerTls(ca=files.path("clients.crt"))
    async with stack(files, surface, envoy) as (this, picker, _):

        async def refused():
            status, _, _ = await this.post()
            return status == 500

        assert await becomes_true(refused, within=5.0)
        assert picker.heard == []
