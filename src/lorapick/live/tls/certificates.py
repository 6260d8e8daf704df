"""Certificates: files that were looked at before they are used, and self-signed ones.

In: PEM files, or names. Out: `Pair`, `authorities`; or `TlsError`, which names the file, what is wrong and the remedy.
Not here: when files are read again (see `live.tls.keeper`).
"""

import datetime
import ipaddress
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lorapick.live.web import BindError, is_ip
from lorapick.model.units import Seconds

_YEARS_10 = datetime.timedelta(days=3650)
_RSA_BITS = 3072
_SKEW = datetime.timedelta(hours=1)
"""Clocks of others may be behind ours."""


class TlsError(BindError):
    """A certificate, a key or an authority cannot be used."""


class Pair(NamedTuple):
    """A certificate with its chain, and its key: they fit each other."""

    chain: bytes
    """PEM."""
    key: bytes
    not_after: Seconds
    """Unix time."""
    not_before: Seconds = 0.0


def load_pair(certificate: Path, key: Path) -> Pair:
    """Read and check; whether it is valid now is the caller's to judge.

    Raises:
        TlsError: a file is not there, is no PEM, is encrypted, or the two do not belong together.
    """
    chain, secret = _content(certificate, "tls.certificate"), _content(key, "tls.key")
    try:
        first = x509.load_pem_x509_certificates(chain)[0]
        theirs = first.public_key()
    except (ValueError, IndexError, UnsupportedAlgorithm) as error:
        raise TlsError(f"tls.certificate: {certificate} has no certificate in PEM form ({error})") from None
    try:
        ours = serialization.load_pem_private_key(secret, password=None).public_key()
    except TypeError:
        raise TlsError(f"tls.key: {key} is encrypted; write it without a password") from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(f"tls.key: {key} has no private key in PEM form ({error})") from None
    if ours != theirs:
        raise TlsError(f"tls.key: {key} is not the key of {certificate}; write both anew, from one issue")
    after, before = first.not_valid_after_utc.timestamp(), first.not_valid_before_utc.timestamp()
    return Pair(chain, secret, not_after=after, not_before=before)


def authorities(file: Path, *, setting: str) -> bytes:
    """PEM of the authorities in a file. Raises TlsError when there is none."""
    content = _content(file, setting)
    try:
        x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise TlsError(f"{setting}: {file} has no certificate of an authority in PEM form ({error})") from None
    return content


def self_signed(kind: str, *, names: Iterable[str], wall: Seconds) -> Pair:
    """One for this machine and these names, for ten years.

    Args:
        kind: `ecdsa` or `rsa`.
        names: host names and IP addresses beside this machine's own.
        wall: Unix time.
    """
    rsa_key = kind == "rsa"
    key = rsa.generate_private_key(65_537, _RSA_BITS) if rsa_key else ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.fromtimestamp(int(wall), datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lorapick")])
    own = dict.fromkeys(("localhost", "127.0.0.1", "::1", socket.gethostname(), *names))
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _YEARS_10)
        .add_extension(x509.SubjectAlternativeName([_general(each) for each in own if each]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        # Also its own authority, so that who wants to check it can be given it as such.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = built.public_bytes(serialization.Encoding.PEM)
    return Pair(chain, secret, not_after=(now + _YEARS_10).timestamp(), not_before=(now - _SKEW).timestamp())


def _general(name: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_address(name)) if is_ip(name) else x509.DNSName(name)


def _content(file: Path, setting: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"{setting}: cannot read {file} ({error.strerror or error})") from None
