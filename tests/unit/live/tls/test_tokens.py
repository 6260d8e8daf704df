"""Tokens in files are read again; what cannot be used changes nothing."""

import pytest
from starlette.datastructures import Headers

from lorapick.live.tls.doors import Doors
from lorapick.live.tls.tokens import TokenError, TokenFile, shows, token_of
from lorapick.model.settings import ServerSettings, Settings
from lorapick.model.tls import SurfaceTls, TlsSettings


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_token_in_a_file_is_read_again_when_it_changes(tmp_path, caplog):
    file, clock = tmp_path / "token", Clock()
    file.write_text("first\n")
    token = TokenFile(file, setting="server.admin_token_file", clock=clock)
    assert token() == "first"
    file.write_text("the second")
    assert token() == "first"  # not looked at again within a second
    clock.now = 1.0
    assert token() == "first"
    assert "has blanks or letters beyond ASCII; use another; the token from before stays" in caplog.text
    file.write_text("third")
    clock.now = 2.0
    assert token() == "third"
    file.unlink()
    for clock.now in (3.0, 4.0, 5.0):
        assert token() == "third"
    assert caplog.text.count("the token from before stays") == 2
    file.write_text("fourth")
    clock.now = 6.0
    assert token() == "fourth"


def test_a_token_as_kubernetes_projects_it(tmp_path):
    """A link to a folder that is exchanged."""
    clock = Clock()
    for name, text in (("v1", "first"), ("v2", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(text)
    data = tmp_path / "..data"
    data.symlink_to("v1")
    (tmp_path / "token").symlink_to("..data/token")
    token = TokenFile(tmp_path / "token", setting="s", clock=clock)
    (tmp_path / "..new").symlink_to("v2")
    (tmp_path / "..new").rename(data)
    clock.now = 1.0
    assert token() == "second"


@pytest.mark.parametrize(("content", "words"), [("", "is empty"), ("a b", "has blanks"), ("\u00e9", "beyond ASCII")])
def test_a_file_without_a_token_is_refused_at_the_start(tmp_path, content, words):
    (tmp_path / "token").write_text(content)
    with pytest.raises(TokenError, match=words):
        TokenFile(tmp_path / "token", setting="server.admin_token_file")
    with pytest.raises(TokenError, match=r"server.admin_token_file: cannot read"):
        TokenFile(tmp_path / "none", setting="server.admin_token_file")


def test_the_file_comes_before_the_variable_and_none_of_both_is_none(tmp_path):
    (tmp_path / "token").write_text("file")
    both = ("server.x_token", "server.x_token_file")
    assert token_of(None, None, environment={}, settings=both) is None
    assert token_of("V", None, environment={"V": "variable"}, settings=both)() == "variable"
    assert token_of(None, tmp_path / "token", environment={}, settings=both)() == "file"
    with pytest.raises(TokenError, match=r"server.x_token: the environment variable V is not set"):
        token_of("V", None, environment={}, settings=both)


@pytest.mark.parametrize(
    ("header", "basic", "right"),
    [
        ("Bearer s", False, True),
        ("bearer s", True, True),
        ("Bearer t", False, False),
        ("Basic bWU6cw==", True, True),
        ("Basic bWU6cw==", False, False),
        ("Basic ???", True, False),
        ("Basic \xff", True, False),
        ("s", True, False),
        ("", True, False),
    ],
)
def test_what_shows_a_token(header, basic, right):
    headers = Headers(raw=[(b"authorization", header.encode("latin-1"))])
    assert shows(headers, "s", basic=basic) is right


def test_doors_of_one_picker(issuer):
    issuer.issue()
    (issuer.folder / "token").write_text("s3cret")
    ca = issuer.authority_file()
    doors = Doors(
        Settings(
            server=ServerSettings(extproc="0.0.0.0:9002", metrics_token_file="token"),
            tls=TlsSettings(certificate="tls.crt", key="tls.key", admin=SurfaceTls(client_ca=ca)),
        ),
        beside=issuer.folder,
    )
    assert doors.extproc() is not None
    assert (doors.metrics.tls, doors.metrics.token(), doors.metrics.certificate) == (None, "s3cret", False)
    assert (doors.admin.token, doors.admin.certificate) == (None, True)
    assert doors.admin.tls is doors.keeper.http("admin")
    doors.keeper.problem = "broken"
    assert doors.admin.problem() == doors.metrics.problem() == "broken"


def test_without_tls_and_tokens_there_is_nothing(tmp_path):
    doors = Doors(Settings(), beside=tmp_path)
    assert (doors.keeper, doors.extproc(), doors.admin.tls, doors.metrics.token) == (None, None, None, None)
    assert doors.admin.problem() is None
