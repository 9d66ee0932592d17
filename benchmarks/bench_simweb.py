"""How many pages and look-ups one core of the simulated web serves: it must not be what is measured.

Held fixed: pages of 21 KB, the access log on, 64 connections at a time over 1,000 loopback addresses, no
pipelining. What counts is the CPU that the server's process used, so the client may share its core.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

from benchmarks.simweb_origin import SEED
from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.model.uniform import UniformWeb
from bigcrawl_simweb.serve.access_log import read_log
from bigcrawl_simweb.serve.lookup_log import LookupOutcome, read_lookups

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTS = 1_000
CONNECTIONS = 64
PAGES = 50_000
LOOKUPS = 40_000
LOOKUPS_AT_ONCE = 64
# Several times what a crawler that is three times quicker than IRLbot's fetches with one core.
PREPARED_MIN = 6_000
LOOKUPS_MIN = 5_000
LENGTH = b"Content-Length: "
TICKS = os.sysconf("SC_CLK_TCK")


class Origin(NamedTuple):
    """A running origin, and how to ask what it has used."""

    pid: int
    port: int
    dns_port: int
    log: Path

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def running(shape: str, log: Path) -> Iterator[Origin]:
    logs = [str(log), str(log.with_name("lookups.log"))]
    command = [sys.executable, "-m", "benchmarks.simweb_origin", shape, str(HOSTS), *logs]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port, dns_port = map(int, process.stdout.readline().split())
        try:
            yield Origin(process.pid, port, dns_port, log)
        finally:
            process.terminate()


class Client:
    """One connection: asks for a page, reads it, and asks for the next."""

    def __init__(self, host: int, port: int, target: bytes, pages: int) -> None:
        self.pages_left = pages
        self._target = target
        self.sock = socket.create_connection((address_of(host), port))
        self._host = b"%s:%d" % (address_of(host).encode(), port)
        self._missing_bytes = 0

    def ask(self) -> None:
        self.pages_left -= 1
        self.sock.send(
            b"GET %b HTTP/1.1\r\nHost: %b\r\nAccept: text/html,*/*\r\nAccept-Language: en\r\n"
            b"User-Agent: bench\r\nAccept-Encoding: gzip, deflate\r\n\r\n" % (self._target, self._host)
        )

    def has_page(self, buffer: bytearray) -> bool:
        """Read what there is; whether the page is complete."""
        size = self.sock.recv_into(buffer)
        if not self._missing_bytes:
            assert buffer.startswith(b"HTTP/1.1 200 OK\r\n")
            at = buffer.index(LENGTH, 0, size) + len(LENGTH)
            told = int(buffer[at : buffer.index(b"\r\n", at)])
            self._missing_bytes = buffer.index(b"\r\n\r\n", at) + 4 + told
        self._missing_bytes -= size
        return self._missing_bytes == 0


def fetch(origin: Origin, pages: int, targets: list[bytes], *, pages_a_connection: int) -> float:
    """Fetch that many pages, and return how many the server would with a core of its own in a second."""
    buffer = bytearray(1 << 18)
    clients: dict[int, Client] = {}
    cpu_s = origin.cpu_s()
    done = connected = 0
    with select.epoll() as epoll:

        def connect() -> None:
            nonlocal connected
            host = connected % HOSTS
            client = Client(host, origin.port, targets[host], pages_a_connection)
            client.ask()
            epoll.register(client.sock, select.EPOLLIN)
            clients[client.sock.fileno()] = client
            connected += 1

        for _ in range(CONNECTIONS):
            connect()
        while done < pages:
            for fd, _ in epoll.poll():
                client = clients[fd]
                if not client.has_page(buffer):
                    continue
                done += 1
                if done + len(clients) > pages or not client.pages_left:
                    epoll.unregister(fd)
                    clients.pop(fd).sock.close()
                    if done + len(clients) < pages:
                        connect()
                else:
                    client.ask()
    assert not clients
    return pages / (origin.cpu_s() - cpu_s)


def targets_of(shape: str) -> list[bytes]:
    """The first page of every host."""
    if shape == "uniform":
        return [urlsplit(url).path.encode() for url in UniformWeb(SEED, HOSTS).seeds(80)]
    return [b"/"] * HOSTS


@pytest.mark.benchmark
@pytest.mark.parametrize(("shape", "pages"), [("prepared", PAGES), ("uniform", PAGES), ("plain", PAGES // 5)])
def test_pages_a_core(shape: str, pages: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A core serves several times as many pages as a crawler fetches with one, and every one is in the log."""
    rates = {}
    log = tmp_path / "access.log"
    targets = targets_of(shape)
    with running(shape, log) as origin:
        fetch(origin, HOSTS, targets, pages_a_connection=1)  # warm
        for kind, pages_a_connection in (("kept connections", pages), ("2 pages a connection", 2)):
            started = time.perf_counter()
            rates[kind] = fetch(origin, pages, targets, pages_a_connection=pages_a_connection)
            wall = pages / (time.perf_counter() - started)
            with capsys.disabled():
                print(f"\n{shape}, {kind}: {rates[kind]:,.0f} pages/s a core ({wall:,.0f} a second)", end="")  # noqa: T201
    lines = list(read_log(log))
    assert len(lines) == HOSTS + 2 * pages
    assert {line.status for line in lines} == {200}
    if shape == "prepared":
        assert min(rates.values()) > PREPARED_MIN


@pytest.mark.benchmark
def test_lookups_a_core(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A core resolves several thousand names a second, every one of them another, with the log on."""
    with running("prepared", tmp_path / "access.log") as origin, socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", origin.dns_port))
        cpu_s = origin.cpu_s()
        for first in range(0, LOOKUPS, LOOKUPS_AT_ONCE):
            for number in range(first, first + LOOKUPS_AT_ONCE):
                name = b"h%07d" % number
                sock.send(b"%b\x01\x00\x00\x01%b\x08%b\x07example\0\0\1\0\1" % (name[-2:], bytes(6), name))
            for _ in range(LOOKUPS_AT_ONCE):
                reply = sock.recv(512)
                assert reply[-4:] == socket.inet_aton("127.16.0.1")
        rate = LOOKUPS / (origin.cpu_s() - cpu_s)
    with capsys.disabled():
        print(f"\n{rate:,.0f} look-ups/s a core", end="")  # noqa: T201
    assert sum(lookup.outcome is LookupOutcome.FOUND for lookup in read_lookups(tmp_path / "lookups.log")) == LOOKUPS
    assert rate > LOOKUPS_MIN
