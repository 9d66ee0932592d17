from __future__ import annotations

import asyncio
import http.client
import logging
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import pytest

from bigcrawl_simweb.basics.answer import Answer, Fault, Framing
from bigcrawl_simweb.check.checker import CheckRules, Exchange, check_exchanges
from bigcrawl_simweb.model.web import Web
from bigcrawl_simweb.serve.access_log import read_exchanges
from bigcrawl_simweb.serve.connection import ServerConnection
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.server import SimServer
from tests.annexes.simweb.conftest import Served
from tests.annexes.simweb.scripted import (
    A,
    Asked,
    B,
    ScriptedWeb,
    connected,
    hear,
    heard_bytes,
    heard_head,
    request,
)
from tests.annexes.simweb.support import Crawler

Serve = Callable[..., Served]
OK = Answer(200, (), b"fine")


def get(connection: http.client.HTTPConnection, target: str, method: str = "GET") -> http.client.HTTPResponse:
    connection.request(method, target)
    answer = connection.getresponse()
    answer.read()
    return answer


def exchanges(served: Served) -> list[Exchange]:
    served.stop()
    return list(read_exchanges(served.log))


def test_brute_force_crawl_finds_exactly_the_known_answer(serve: Serve):
    """A crawler that reads the HTML with other parsers finds what `reachable` says, and is found polite."""
    served = serve(Web(11, 8, 12, slow_ms=10))
    seeds = served.web.seeds(served.port)
    expected = served.web.reachable(served.port, seeds)
    assert Crawler("bigcrawl").crawl(seeds) == expected
    rules = CheckRules(expected=expected, port=served.port, allows=served.web.allows)
    report = check_exchanges(exchanges(served), rules)
    assert report.ok, str(report)
    assert (report.coverage, report.robots_requests) == (1.0, 8)


def test_crawl_that_ignores_robots_finds_the_other_answer(serve: Serve):
    """Without robots.txt the closed parts are found too, and the checker holds them against the crawler."""
    served = serve(Web(12, 8, 12, slow_ms=0))
    seeds = served.web.seeds(served.port)
    expected = served.web.reachable(served.port, seeds, obey_robots=False)
    assert Crawler("bigcrawl", obey_robots=False).crawl(seeds) == expected
    rules = CheckRules(expected=expected, port=served.port, allows=served.web.allows)
    report = check_exchanges(exchanges(served), rules)
    assert report.disallowed
    assert len(report.robots_not_first) == 8


def test_connection_is_kept_and_host_is_the_address_connected_to(serve: Serve):
    """Requests share a connection; its local address says which host is asked, not the Host header."""
    served = serve(Web(1, 2, 20))
    connection = http.client.HTTPConnection(B, served.port)
    for target in ("/", "/robots.txt", "/nothing"):
        connection.request("GET", target, headers={"Host": A})
        answer = connection.getresponse()
        assert answer.read() == served.web.answer(B, target, served.port).body
        assert answer.status == (404 if target == "/nothing" else 200)
        assert answer.headers["Connection"] == "keep-alive"
    connection.close()
    lines = served.stopped_log()
    assert [(line.host, line.target, line.status) for line in lines] == [
        (B, "/", 200),
        (B, "/robots.txt", 200),
        (B, "/nothing", 404),
    ]
    assert len({line.client for line in lines}) == 1
    assert all(line.start_ms <= line.end_ms for line in lines)
    assert all(line.sent_bytes > 100 for line in lines)


def test_redirects_name_their_target(serve: Serve):
    """A redirect has a Location, and nothing follows it on the server's side."""
    served = serve(Web(1, 2, 20))
    connection = http.client.HTTPConnection(A, served.port)
    near, far = get(connection, "/go/1"), get(connection, "/go/2")
    connection.close()
    assert (near.status, far.status) == (302, 301)
    assert near.headers["Location"].startswith("../")
    assert far.headers["Location"].startswith(f"http://{B}:{served.port}/")


def test_head_has_the_headers_of_get_and_no_body(serve: Serve):
    """HEAD tells the length of the body and the connection stays usable."""
    served = serve(Web(1, 1, 20))
    connection = http.client.HTTPConnection(A, served.port)
    head = get(connection, "/", "HEAD")
    whole = get(connection, "/")
    connection.close()
    assert head.headers["Content-Length"] == whole.headers["Content-Length"] != "0"
    assert [line.method for line in served.stopped_log()] == ["HEAD", "GET"]


def test_other_methods_are_refused_and_their_bodies_passed_over(serve: Serve):
    """A POST is answered 405 and its body is not taken for the next request."""
    served = serve(Web(1, 1, 20))
    connection = http.client.HTTPConnection(A, served.port)
    connection.request("POST", "/", body=b"GET /trap HTTP/1.1\r\n\r\n" * 5000)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 405
    assert get(connection, "/").status == 200
    connection.close()
    assert [line.target for line in served.stopped_log()] == ["/", "/"]


def test_slow_page_takes_its_time(serve: Serve):
    """A slow page's end is its delay after its start in the log."""
    served = serve(Web(1, 1, 20, slow_ms=40))
    connection = http.client.HTTPConnection(A, served.port)
    assert get(connection, "/topic-0/item-3.html").status == 200
    connection.close()
    (line,) = served.stopped_log()
    assert line.end_ms - line.start_ms >= 40


def test_requests_sent_ahead_are_answered_in_order_and_seen_as_concurrent(serve: Serve):
    """Pipelined requests start when they arrive, so the checker sees that they did not wait."""
    served = serve(Web(1, 1, 20, slow_ms=20))
    slow, quick, last = request("/topic-0/item-3.html"), request("/"), request("/", Connection="close")
    heard = hear(served.port, slow + quick * 39 + last)
    assert heard.body.count(b"HTTP/1.1 200 OK\r\n") == 40
    log = exchanges(served)
    assert [exchange.target for exchange in log] == ["/topic-0/item-3.html"] + ["/"] * 40
    assert check_exchanges(log, CheckRules()).concurrent


def test_client_that_leaves_early_is_logged_as_such(serve: Serve):
    """An exchange whose client has gone before its answer is in the log, as 499."""
    served = serve(Web(1, 1, 20, slow_ms=60_000))
    with socket.create_connection((A, served.port)) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /topic-0/item-3.html HTTP/1.1\r\nHost: x\r\n\r\n")
        # The first answer shows that the server has read both requests, which came in one piece.
        sock.recv(1)
    assert [(line.target, line.status) for line in served.stopped_log()] == [
        ("/", 200),
        ("/topic-0/item-3.html", 499),
    ]


def test_answer_that_is_not_read_does_not_end(serve: Serve):
    """An exchange ends when the kernel has its last byte: a reader that stalls holds its exchange open."""
    served = serve(Web(1, 1, 20))
    count = 2_000
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((A, served.port))
        sock.setblocking(False)
        request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        sent = sock.send(request * count) // len(request)
        # Far more than the kernel's buffers hold is asked for and nothing is read, so most is never answered.
        other = http.client.HTTPConnection(A, served.port)
        assert get(other, "/robots.txt").status == 404
        other.close()
    log = served.stopped_log()
    assert sent * 10_000 > 10_000_000
    ended = [line for line in log if line.target == "/" and line.status == 200]
    assert len(ended) < sent
    assert any(line.status == 499 for line in log)


def test_malformed_requests_are_answered_logged_and_the_end(serve: Serve):
    """After a request that cannot be read the connection closes: where the next starts is unknown."""
    served = serve(Web(1, 1, 20))
    assert hear(served.port, b"rubbish\r\n\r\n" + request("/")).head.startswith("HTTP/1.1 400 ")
    assert hear(served.port, b"GET /" + b"x" * 20_000).head.startswith("HTTP/1.1 431 ")
    with connected(served.port) as sock:
        sock.sendall(b"GET /unfinished HTTP/1.1\r\n")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
    assert [(line.method, line.target, line.status) for line in served.stopped_log()] == [
        ("-", "-", 400),
        ("-", "-", 431),
    ]


def test_connection_closes_when_asked_to(serve: Serve):
    """Connection: close and HTTP/1.0 end the connection after the answer."""
    served = serve(Web(1, 1, 20))
    for data in (request("/", Connection="close"), b"GET / HTTP/1.0\r\n\r\n"):
        heard = hear(served.port, data)
        assert "Connection: close" in heard.head
        assert heard.body.endswith(b"</html>\n")


def test_socket_for_all_addresses_serves_every_host_and_no_other(serve: Serve):
    """Tied to the loopback device, one socket tells its hosts apart; an address of no host is misdirected."""
    served = serve(Web(1, 3, 20), device="lo")
    statuses = []
    for address in (A, "127.16.0.3", "127.16.0.4"):
        connection = http.client.HTTPConnection(address, served.port)
        try:
            statuses.append(get(connection, "/").status)
        except ConnectionRefusedError:
            statuses.append(421)  # each host has a socket of its own here
        connection.close()
    assert statuses == [200, 200, 421]


def test_web_is_told_what_was_asked_and_when(serve: Serve):
    """Host, target, port, time of arrival and conditional headers reach the web; the log has the same time."""
    web = ScriptedWeb({"/a?b": OK})
    served = serve(web)
    conditions = {"If-None-Match": '"7"', "If-Modified-Since": "Sat, 21 Nov 2026 10:00:00 GMT"}
    before_ms = time.time_ns() // 1_000_000
    hear(
        served.port,
        request("/a?b", **conditions, Accept="text/html") + request("/a?b", "HEAD", Connection="close"),
    )
    after_ms = time.time_ns() // 1_000_000
    first, second = served.stopped_log()
    assert web.asked == [
        Asked(A, "/a?b", served.port, first.start_ms, conditions),
        Asked(A, "/a?b", served.port, second.start_ms, {}),
    ]
    # The server's clock does not follow the machine's where that is being corrected.
    assert before_ms - 1000 <= first.start_ms <= first.end_ms <= after_ms + 1000


class BusyWeb(ScriptedWeb):
    """Spends all its time on `/slow`, until it may go on."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        super().__init__(answers)
        self.is_busy, self.may_go_on = threading.Event(), threading.Event()

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] | None = None
    ) -> Answer:
        if target == "/slow":
            self.is_busy.set()
            assert self.may_go_on.wait(60)
        return super().answer(host, target, port, at_ms=at_ms, conditions=conditions)


def test_request_that_is_read_late_is_logged_as_it_arrived(serve: Serve):
    """A server without CPU for a moment is no reason to call clients impolite: the kernel knows when bytes came."""
    web = BusyWeb({"/slow": OK, "/first": OK, "/second": OK})
    served = serve(web)
    with connected(served.port) as busy, connected(served.port) as client:
        client.sendall(request("/first"))
        heard_head(client)
        heard_bytes(client, 4)
        busy.sendall(request("/slow"))
        assert web.is_busy.wait(60)
        client.sendall(request("/second"))
        time.sleep(0.15)
        web.may_go_on.set()
        heard_head(client)
    slow, second = (line for line in served.stopped_log() if line.target in ("/slow", "/second"))
    assert slow.end_ms - slow.start_ms >= 150
    assert second.end_ms - second.start_ms >= 110
    assert second.start_ms < slow.end_ms


@pytest.mark.parametrize(
    "answer",
    [Answer(200, (), b"x" * 1000, fault=Fault.ENDLESS), Answer(200, (), b"", fault=Fault.SILENT)],
    ids=["reset", "closed"],
)
def test_client_that_is_seen_to_go_late_went_when_it_did(serve: Serve, answer: Answer):
    """Nor is it for who comes back before the server has seen the leave."""
    web = BusyWeb({"/left": answer, "/slow": OK, "/next": OK})
    served = serve(web)
    with connected(served.port) as busy, connected(served.port) as back, connected(served.port) as client:
        client.sendall(request("/left"))
        if answer.body:
            heard_head(client)
        busy.sendall(request("/slow"))
        assert web.is_busy.wait(60)
        time.sleep(0.05)
        client.close()
        back.sendall(request("/next"))
        time.sleep(0.1)
        web.may_go_on.set()
        heard_head(back)
    lines = {line.target: line for line in served.stopped_log()}
    assert lines["/left"].end_ms <= lines["/next"].start_ms < lines["/slow"].end_ms
    # A reset counts from when the client took something last.
    assert answer.body or lines["/left"].end_ms > lines["/slow"].start_ms


def test_idle_connection_holds_no_answer(serve: Serve):
    """What was sent is let go of: a kept connection costs the server nothing of the size of its last page."""
    answer = Answer(200, (), bytes(1_000_000))
    served = serve(ScriptedWeb({"/": answer}))
    with ExitStack() as stack:
        socks = [stack.enter_context(connected(served.port)) for _ in range(3)]
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for sock in socks:
            sock.sendall(request("/"))
            heard_head(sock)
            heard_bytes(sock, len(answer.body))
        # The last exchange is over when the next one on another connection is.
        socks[0].sendall(request("/", "HEAD"))
        heard_head(socks[0])
        assert tracemalloc.get_traced_memory()[0] < len(answer.body)


def test_bug_of_a_web_is_told_and_answered(serve: Serve, caplog: pytest.LogCaptureFixture):
    """A web that raises costs one answer, 500, and leaves its traceback; the connection goes on."""
    served = serve(ScriptedWeb({"/": OK, "/unsendable": Answer(200, (("X", "\u4e00"),), b"")}))
    with caplog.at_level(logging.ERROR, "asyncio"), connected(served.port) as sock:
        for target, status in (("/missing", 500), ("/unsendable", 500), ("/", 200)):
            sock.sendall(request(target, "HEAD"))
            assert heard_head(sock).startswith(f"HTTP/1.1 {status} ")
    assert [line.status for line in served.stopped_log()] == [500, 500, 200]
    told = [record for record in caplog.records if " fails at " in record.getMessage()]
    errors = [record.exc_info and record.exc_info[0] for record in told]
    assert errors == [KeyError, UnicodeEncodeError]


def test_retry_after_is_in_the_log(serve: Serve):
    """The pause that an answer asks for stands beside its end, in ms."""
    served = serve(ScriptedWeb({"/": Answer(429, (("Retry-After", "3"),), b"")}))
    hear(served.port, request("/", Connection="close"))
    (exchange,) = exchanges(served)
    assert (exchange.status, exchange.retry_after_ms) == (429, 3000)


def test_what_follows_the_last_answer_is_not_answered(serve: Serve):
    """After Connection: close the answer arrives whole, though more was sent; the rest is logged as unanswered."""
    served = serve(ScriptedWeb({"/": Answer(200, (), b"x" * 1_000_000)}))
    heard = hear(served.port, request("/", Connection="close") + request("/") * 5000)
    assert (len(heard.body), heard.is_reset) == (1_000_000, False)
    assert [line.status for line in served.stopped_log()][:2] == [200, 499]


class BottomlessSocket(socket.socket):
    """A socket whose peer reads quicker than we write, and goes when it has had far too much."""

    sends_left = 10_000

    def send(self, data: memoryview) -> int:  # type: ignore[override]
        self.sends_left -= 1
        if self.sends_left == 0:
            raise BrokenPipeError
        return len(data)


def test_endless_body_leaves_the_others_their_turn():
    """However quick its reader, an endless body is sent in turns: the loop goes on."""
    web = ScriptedWeb({"/": Answer(200, (), b"x" * 9999, framing=Framing.CLOSE, fault=Fault.ENDLESS)})
    turns = 100

    async def serve_one() -> int:
        server = SimServer(web, open_listeners([A], 0, "no-such-device"))
        with socket.create_server((A, 0)) as listener, socket.create_connection(listener.getsockname()) as client:
            with listener.accept()[0] as accepted:
                ours = BottomlessSocket(fileno=accepted.detach())
            ours.setblocking(False)
            connection = ServerConnection(server, asyncio.get_running_loop(), ours, "client")
            client.sendall(request("/"))
            for _ in range(turns):
                await asyncio.sleep(0)
            ended_early = server.requests
            connection.abandon()
        await server.stop()
        return ended_early

    assert asyncio.run(serve_one()) == 0
