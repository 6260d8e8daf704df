"""What other machines can reach is asked for, refused, or told at the start."""

import pytest

from lorapick.live.tls.exposure import beyond_loopback, check_exposure, with_tls
from lorapick.live.web import BindError
from lorapick.model.settings import ServerSettings, Settings
from lorapick.model.tls import SurfaceTls, TlsSettings

ON, OFF = SurfaceTls(enabled=True), SurfaceTls(enabled=False)
ASKS = SurfaceTls(client_ca="ca.crt")


def settings(tls=None, **server):
    return Settings(server=ServerSettings(**server), tls=TlsSettings(**(tls or {})))


def test_by_default_nothing_listens_beyond_loopback():
    server = ServerSettings()
    for name in ("extproc", "health", "endpoint", "metrics", "admin"):
        assert not beyond_loopback(getattr(server, name), setting=name)
    assert check_exposure(Settings()) == []
    assert with_tls(Settings()) == ()


@pytest.mark.parametrize(
    ("address", "wanted", "has"),
    [
        ("unix:run/x.sock", SurfaceTls(), False),
        ("127.0.0.1:9002", SurfaceTls(), False),
        ("localhost:9002", SurfaceTls(), False),
        ("127.0.0.1:9002", ON, True),
        ("127.0.0.1:9002", ASKS, True),
        ("0.0.0.0:9002", SurfaceTls(), True),
        ("[::]:9002", SurfaceTls(), True),
        ("10.0.0.1:9002", SurfaceTls(), True),
        ("0.0.0.0:9002", OFF, False),
    ],
)
def test_ext_proc_has_tls_where_others_can_reach_it(address, wanted, has):
    assert with_tls(settings({"extproc": wanted}, extproc=address)) == (("extproc",) if has else ())


def test_metrics_and_admin_have_it_when_asked_for():
    everywhere = {"metrics": "0.0.0.0:9090", "admin": "0.0.0.0:9091"}
    assert with_tls(settings(**everywhere)) == ()
    assert with_tls(settings({"metrics": ON, "admin": ASKS}, **everywhere)) == ("metrics", "admin")
    assert with_tls(settings({"metrics": ON}, metrics="127.0.0.1:9090")) == ("metrics",)


def test_an_admin_api_for_everybody_is_refused():
    with pytest.raises(BindError, match=r"set server.admin_token, server.admin_token_file or tls.admin.client_ca"):
        check_exposure(settings(admin="0.0.0.0:9091"))
    with pytest.raises(BindError, match=r"server.admin: \[::\]:9091"):
        check_exposure(settings({"admin": ON}, admin="[::]:9091"))
    assert check_exposure(settings({"admin": ASKS}, admin="0.0.0.0:9091")) == []
    assert check_exposure(settings({"admin": ON}, admin="0.0.0.0:9091", admin_token="TOKEN")) == []


@pytest.mark.parametrize(
    ("tls", "server", "words"),
    [
        ({"extproc": OFF}, {"extproc": "0.0.0.0:9002"}, "remove tls.extproc.enabled: false, unless a mesh encrypts"),
        ({}, {"metrics": "0.0.0.0:9090"}, "set server.metrics_token_file or tls.metrics.client_ca, or let a Network"),
        ({"metrics": ON}, {"metrics": "0.0.0.0:9090"}, "shows names of adapters and their traffic"),
        (
            {},
            {"metrics": "0.0.0.0:9090", "metrics_token": "T"},
            "crosses the network as it is; set tls.metrics.enabled",
        ),
        ({}, {"admin": "0.0.0.0:9091", "admin_token_file": "t"}, "crosses the network as it is; set tls.admin.enabled"),
        ({"min_version": "1.3"}, {"extproc": "0.0.0.0:9002"}, "1.3 holds for metrics and admin; gRPC takes 1.2 too"),
    ],
)
def test_what_is_told_at_the_start(tls, server, words):
    (told,) = check_exposure(settings(tls, **server))
    assert words in told


def test_health_is_plain_for_probes_and_told_of_nowhere():
    assert check_exposure(settings(health="0.0.0.0:9003")) == []
