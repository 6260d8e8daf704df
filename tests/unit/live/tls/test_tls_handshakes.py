"""Real connections: who is let in, what a reload changes, and what it does not."""

import asyncio
import socket
import ssl
import warnings
from contextlib import asynccontextmanager

import aiohttp
import pytest
import trustme
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import ExternalProcessorStub
from starlette.responses import PlainTextResponse, StreamingResponse
from tls_kit import channel, client, is_served

from lorapick.live.extproc_server import ExtProcServer
from lorapick.live.metrics import Metrics, serve_metrics
from lorapick.live.tls.door import Door
from lorapick.live.tls.keeper import Keeper
from lorapick.live.web import serving
from lorapick.model.settings import Settings
from lorapick.model.tls import SurfaceTls, TlsSettings
from lorapick.testing import extproc as gateway

DUPLEX = (gateway.FULL_DUPLEX, gateway.FULL_DUPLEX)


@asynccontextmanager
async def extproc(keeper):
    server = ExtProcServer(
        gateway.ScriptedPicker(), Settings(), address="127.0.0.1:0", credentials=keeper.grpc("extproc")
    )
    await server.start()
    try:
        yield server.address
    finally:
        await server.stop()


async def heard(call, count):
    return [await asyncio.wait_for(call.read(), 10) for _ in range(count)]


async def test_grpc_answers_who_trusts_the_authority_and_nobody_else(issuer):
    issuer.issue()
    async with extproc(issuer.keeper("extproc")) as address:
        assert await is_served(address, issuer.root)
        assert not await is_served(address, trustme.CA().cert_pem.bytes())


async def test_grpc_with_a_certificate_of_its_own_making(tmp_path):
    keeper = Keeper(TlsSettings(extproc=SurfaceTls(enabled=True)), beside=tmp_path, surfaces=("extproc",))
    async with extproc(keeper) as address:
        shown = await asyncio.to_thread(ssl.get_server_certificate, address.split(":"))
        assert await is_served(address, shown.encode())


async def test_grpc_asks_for_a_certificate_of_the_clients_authority(issuer):
    issuer.issue()
    clients = trustme.CA()
    async with extproc(issuer.keeper("extproc", client_ca=issuer.authority_file(clients))) as address:
        assert await is_served(address, issuer.root, clients.issue_cert("envoy"))
        assert not await is_served(address, issuer.root)
        assert not await is_served(address, issuer.root, trustme.CA().issue_cert("envoy"))


async def test_grpc_takes_a_new_authority_and_certificate_while_a_stream_goes_on(issuer):
    issuer.issue()
    keeper, old_root, new = issuer.keeper("extproc"), issuer.root, trustme.CA()
    async with extproc(keeper) as address, channel(address, old_root) as connected:
        call = ExternalProcessorStub(connected).Process()
        await call.write(gateway.request_headers(modes=DUPLEX))
        issuer.issue(authority=new)
        keeper.look()
        assert await is_served(address, new.cert_pem.bytes())
        assert not await is_served(address, old_root)
        await call.write(gateway.request_body(b'{"model":"ad0","prompt":"Hello"}'))
        first, second = await heard(call, 2)
        assert first.WhichOneof("response") == "request_headers"
        assert second.WhichOneof("response") == "request_body"
        # And broken files change nothing at all.
        issuer.write(b"broken", b"broken")
        keeper.look()
        keeper.look()
        assert keeper.failures == 1
        assert await is_served(address, new.cert_pem.bytes())


async def test_grpc_takes_a_new_client_authority(issuer):
    issuer.issue()
    old, new = trustme.CA(), trustme.CA()
    keeper = issuer.keeper("extproc", client_ca=issuer.authority_file(old))
    async with extproc(keeper) as address:
        issuer.authority_file(new)
        keeper.look()
        assert await is_served(address, issuer.root, new.issue_cert("envoy"))
        assert not await is_served(address, issuer.root, old.issue_cert("envoy"))


def version_agreed(address, highest):
    """Version of a handshake in which the client goes no higher; why there was none otherwise."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # At OpenSSL's usual level the client itself would not offer 1.1, and the server would not be asked.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, highest
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        try:
            with context.wrap_socket(plain) as secured:
                return secured.version()
        except ssl.SSLError as error:
            return error.reason


async def test_grpc_takes_1_2_and_1_3_and_nothing_older(issuer):
    issuer.issue()
    async with extproc(issuer.keeper("extproc")) as address:
        highest = (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
        agreed = [await asyncio.to_thread(version_agreed, address, each) for each in highest]
    # gRPC hangs up on 1.1 without an alert; the next test holds that this client can speak it.
    assert agreed == ["UNEXPECTED_EOF_WHILE_READING", "TLSv1.2", "TLSv1.3"]


async def test_a_server_that_takes_1_1_is_spoken_to_in_it(issuer):
    issuer.issue()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issuer.folder / "tls.crt", issuer.folder / "tls.key")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await asyncio.to_thread(version_agreed, f"127.0.0.1:{port}", ssl.TLSVersion.TLSv1_1) == "TLSv1.1"


async def hello(scope, receive, send):
    await PlainTextResponse("hello")(scope, receive, send)


@asynccontextmanager
async def site(keeper, app=hello):
    async with serving(app, "127.0.0.1:0", what="test", setting="test", tls=keeper.http("admin")) as address:
        yield f"https://{address}/"


async def fetched(url, context):
    """What a new connection gets."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(url) as answer,
    ):
        return await answer.text()


async def test_http_answers_who_trusts_the_authority_and_nobody_else(issuer):
    issuer.issue()
    async with site(issuer.keeper("admin")) as url:
        assert await fetched(url, client(issuer.root)) == "hello"
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await fetched(url, client(trustme.CA().cert_pem.bytes()))
        with pytest.raises(aiohttp.ClientError):
            await fetched(url.replace("https", "http"), None)


async def test_http_keeps_to_the_lowest_version(issuer):
    issuer.issue()
    old = client(issuer.root)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with site(issuer.keeper("admin", min_version="1.2")) as url:
        assert await fetched(url, old) == "hello"
    async with site(issuer.keeper("admin", min_version="1.3")) as url:
        assert await fetched(url, client(issuer.root)) == "hello"
        with pytest.raises(aiohttp.ClientError):
            await fetched(url, old)


async def test_http_asks_for_a_certificate_and_takes_a_new_authority(issuer):
    issuer.issue()
    old, new = trustme.CA(), trustme.CA()
    keeper = issuer.keeper("admin", client_ca=issuer.authority_file(old))
    async with site(keeper) as url:
        assert await fetched(url, client(issuer.root, old.issue_cert("me"))) == "hello"
        with pytest.raises((aiohttp.ClientError, OSError)):
            await fetched(url, client(issuer.root))
        issuer.authority_file(new)
        keeper.look()
        assert await fetched(url, client(issuer.root, new.issue_cert("me"))) == "hello"
        with pytest.raises((aiohttp.ClientError, OSError)):
            await fetched(url, client(issuer.root, old.issue_cert("me")))


async def test_an_answer_that_goes_on_survives_a_new_certificate(issuer):
    issuer.issue()
    keeper, new, may_end = issuer.keeper("admin"), trustme.CA(), asyncio.Event()

    async def slow(scope, receive, send):
        async def parts():
            yield b"one "
            await may_end.wait()
            yield b"two"

        await StreamingResponse(parts())(scope, receive, send)

    async with site(keeper, slow) as url:
        connector = aiohttp.TCPConnector(ssl=client(issuer.root))
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
            assert await answer.content.readany() == b"one "
            issuer.issue(authority=new)
            keeper.look()
            may_end.set()
            assert await fetched(url, client(new.cert_pem.bytes())) == "one two"
            assert await answer.content.read() == b"two"


async def test_metrics_are_scraped_with_a_token_by_tls(issuer):
    issuer.issue()
    keeper, token = issuer.keeper("metrics"), "first"
    door = Door(tls=keeper.http("metrics"), token=lambda: token)
    async with serve_metrics(Metrics(), bind="127.0.0.1:0", door=door) as address:
        connector = aiohttp.TCPConnector(ssl=client(issuer.root))
        async with aiohttp.ClientSession(connector=connector) as session:

            async def scrape(**headers):
                async with session.get(f"https://{address}/metrics", headers=headers) as answer:
                    return answer.status, await answer.text(), answer.headers

            status, text, headers = await scrape()
            assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="lorapick"')
            assert "send the one of server.metrics_token" in text
            status, text, _ = await scrape(authorization="Bearer first")
            assert status == 200
            assert "lorapick_" in text
            token = "second"
            assert (await scrape(authorization="Bearer first"))[0] == 401
            assert (await scrape(authorization="Bearer second"))[0] == 200
