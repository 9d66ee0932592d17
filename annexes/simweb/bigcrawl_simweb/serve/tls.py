"""A certificate that nobody has signed, for hosts whose own certificates are not at hand."""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path
from typing import Final

from bigcrawl.exceptions import ConfigError

_DAYS: Final = datetime.timedelta(days=365)


def made_up_context() -> ssl.SSLContext:
    """Return the context of a server whose certificate names no host. Raises ConfigError without `cryptography`."""
    try:
        from cryptography import x509  # of Scrapy's requirements, not ours
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise ConfigError(
            "a proxy for https makes its certificate with cryptography: pip install cryptography"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "simweb")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now - _DAYS, now + _DAYS
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "simweb.pem"
        path.write_bytes(secret + certificate.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(path)
    return context
