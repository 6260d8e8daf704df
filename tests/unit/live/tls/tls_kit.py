"""An authority, and a folder with what it issued, as a Kubernetes Secret is mounted."""

import datetime
import ssl
from pathlib import Path

import grpc
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lorapick.live.tls.keeper import Keeper
from lorapick.model.tls import SurfaceTls, TlsSettings

DAY = 86_400.0
NAMES = ("localhost", "127.0.0.1")


class Issuer:
    """Writes certificates into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.root = self.authority.cert_pem.bytes()

    def issue(self, *, until: datetime.datetime | None = None, authority: trustme.CA | None = None) -> trustme.LeafCert:
        made = (authority or self.authority).issue_cert(*NAMES, not_after=until)
        self.write(chain(made), made.private_key_pem.bytes())
        return made

    def write(self, certificate: bytes, key: bytes) -> None:
        (self.folder / "tls.crt").write_bytes(certificate)
        (self.folder / "tls.key").write_bytes(key)

    def authority_file(self, authority: trustme.CA | None = None) -> str:
        (self.folder / "ca.crt").write_bytes((authority or self.authority).cert_pem.bytes())
        return "ca.crt"

    def keeper(self, *surfaces: str, client_ca: str | None = None, **more: object) -> Keeper:
        wanted = dict.fromkeys(surfaces, SurfaceTls(enabled=True, client_ca=client_ca))
        settings = TlsSettings(certificate="tls.crt", key="tls.key", **more, **wanted)  # type: ignore[arg-type]  # by name
        return Keeper(settings, beside=self.folder, surfaces=surfaces)


def chain(made: trustme.LeafCert) -> bytes:
    return b"".join(part.bytes() for part in made.cert_chain_pems)


def client(root: bytes, made: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """A client's context, with its own certificate or without."""
    context = ssl.create_default_context(cadata=root.decode())
    if made is not None:
        made.configure_cert(context)
    return context


def channel(address: str, root: bytes, made: trustme.LeafCert | None = None) -> grpc.aio.Channel:
    own = (None, None) if made is None else (made.private_key_pem.bytes(), chain(made))
    credentials = grpc.ssl_channel_credentials(root, *own)
    # Channels with the same arguments share a connection, and so what was agreed on it.
    return grpc.aio.secure_channel(address, credentials, options=[("grpc.use_local_subchannel_pool", 1)])


async def is_served(address: str, root: bytes, made: trustme.LeafCert | None = None) -> bool:
    """Whether a new connection gets an answer."""
    async with channel(address, root, made) as connected:
        try:
            answer = await health_pb2_grpc.HealthStub(connected).Check(health_pb2.HealthCheckRequest(), timeout=5)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
