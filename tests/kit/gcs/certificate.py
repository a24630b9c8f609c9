"""Certificate and credentials that are valid on this machine for one emulator only."""

from __future__ import annotations

import datetime
import json
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.kit.gcs.http_server import HOSTS

_LIFETIME = datetime.timedelta(days=30)


def make_certificate(folder: Path) -> ssl.SSLContext:
    """Writes ``ca.pem`` for the hosts of the emulator, and returns its TLS server side.

    Its private key, ``key.pem``, is readable by the owner only.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Sluice's emulator")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "ca.pem", folder / "key.pem"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.touch(mode=0o600)
    private.write_bytes(_pem(key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return context


def write_credentials(path: Path, token_uri: str) -> None:
    """Writes a key file of a service account that only the emulator accepts.

    Without credentials Beam looks for some on Google's network for half a minute.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.touch(mode=0o600)
    content = {
        "type": "service_account",
        "project_id": "emulated",
        "private_key_id": "1",
        "private_key": _pem(key).decode(),
        "client_email": "rehearsal@emulated.invalid",
        "client_id": "1",
        "token_uri": token_uri,
    }
    path.write_text(json.dumps(content))


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
