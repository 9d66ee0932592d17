"""rediss://: TLS in front of a real Redis, with certificates that fit and others that do not."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.tls import tls_fault
from tests.support.redis_servers.client_runs import append, opened
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.servers.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis(aof=False) as made:
        yield made


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@contextlib.asynccontextmanager
async def tls_in_front(
    server: PrivateRedis, certificate: Path, *, clients_of: Path | None = None
) -> AsyncIterator[str]:
    """Where TLS is spoken; with `clients_of`, to clients with a certificate of that authority alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    if clients_of is not None:
        context.load_verify_locations(clients_of)
        context.verify_mode = ssl.CERT_REQUIRED

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(server.socket_path)
        await asyncio.gather(pump(reader, to_server), pump(from_server, writer))

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()


def reset_without_reason(plain: socket.socket, context: ssl.SSLContext) -> None:
    """Take part in the handshake until the client's certificate is refused; do not say so."""
    received, alert = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, alert, server_side=True)
    with contextlib.suppress(ssl.SSLCertVerificationError):
        while piece := plain.recv(1 << 16):
            received.write(piece)
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            plain.sendall(alert.read())
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextlib.contextmanager
def strict_server(certificate: Path, clients_of: Path, *, resets: int = 0) -> Iterator[str]:
    """Where clients must have a certificate of that authority. It says so as Redis does; asyncio's servers do not.

    The first so many connections are reset before it is read, as may happen to a client that has sent a command.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(clients_of))
    context.load_cert_chain(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            for number in itertools.count():
                plain, _ = listener.accept()
                with plain, contextlib.suppress(OSError):
                    if number < resets:
                        reset_without_reason(plain, context)
                        continue
                    with contextlib.suppress(ssl.SSLError):
                        context.wrap_socket(plain.dup(), server_side=True)
                    plain.shutdown(socket.SHUT_WR)
                    while plain.recv(1 << 16):
                        pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


async def refusal(url: str) -> str:
    async with opened(url) as client:
        with pytest.raises(ConfigError) as error:
            await client.ping()
    said = str(error.value)
    assert "\n" not in said
    return said


def test_calls_work_over_tls_with_and_without_a_client_certificate(
    server: PrivateRedis, authority: Authority, crawl_name: str
) -> None:
    partition = PartitionKeys(crawl_name, 1)

    async def work() -> None:
        mine = authority.certificate("client")
        trusted = f"ssl_ca_certs={authority.file}"
        asked = f"{trusted}&ssl_certfile={mine}&ssl_keyfile={mine}"
        for number, (clients_of, options) in enumerate(((None, trusted), (authority.file, asked)), 1):
            async with (
                tls_in_front(server, authority.certificate("server"), clients_of=clients_of) as place,
                opened(f"rediss://{place}/0?{options}") as client,
            ):
                assert await client.run([append(partition, number)]) == [True]

    asyncio.run(work())


def test_servers_certificate_that_does_not_fit_is_an_error_of_the_settings(
    server: PrivateRedis, authority: Authority, tmp_path: Path
) -> None:
    """Of another authority, expired, or for another host: waiting would not help."""
    other = Authority(tmp_path / "other")

    async def work() -> None:
        for certificate, words in (
            (other.certificate("server"), "unable to get local issuer certificate"),
            (authority.certificate("old", days=-1), "certificate has expired"),
            (authority.certificate("elsewhere", address="127.0.0.9"), "IP address mismatch"),
        ):
            async with tls_in_front(server, certificate) as place:
                said = await refusal(f"rediss://{place}/0?ssl_ca_certs={authority.file}")
                assert words in said
                assert "ssl_ca_certs=<file>" in said

    asyncio.run(work())


def test_sentinels_with_certificates_that_do_not_fit_are_an_error_of_the_settings(
    server: PrivateRedis, authority: Authority, tmp_path: Path
) -> None:
    """If one of them is only away, it is waited for."""
    other = Authority(tmp_path / "other")

    async def work() -> None:
        async with tls_in_front(server, other.certificate("sentinel")) as place:
            trusted = f"crawls/0?ssl_ca_certs={authority.file}"
            assert "unable to get local issuer" in await refusal(f"rediss+sentinel://{place},{place}/{trusted}")
            async with opened(f"rediss+sentinel://{place},127.0.0.1:1/{trusted}") as client:
                with pytest.raises(TransientStoreError, match="No master found"):
                    await client.ping()

    asyncio.run(work())


def test_an_incomplete_certificate_is_to_be_issued_anew(authority: Authority, server: PrivateRedis) -> None:
    """Python asks for what RFC 5280 does since 3.13; here whatever Python it is."""
    context = ssl.create_default_context(cafile=str(authority.file))
    context.verify_flags |= ssl.VERIFY_X509_STRICT

    async def fault(certificate: Path) -> str | None:
        async with tls_in_front(server, certificate) as place:
            host, port = place.split(":")
            try:
                _, writer = await asyncio.open_connection(host, int(port), ssl=context)
            except ssl.SSLError as error:
                return tls_fault(error)
            writer.transport.abort()
            return "none"

    told = asyncio.run(fault(authority.certificate("old", has_issuer_key=False)))
    assert told is not None
    assert told.startswith(
        "Missing Authority Key Identifier; Python 3.13 and later refuse such a certificate: issue it"
    )
    assert asyncio.run(fault(authority.certificate("server"))) == "none"


def test_client_without_a_certificate_that_is_asked_for_is_told_so(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other").certificate("client")

    with strict_server(authority.certificate("server"), authority.file) as place:
        url = f"rediss://{place}/0?ssl_ca_certs={authority.file}"
        assert "ssl_certfile=<file>" in asyncio.run(refusal(url))
        theirs = f"{url}&ssl_certfile={other}&ssl_keyfile={other}"
        assert "authority of the client certificate" in asyncio.run(refusal(theirs))


def test_reason_that_was_lost_with_the_connection_is_asked_for(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other").certificate("client")

    with strict_server(authority.certificate("server"), authority.file, resets=1) as place:
        url = f"rediss://{place}/0?ssl_ca_certs={authority.file}&ssl_certfile={other}&ssl_keyfile={other}"
        assert "authority of the client certificate" in asyncio.run(refusal(url))


def test_port_without_tls_is_told_so(authority: Authority) -> None:
    async def work() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"-ERR unknown command\r\n")
            writer.close()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        assert "speaks no TLS" in await refusal(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={authority.file}")
        listener.close()

    asyncio.run(work())


@pytest.mark.parametrize("what", ["missing.pem", "no-certificate.pem"])
def test_certificate_file_that_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / "no-certificate.pem").write_text("nothing\n")
    with pytest.raises(ConfigError, match=f"ssl_ca_certs=.*{what}"):
        RedisClient(f"rediss://127.0.0.1:1/0?ssl_ca_certs={tmp_path / what}")
