"""Runs the server processes of a simulated web and the resolver, until a signal.

All processes accept from the same sockets and append to the same logs. The first one also runs the resolver, and ends
the others at its own end. If it is killed, they notice the end of a pipe. If one of the others dies, all end, because
otherwise half of the connections would hang.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import ssl
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl_simweb.serve.access_log import AccessLog
from bigcrawl_simweb.serve.lookup_log import LookupLog
from bigcrawl_simweb.serve.resolver import DnsServer
from bigcrawl_simweb.serve.server import SimServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from bigcrawl_simweb.serve.served import ServedWeb

_PARENT_POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """Options for serving a web.

    Attributes:
        processes: all but the first are forks of it.
        dns: address and port of the resolver, port 0 for any free one; None for no resolver.
        parent: a process id; serving ends when that is no longer our parent.
        has_tls: whether to be a proxy for https, too.
    """

    log: Path | None = None
    processes: int = 1
    dns: tuple[str, int] | None = None
    dns_ttl_s: int = 300
    lookup_log: Path | None = None
    parent: int | None = None
    has_tls: bool = False


class ServedPorts(NamedTuple):
    http: int
    dns: int | None


def serve_until_signal(
    web: ServedWeb, sockets: Sequence[socket.socket], serving: ServingOptions, ready: Callable[[ServedPorts], None]
) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent. Call it in a process with a single thread.

    `sockets` are closed at the end. `ready` is called once, in this process, when all ports listen. Raises ConfigError
    if a log or the resolver's port is unusable, or a process has died.
    """
    if serving.processes < 1:
        raise ConfigError(f"processes is {serving.processes}; must be at least 1")
    with ExitStack() as stack:
        log = AccessLog(serving.log) if serving.log else None
        if log:
            stack.callback(log.close)
        lookup_log = LookupLog(serving.lookup_log) if serving.lookup_log else None
        if lookup_log:
            stack.callback(lookup_log.close)
        tls = made_up_context() if serving.has_tls else None

        def server() -> SimServer:
            return SimServer(web, sockets, log, tls)

        others = _fork_others(serving.processes - 1, lambda leader: asyncio.run(_run_follower(server, leader)))
        stack.callback(others.end_processes)
        asyncio.run(_run_leader(web, server, lookup_log, serving, others, ready))


class _OtherProcesses(NamedTuple):
    pids: list[int]
    alive_fd: int

    def end_processes(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in self.pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        os.close(self.alive_fd)


def _fork_others(count: int, serve: Callable[[int], object]) -> _OtherProcesses:
    """Fork processes that run `serve` with a pipe, which closes when this process ends."""
    leader_fd, alive_fd = os.pipe()
    pids = []
    # Block SIGINT until each process handles it, because it would be an error in a process during its fork.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os.close(alive_fd)
            _serve_and_exit(serve, leader_fd, before)
        pids.append(pid)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(leader_fd)
    return _OtherProcesses(pids, alive_fd)


def _serve_and_exit(serve: Callable[[int], object], leader_fd: int, mask: set[int | signal.Signals]) -> NoReturn:
    """Serve in a forked process, without the exit handlers of the first one."""
    status = 1
    try:
        # The first process is interrupted too, and ends this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        serve(leader_fd)
        status = 0
    except (BigcrawlError, OSError) as error:
        print(f"simweb: {error}", file=sys.stderr, flush=True)  # noqa: T201 - the only channel that the process has
    finally:
        os._exit(status)


async def _run_follower(make_server: Callable[[], SimServer], leader_fd: int) -> None:
    ended = _future_of_signals((signal.SIGTERM,))
    asyncio.get_running_loop().add_reader(leader_fd, _set_future, ended)
    server = make_server()
    await server.start()
    await _first_of(ended, server.failed)
    await server.stop()


async def _run_leader(
    web: ServedWeb,
    make_server: Callable[[], SimServer],
    lookup_log: LookupLog | None,
    serving: ServingOptions,
    others: _OtherProcesses,
    ready: Callable[[ServedPorts], None],
) -> None:
    ends = [_future_of_signals((signal.SIGTERM, signal.SIGINT)), *map(_death_of, others.pids)]
    async with AsyncExitStack() as stack:
        server = make_server()
        await server.start()
        stack.push_async_callback(server.stop)
        ends.append(server.failed)
        dns_port = None
        if serving.dns:
            resolver = DnsServer(web, serving.dns_ttl_s, lookup_log)
            await resolver.start(*serving.dns)
            stack.push_async_callback(resolver.stop)
            ends.append(resolver.failed)
            dns_port = resolver.port
        if serving.parent is not None:
            ends.append(asyncio.ensure_future(_parent_is_gone(serving.parent)))
        ready(ServedPorts(server.port, dns_port))
        await _first_of(*ends)


def _future_of_signals(signals: Sequence[signal.Signals]) -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[None] = loop.create_future()
    for number in signals:
        loop.add_signal_handler(number, _set_future, signalled)
    return signalled


def _set_future(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _death_of(pid: int) -> asyncio.Future[None]:
    """Return a future that is done when the process has ended normally, and fails if it died."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    fd = os.pidfd_open(pid)

    def notice() -> None:
        loop.remove_reader(fd)
        os.close(fd)
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if end is None or (end.si_code, end.si_status) == (os.CLD_EXITED, 0):
            _set_future(ended)
        else:
            ended.set_exception(ConfigError(f"server process {pid} has died, exit status or signal {end.si_status}"))

    loop.add_reader(fd, notice)
    return ended


async def _first_of(*ends: asyncio.Future[None]) -> None:
    try:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in done:
            end.result()
    except OSError as error:
        raise ConfigError(f"a log cannot be written: {error.strerror}") from error


async def _parent_is_gone(parent: int) -> None:
    """Return once the parent has ended.

    Polls, because PDEATHSIG would come at the end of the parent's *thread* that started this process.
    """
    while os.getppid() == parent:  # noqa: ASYNC110 - no event reports the end of a parent
        await asyncio.sleep(_PARENT_POLL_S)


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
