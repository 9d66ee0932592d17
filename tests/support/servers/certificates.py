"""Certificates of an authority of the test's own, for servers and clients that speak TLS."""

from __future__ import annotations

import datetime
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from pathlib import Path

DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates, and writes them and its own as PEM files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, directory.name)])
        self.file = directory / "ca.pem"
        self.file.write_bytes(self._sign(self._name, self._key, 1, "127.0.0.1", is_authority=True))

    def certificate(self, name: str, *, days: int = 1, address: str = "127.0.0.1") -> Path:
        """A file with key and certificate of a server or a client."""
        path, key = self._directory / f"{name}.pem", ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(secret + self._sign(subject, key, days, address))
        return path

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        days: int,
        address: str,
        *,
        is_authority: bool = False,
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 3 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)
