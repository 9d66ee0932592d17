"""The resolver as an independent client knows it: dnspython asks it over real sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.resolver
import pytest

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl_simweb.basics.name_record import NameFault
from bigcrawl_simweb.serve.lookup_log import Lookup, LookupLog, LookupOutcome, read_lookups
from bigcrawl_simweb.serve.resolver import DnsServer
from tests.annexes.simweb.scripted import TIMEOUT_S, ScriptedWeb, heard_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HERE = "127.0.0.1"
NAMES: dict[str, str | NameFault] = {
    "www.sim.example": "127.16.0.1",
    "a.b.c.d.sim.example": "127.254.255.254",
    "ill.example": NameFault.SERVFAIL,
    "mute.example": NameFault.SILENT,
}


class WildWeb(ScriptedWeb):
    """Any name below farm.example exists."""

    def address_of(self, name: str) -> str | NameFault | None:
        return "127.16.0.7" if name.endswith(".farm.example") else super().address_of(name)


@dataclass
class Running:
    """A resolver in a thread of its own."""

    resolver: DnsServer
    log: Path
    stop: Callable[[], None]

    @property
    def port(self) -> int:
        return self.resolver.port

    def client(self) -> dns.resolver.Resolver:
        client = dns.resolver.Resolver(configure=False)
        client.nameservers = [HERE]
        client.port = self.port
        client.lifetime = TIMEOUT_S
        return client

    def ask(self, name: str, record_type: str = "A", *, over_tcp: bool = False) -> dns.message.Message:
        ask = dns.query.tcp if over_tcp else dns.query.udp
        return ask(dns.message.make_query(name, record_type), HERE, TIMEOUT_S, self.port)


@contextmanager
def running(directory: Path, ttl_s: int = 300) -> Iterator[Running]:
    log = LookupLog(directory / "lookups.log")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> DnsServer:
        resolver = DnsServer(WildWeb({}, NAMES), ttl_s, log)
        await resolver.start(HERE)
        return resolver

    resolver = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    with ExitStack() as stack:
        stack.callback(log.close)
        stack.callback(loop.close)
        stack.callback(thread.join)
        stack.callback(lambda: loop.call_soon_threadsafe(loop.stop))
        stack.callback(lambda: asyncio.run_coroutine_threadsafe(resolver.stop(), loop).result())
        yield Running(resolver, directory / "lookups.log", stack.close)


@pytest.fixture
def resolver(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as one:
        yield one


@pytest.mark.parametrize("over_tcp", [False, True])
@pytest.mark.parametrize("name", ["www.sim.example", "WwW.Sim.EXAMPLE.", "a.b.c.d.sim.example"])
def test_names_have_the_addresses_that_the_web_says(resolver: Running, name: str, over_tcp: bool):
    """A name leads to its host however it is spelled; the reply has the question as it was asked."""
    address = NAMES[name.lower().removesuffix(".")]
    assert [record.address for record in resolver.client().resolve(name, "A", tcp=over_tcp)] == [address]
    reply = resolver.ask(name, over_tcp=over_tcp)
    assert reply.question[0].name.to_text(omit_final_dot=True) == name.removesuffix(".")
    assert reply.answer[0].ttl == 300


def test_wildcard_names_resolve(resolver: Running):
    """A spam farm's names need not be listed anywhere."""
    for label in ("x", "y.z", "a_b-c", "9" * 63):
        assert resolver.client().resolve(f"{label}.farm.example")[0].address == "127.16.0.7"


@pytest.mark.parametrize("name", ["sim.example", "nobody", "www.sim.example.org", "www\\.sim.example", "."])
def test_other_names_do_not_exist(resolver: Running, name: str):
    """A name that the web does not have is denied, and for how long that may be remembered is said."""
    with pytest.raises(dns.resolver.NXDOMAIN):
        resolver.client().resolve(name, search=False)
    reply = resolver.ask(name)
    assert (reply.authority[0].ttl, reply.authority[0][0].minimum) == (300, 300)


@pytest.mark.parametrize("record_type", ["AAAA", "MX", "TXT", "HTTPS"])
def test_names_have_addresses_of_version_4_only(resolver: Running, record_type: str):
    """A name that exists has no record of another type, which is not the same as that it does not exist."""
    with pytest.raises(dns.resolver.NoAnswer):
        resolver.client().resolve("www.sim.example", record_type)
    with pytest.raises(dns.resolver.NXDOMAIN):
        resolver.client().resolve("nobody", record_type, search=False)


def test_name_may_fail(resolver: Running):
    """A name's fault is answered with SERVFAIL."""
    assert resolver.ask("ill.example").rcode() is dns.rcode.SERVFAIL
    with pytest.raises(dns.resolver.NoNameservers):
        resolver.client().resolve("ill.example")


def test_name_may_be_met_with_silence_and_the_next_is_answered(resolver: Running):
    """No reply comes for a silent name: the first that does is to the query after it, on either transport."""
    mute, other = (dns.message.make_query(name, "A").to_wire() for name in ("mute.example", "www.sim.example"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT_S)
        for query in (mute, other):
            sock.sendto(query, (HERE, resolver.port))
        assert sock.recv(512)[:2] == other[:2]
    with socket.create_connection((HERE, resolver.port), TIMEOUT_S) as sock:
        # In pieces, as a stream may come.
        for piece in (b"\0", bytes([len(mute)]) + mute[:5], mute[5:] + b"\0", bytes([len(other)]) + other):
            sock.sendall(piece)
        (size,) = struct.unpack(">H", heard_bytes(sock, 2))
        assert heard_bytes(sock, size)[:2] == other[:2]


@pytest.mark.parametrize(
    ("query", "rcode"),
    [
        (struct.pack(">6H", 7, 0x0100, 0, 0, 0, 0), dns.rcode.FORMERR),  # no question
        (struct.pack(">6H", 7, 0x0100, 2, 0, 0, 0) + b"\1a\0\0\1\0\1" * 2, dns.rcode.FORMERR),
        (struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + b"\1a\0\0\1", dns.rcode.FORMERR),  # ends early
        (struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + b"\3ab", dns.rcode.FORMERR),
        (struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", dns.rcode.FORMERR),  # points at itself
        (struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + b"\1a" * 128 + b"\0\0\1\0\1", dns.rcode.FORMERR),  # too long
        (struct.pack(">6H", 7, 0x2800, 1, 0, 0, 0) + b"\1a\0\0\6\0\1", dns.rcode.NOTIMP),  # an update
        (struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + b"\1a\0\0\1\0\3", dns.rcode.REFUSED),  # another class
    ],
)
def test_queries_that_cannot_be_read_are_refused(resolver: Running, query: bytes, rcode: dns.rcode.Rcode):
    """A malformed query is told so, and what is none at all is passed over in silence."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT_S)
        for nothing in (b"", b"short", struct.pack(">6H", 7, 0x8000, 1, 0, 0, 0) + b"\1a\0\0\1\0\1"):
            sock.sendto(nothing, (HERE, resolver.port))
        sock.sendto(query, (HERE, resolver.port))
        reply = dns.message.from_wire(sock.recv(512))
    assert (reply.id, reply.rcode()) == (7, rcode)
    resolver.stop()
    assert resolver.resolver.outcomes == {LookupOutcome.REFUSED: 1}


def test_lookups_are_counted_and_logged(resolver: Running):
    """Every query is in the log with its name, type, transport and outcome, and counted by outcome."""
    resolver.ask("WWW.sim.example")
    resolver.ask("www.sim.example", "AAAA", over_tcp=True)
    resolver.ask("ill.example")
    resolver.ask("no\\009body\\.x")
    with pytest.raises(dns.exception.Timeout):
        dns.query.udp(dns.message.make_query("mute.example", "A"), HERE, 0.01, resolver.port)
    resolver.ask("y.farm.example", "MX")
    resolver.stop()
    lookups = list(read_lookups(resolver.log))
    assert [(lookup.transport, lookup.name, lookup.record_type, lookup.outcome) for lookup in lookups] == [
        ("udp", "www.sim.example", "A", LookupOutcome.FOUND),
        ("tcp", "www.sim.example", "AAAA", LookupOutcome.NO_DATA),
        ("udp", "ill.example", "A", LookupOutcome.SERVFAIL),
        ("udp", "no\\009body\\046x", "A", LookupOutcome.NO_NAME),
        ("udp", "mute.example", "A", LookupOutcome.SILENT),
        ("udp", "y.farm.example", "MX", LookupOutcome.NO_DATA),
    ]
    assert all(lookup.client.startswith("127.0.0.1:") for lookup in lookups)
    times = [lookup.time_ms for lookup in lookups]
    assert times == sorted(times)
    outcomes = resolver.resolver.outcomes
    assert (outcomes.total(), outcomes[LookupOutcome.NO_DATA], outcomes[LookupOutcome.SILENT]) == (6, 2, 1)


def test_ttl_is_a_setting(tmp_path: Path):
    """How long an answer and a denial may be remembered is the user's to say, down to not at all."""
    with running(tmp_path, ttl_s=0) as resolver:
        assert resolver.ask("www.sim.example").answer[0].ttl == 0
        assert resolver.ask("nobody").authority[0][0].minimum == 0


def test_taken_port_is_a_clear_error(resolver: Running):
    """A second resolver on the same port says so, and leaves no socket open."""

    async def start() -> None:
        await DnsServer(ScriptedWeb({})).start(HERE, resolver.port)

    with pytest.raises(ConfigError, match=f"port {resolver.port} of {HERE} cannot be used: .*; stop what uses it"):
        asyncio.run(start())


def test_damaged_log_is_an_error(tmp_path: Path):
    """A line whose outcome is none names the file and the place."""
    path = tmp_path / "lookups.log"
    log = LookupLog(path)
    log.write(Lookup(5, "c", "udp", "a", "A", LookupOutcome.FOUND))
    log.close()
    assert list(read_lookups(path)) == [Lookup(5, "c", "udp", "a", "A", LookupOutcome.FOUND)]
    path.write_bytes(path.read_bytes().replace(b"found", b"fond"))
    with pytest.raises(CorruptionError):
        list(read_lookups(path))
