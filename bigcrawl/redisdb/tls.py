"""Distinguishes wrong certificates, which need a change of settings, from an unreachable server."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

_ASKED: Final = "set ssl_certfile=<file> and ssl_keyfile=<file> in the URL"
_NO_TLS: Final = "that port speaks no TLS: write redis:// or another port"
_REFUSED: Final = "it does not accept the client certificate in ssl_certfile"
# By OpenSSL's reason, which includes the peer's alert.
_REMEDIES: Final = {
    "CERTIFICATE_VERIFY_FAILED": "set ssl_ca_certs=<file> in the URL to its authority, and the host as its name there",
    "CERTIFICATE_REQUIRED": f"it asks for a client certificate: {_ASKED}",
    "UNKNOWN_CA": "it does not know the authority of the client certificate in ssl_certfile",
    "BAD_CERTIFICATE": _REFUSED,
    "CERTIFICATE_EXPIRED": "the client certificate in ssl_certfile has expired",
    "CERTIFICATE_UNKNOWN": _REFUSED,
    "HANDSHAKE_FAILURE": f"it may ask for a client certificate: {_ASKED}",
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
}


_INCOMPLETE: Final = range(80, 95)
_ISSUE_ANEW: Final = (
    "Python 3.13 and later refuse such a certificate: issue it, or its authority's, anew by RFC 5280,"
    " with key identifiers and, for the authority, key usage"
)

LISTEN_S: Final = 10.0


def check_certificates(connection: AbstractConnection) -> None:
    context = getattr(connection, "ssl_context", None)
    if context is None:
        return
    try:
        context.get()
    except (OSError, ssl.SSLError) as error:
        names = ("ca_certs", "certfile", "keyfile")
        given = [f"ssl_{name}={getattr(context, name)}" for name in names if getattr(context, name, None)]
        raise ValueError(f"cannot read the certificates in {' '.join(given)}: {error}") from None


def tls_fault(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _INCOMPLETE:
            return f"{error.verify_message}; {_ISSUE_ANEW}"
        if isinstance(error, ssl.SSLError):
            reason = next((reason for reason in _REMEDIES if reason in (error.reason or "")), None)
            return None if reason is None else f"{getattr(error, 'verify_message', '') or error}; {_REMEDIES[reason]}"
        error = error.__cause__ or error.__context__
    return None


async def ask_for_fault(connection: AbstractConnection) -> ssl.SSLError | None:
    """Ask again why a server cut off a new TLS connection: a reset may overtake the refusal of a certificate."""
    context = getattr(connection, "ssl_context", None)
    if context is None:
        return None
    host, port = getattr(connection, "host", ""), getattr(connection, "port", 0)
    try:
        async with asyncio.timeout(LISTEN_S):
            reader, writer = await asyncio.open_connection(host, port, ssl=context.get())
            try:
                await reader.read(1)
            finally:
                writer.transport.abort()
                with suppress(OSError):  # else asyncio logs the error
                    await writer.wait_closed()
    except ssl.SSLError as error:
        return error
    except (OSError, TimeoutError):
        return None
    return None
