"""Transfers of libcurl on the asyncio loop, against real servers: on asyncio's own loop and on uvloop."""

from __future__ import annotations

import asyncio
import resource
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pycurl
import pytest
import uvloop

from bigcrawl.downloads import transfers as transfers_module
from bigcrawl.downloads.transfers import Transfers, raise_file_limit
from tests.unit.downloads.servers import ok, sends, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine


class Observed(Transfers):
    """Remembers every socket that libcurl ever let the loop watch."""

    def __init__(self) -> None:
        self.sockets: set[int] = set()
        super().__init__()

    def _watch(self, number: int, what: int, fd: int, multi: object, data: object) -> None:
        self.sockets.add(fd)
        super()._watch(number, what, fd, multi, data)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    """Run a scenario on a loop of each kind; what a callback of the loop raises fails the test."""

    def run_on(scenario: Coroutine[Any, Any, None]) -> None:
        broken: list[dict[str, Any]] = []

        async def whole() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
            async with asyncio.timeout(60):
                await scenario

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(whole())
        assert not broken

    return run_on


@asynccontextmanager
async def transferring() -> AsyncIterator[Observed]:
    made = Observed()
    try:
        yield made
    finally:
        made.close()


def handle(url: str, got: list[bytes] | None = None) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.PROXY, "")
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.WRITEFUNCTION, (got if got is not None else []).append)
    return curl


async def body_of(transfers: Transfers, url: str) -> bytes:
    got: list[bytes] = []
    await transfers.run(handle(url, got))
    return b"".join(got)


def test_many_transfers_run_at_a_time(run: Any) -> None:
    """None of 60 servers' answers comes before all 60 requests are there, and each transfer gets its own."""
    together = asyncio.Barrier(60)

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(ok(path.encode()))

    async def scenario() -> None:
        async with serving(answer) as server, transferring() as transfers:
            bodies = await asyncio.gather(*(body_of(transfers, server.url(f"/{n}")) for n in range(60)))
            assert bodies == [b"/%d" % n for n in range(60)]
            assert repr(transfers).startswith("<Transfers running=0 ")

    run(scenario())


def test_each_ends_when_its_answer_is_there(run: Any) -> None:
    """The transfers end in the order of the answers, not of the requests."""
    turns = [asyncio.Event() for _ in range(6)]

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        await turns[int(path[1:])].wait()
        writer.write(ok())

    async def scenario() -> None:
        ended: list[int] = []

        async def one(transfers: Transfers, url: str, number: int) -> None:
            await body_of(transfers, url)
            ended.append(number)
            if number:
                turns[number - 1].set()

        async with serving(answer) as server, transferring() as transfers:
            work = [asyncio.ensure_future(one(transfers, server.url(f"/{n}"), n)) for n in range(6)]
            await server.until(lambda: len(server.paths) == 6)
            turns[5].set()
            await asyncio.gather(*work)
            assert ended == [5, 4, 3, 2, 1, 0]

    run(scenario())


def test_cancelled_transfer_breaks_off_its_connection_and_no_other(run: Any) -> None:
    """Its server sees the end at once; one beside it, in the midst of its body, gets all of its own."""
    rest = asyncio.Event()

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbeg")
        await rest.wait()
        writer.write(b"end")

    async def scenario() -> None:
        async with (
            serving(answer) as one,
            serving(answer, "127.0.0.2") as other,
            transferring() as transfers,
        ):
            cancelled = asyncio.ensure_future(body_of(transfers, one.url()))
            kept = asyncio.ensure_future(body_of(transfers, other.url()))
            await one.until(lambda: one.paths == ["/"])
            await other.until(lambda: other.paths == ["/"])
            cancelled.cancel()
            await one.until(lambda: one.open == 0)
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            rest.set()
            assert await kept == b"begend"
            assert not transfers.running_count

    run(scenario())


def test_handle_of_a_cancelled_transfer_can_be_used_again(run: Any) -> None:
    """Nothing of the transfer that was broken off is left in libcurl's tables."""
    answers = iter([b"", ok(b"second")])

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(next(answers))

    async def scenario() -> None:
        async with serving(answer) as server, transferring() as transfers:
            got: list[bytes] = []
            curl = handle(server.url(), got)
            work = asyncio.ensure_future(transfers.run(curl))
            await server.until(lambda: len(server.paths) == 1)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await transfers.run(curl)
            assert got == [b"second"]

    run(scenario())


def test_connection_is_used_again(run: Any) -> None:
    """Ten pages of one server, one after another, come over one connection."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, transferring() as transfers:
            for _ in range(10):
                await body_of(transfers, server.url())
            assert (server.accepted, len(server.paths)) == (1, 10)

    run(scenario())


def test_connections_are_used_again_whichever_pool_a_host_is_in(run: Any) -> None:
    """Forty hosts in sixteen pools, each asked three times at the same time as the others: one connection each."""
    hosts = [f"127.0.3.{n}" for n in range(1, 41)]

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            servers = [await stack.enter_async_context(serving(sends(ok()), host)) for host in hosts]
            transfers = await stack.enter_async_context(transferring())
            for _ in range(3):
                await asyncio.gather(*(transfers.run(handle(s.url()), h) for s, h in zip(servers, hosts, strict=True)))
            assert [(server.accepted, len(server.paths)) for server in servers] == [(1, 3)] * 40

    run(scenario())


def test_closing_leaves_nothing_on_the_loop(run: Any) -> None:
    """Idle connections are closed, their sockets unwatched, and no timer fires into a closed multi."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with serving(sends(ok())) as server:
            async with transferring() as transfers:
                await asyncio.gather(*(body_of(transfers, server.url()) for _ in range(5)))
                assert server.open > 0
                poll = transfers._poll.fileno()
            assert transfers.sockets
            assert not any(loop.remove_reader(fd) or loop.remove_writer(fd) for fd in transfers.sockets)
            assert not transfers._watched
            assert transfers._poll.closed
            assert not loop.remove_reader(poll)
            assert all(pool._timer is None for pool in transfers._pools)
            await server.until(lambda: server.open == 0)

    run(scenario())


def test_idle_connections_are_bounded(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that was idle longest is closed when there are too many; the latest is used again."""
    monkeypatch.setattr(transfers_module, "IDLE_MAX", 2)
    monkeypatch.setattr(transfers_module, "POOLS", 1)

    async def scenario() -> None:
        async with (
            serving(sends(ok()), "127.0.0.1") as a,
            serving(sends(ok()), "127.0.0.2") as b,
            serving(sends(ok()), "127.0.0.3") as c,
            serving(sends(ok()), "127.0.0.4") as d,
            transferring() as transfers,
        ):
            for server in (a, b, c, d):
                await body_of(transfers, server.url())
            await a.until(lambda: a.open == 0)
            await b.until(lambda: b.open == 0)
            assert (c.open, d.open) == (1, 1)
            await body_of(transfers, d.url())
            assert d.accepted == 1

    run(scenario())


def test_failure_tells_its_code_and_words(run: Any) -> None:
    """A transfer that fails raises libcurl's code; those beside it end well."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, serving(sends(), "127.0.0.2") as gone, transferring() as transfers:
            url = gone.url()
            await gone.hang_up()
            cut = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", closes=True)
            async with serving(cut, "127.0.0.3") as short:
                work = (body_of(transfers, u) for u in (server.url(), short.url(), "http://127.0.0.9:1/", url + "x"))
                fine, lost, refused, silent = await asyncio.wait_for(_outcomes(*work), 60)
            assert fine == b"ok"
            assert isinstance(lost, pycurl.error)
            assert lost.args[0] == pycurl.E_PARTIAL_FILE
            assert isinstance(refused, pycurl.error)
            assert refused.args[0] == pycurl.E_COULDNT_CONNECT
            assert silent is None, "a server that says nothing is waited for"

    async def _outcomes(*work: Coroutine[Any, Any, bytes]) -> list[Any]:
        tasks = [asyncio.ensure_future(one) for one in work]
        await asyncio.wait(tasks[:3])
        tasks[3].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return [*results[:3], None if isinstance(results[3], asyncio.CancelledError) else results[3]]

    run(scenario())


def test_callback_that_raises_ends_its_own_transfer(run: Any) -> None:
    """What a write callback refuses is an error of its transfer, and of no other."""

    async def scenario() -> None:
        async with serving(sends(ok(b"x" * 50_000))) as server, transferring() as transfers:
            refusing = handle(server.url())
            refusing.setopt(pycurl.WRITEFUNCTION, lambda data: 0)
            beside = asyncio.ensure_future(body_of(transfers, server.url()))
            with pytest.raises(pycurl.error) as caught:
                await transfers.run(refusing)
            assert caught.value.args[0] == pycurl.E_WRITE_ERROR
            assert len(await beside) == 50_000

    run(scenario())


def test_process_may_open_as_many_files_as_it_may() -> None:
    """The soft limit becomes the hard one, and its number is told."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard))
    assert raise_file_limit() == hard
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
