"""Files of certificates that cannot be used are named, with what is wrong; self-signed ones are what they should be."""

import ssl
import time

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from tls_kit import NAMES, chain

from lorapick.live.tls.certificates import TlsError, authorities, load_pair, self_signed
from lorapick.live.tls.contexts import context


def test_a_pair_is_read_with_its_chain_and_its_end(issuer):
    made = issuer.issue()
    pair = load_pair(issuer.folder / "tls.crt", issuer.folder / "tls.key")
    certificate = x509.load_pem_x509_certificate(chain(made))
    assert pair.chain == chain(made)
    assert pair.not_after == certificate.not_valid_after_utc.timestamp()
    assert pair.not_before <= time.time()


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        (b"", None, "tls.certificate: .*tls.crt has no certificate in PEM form"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", None, "has no certificate in PEM form"),
        (None, b"", "tls.key: .*tls.key has no private key in PEM form"),
        (None, b"\x00\xff", "has no private key in PEM form"),
    ],
)
def test_what_is_no_pem_is_said(issuer, certificate, key, words):
    made = issuer.issue()
    issuer.write(
        chain(made) if certificate is None else certificate, made.private_key_pem.bytes() if key is None else key
    )
    with pytest.raises(TlsError, match=words):
        load_pair(issuer.folder / "tls.crt", issuer.folder / "tls.key")


def test_a_key_of_another_certificate_is_refused(issuer):
    first, other = issuer.issue(), issuer.authority.issue_cert(*NAMES)
    issuer.write(chain(first), other.private_key_pem.bytes())
    with pytest.raises(TlsError, match=r"tls.key is not the key of .*tls.crt; write both anew"):
        load_pair(issuer.folder / "tls.crt", issuer.folder / "tls.key")


def test_an_encrypted_key_is_refused(issuer):
    made = issuer.issue()
    key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    issuer.write(chain(made), locked)
    with pytest.raises(TlsError, match="is encrypted; write it without a password"):
        load_pair(issuer.folder / "tls.crt", issuer.folder / "tls.key")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(TlsError, match=r"tls.certificate: cannot read .*tls.crt \(No such file"):
        load_pair(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(TlsError, match=r"tls.admin.client_ca: cannot read .*ca.crt"):
        authorities(tmp_path / "ca.crt", setting="tls.admin.client_ca")


def test_a_file_without_an_authority_is_refused(tmp_path):
    (tmp_path / "ca.crt").write_text("nothing")
    with pytest.raises(TlsError, match="has no certificate of an authority"):
        authorities(tmp_path / "ca.crt", setting="tls.admin.client_ca")


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
def test_a_self_signed_one_names_this_machine_and_what_was_asked_for(kind):
    pair = self_signed(kind, names=["lorapick.llm.svc", "10.1.2.3"], wall=1_000_000_000.0)
    made = x509.load_pem_x509_certificate(pair.chain)
    named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "lorapick.llm.svc"} <= set(named.get_values_for_type(x509.DNSName))
    assert {"127.0.0.1", "10.1.2.3"} <= {str(each) for each in named.get_values_for_type(x509.IPAddress)}
    assert pair.not_after == made.not_valid_after_utc.timestamp() == 1_000_000_000.0 + 3650 * 86_400
    made.verify_directly_issued_by(made)


def test_openssl_takes_what_we_make():
    pair = self_signed("ecdsa", names=(), wall=time.time())
    made = context(pair, client_ca=trustme.CA().cert_pem.bytes(), min_version="1.3")
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3
    assert len(made.get_ca_certs()) == 1
    with pytest.raises(TlsError, match="OpenSSL does not take"):
        context(pair._replace(key=b""), client_ca=None, min_version="1.2")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_content_of_files_raises_anything_else(tmp_path_factory, certificate, key):
    folder = tmp_path_factory.mktemp("any")
    (folder / "c").write_bytes(b"-----BEGIN CERTIFICATE-----\n" + certificate)
    (folder / "k").write_bytes(key)
    with pytest.raises(TlsError):
        load_pair(folder / "c", folder / "k")
