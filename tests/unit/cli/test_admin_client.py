"""What answers at an admin address, and what a person is told when it is not a picker."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from lorapick.cli.admin_client import AdminError, RefusedError, decode, get
from lorapick.wire.api import ExplanationDocument

PROBLEM = b'{"type":"urn:x","title":"t","status":404,"detail":"no such thing","reason":"not_found","nearest":["a","b"]}'
ANSWERS = {"/ok": (200, b"{}"), "/problem": (404, PROBLEM), "/other": (404, b"<html>"), "/moved": (302, b"")}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(10)


def test_body_of_a_200(admin: str) -> None:
    assert get(admin, "/ok") == b"{}"


def test_problem_tells_detail_reason_and_nearest(admin: str) -> None:
    with pytest.raises(RefusedError, match=r"no such thing \(not_found\); nearest: a, b") as refused:
        get(admin, "/problem")
    assert refused.value.problem.status == 404


def test_a_picker_with_tls_is_asked_with_its_authority_and_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    other.cert_pem.write_to_path(str(tmp_path / "other.crt"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    shown: list[str | None] = []

    class Told(Handler):
        def do_GET(self) -> None:
            shown.append(self.headers["authorization"])
            super().do_GET()

    class Server(http.server.HTTPServer):
        def handle_error(self, *_: object) -> None:
            """Refused handshakes are meant."""

    with Server(("127.0.0.1", 0), Told) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            monkeypatch.setenv("LORAPICK_TOKEN", "s3cret")
            monkeypatch.setenv("LORAPICK_ADMIN_CA", str(tmp_path / "ca.crt"))
            url = f"https://127.0.0.1:{server.server_address[1]}"
            assert get(url, "/ok") == b"{}"
            assert shown == ["Bearer s3cret"]
            monkeypatch.setenv("LORAPICK_ADMIN_CA", str(tmp_path / "other.crt"))
            with pytest.raises(AdminError, match="no picker answers"):
                get(url, "/ok")
            monkeypatch.setenv("LORAPICK_ADMIN_CA", str(tmp_path / "none.crt"))
            with pytest.raises(AdminError, match="LORAPICK_ADMIN_CA: cannot read authorities from"):
                get(url, "/ok")
        finally:
            server.shutdown()
            thread.join(10)


@pytest.mark.parametrize("path", ["/other", "/moved"])
def test_something_else_answers(admin: str, path: str) -> None:
    with pytest.raises(AdminError, match=r"answered \d+ and not as lorapick's admin API does; check --admin"):
        get(admin, path)


def test_answer_of_another_kind() -> None:
    with pytest.raises(AdminError, match="does not answer like lorapick's admin API"):
        decode(b"{}", ExplanationDocument, "http://x")


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://a..b:80", "http://x:99999", "ftp://x", "http://" + "a" * 64]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(AdminError, match=r"is no address of an admin API; give one like http://127\.0\.0\.1:9091"):
        get(address, "/ok")
