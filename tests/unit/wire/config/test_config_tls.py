"""The section `tls`, and the tokens of `server`."""

import pytest

from lorapick.model.tls import SurfaceTls, TlsSettings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.settings import parse_settings

PODS = "discovery: {pods: [{name: a, address: '10.0.0.1:8000'}]}\n"


def parsed(text):
    return parse_settings(text + PODS, file="l.yaml", policies=["weighted"])


def test_a_folder_stands_for_two_files():
    found = parsed("tls: {folder: /certs/, extproc: {client_ca: ca.crt}}\nserver: {extproc: '0.0.0.0:9002'}\n").tls
    assert found == TlsSettings(
        certificate="/certs/tls.crt", key="/certs/tls.key", extproc=SurfaceTls(client_ca="ca.crt")
    )


def test_every_key():
    text = (
        "tls: {names: [lorapick.llm.svc, 10.0.0.2], self_signed: rsa, min_version: '1.3', reload_every: 1s, "
        "extproc: {enabled: false}, metrics: {enabled: true}, admin: {client_ca: a.crt}}\n"
    )
    assert parsed(text).tls == TlsSettings(
        names=("lorapick.llm.svc", "10.0.0.2"),
        self_signed="rsa",
        min_version="1.3",
        reload_every=1.0,
        extproc=SurfaceTls(enabled=False),
        metrics=SurfaceTls(enabled=True),
        admin=SurfaceTls(client_ca="a.crt"),
    )
    assert parsed("").tls == TlsSettings()
    assert parsed("tls: {certificate: a, key: b}\n").tls == TlsSettings(certificate="a", key="b")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tls: {certificate: a}", "must have both certificate and key, or neither"),
        ("tls: {key: a}", "must have both certificate and key, or neither"),
        ("tls: {folder: a, key: b, certificate: c}", "there are certificate or key too"),
        ("tls: {folder: a, names: [x]}", "tls.names: is of a self-signed certificate, and there are files"),
        ("tls: {names: ['a b']}", "must be a host name or an IP address"),
        ("tls: {min_version: '1.1'}", 'must be "1.2" or "1.3"'),
        ("tls: {reload_every: 0s}", "tls.reload_every"),
        ("tls: {self_signed: dsa}", 'must be "ecdsa" or "rsa"'),
        ("tls: {admin: {enabled: false, client_ca: a}}", "asks for certificates where TLS is off"),
        ("tls: {health: {enabled: true}}", "unknown key"),
        ("tls: {extproc: {enabled: true}}", "wants TLS on the socket unix:run/extproc.sock"),
        ("server: {admin_token: T, admin_token_file: f}", "there is admin_token_file too; keep one of both"),
        ("server: {metrics_token: T, metrics_token_file: f}", "there is metrics_token_file too"),
    ],
)
def test_what_is_refused(text, words):
    with pytest.raises(ConfigError) as caught:
        parsed(text + "\n")
    assert words in str(caught.value)
