"""Everything that may be wrong about an answer, as a client meets it on a real connection."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable

import pytest

from bigcrawl_simweb.basics.answer import Answer, Fault, Framing
from tests.annexes.simweb.conftest import Served
from tests.annexes.simweb.scripted import (
    TIMEOUT_S,
    A,
    B,
    Heard,
    ScriptedWeb,
    connected,
    hear,
    heard_bytes,
    heard_head,
    request,
)

Serve = Callable[..., Served]
BODY = bytes(range(256)) * 40  # 10,240: three chunks
LARGE = bytes(range(256)) * 40_000  # 10 MB: far more than the kernel takes at once
OTHER = Answer(200, (), b"other")


def logged(served: Served) -> list[tuple[str, int, str]]:
    """Target, status and fault of every line."""
    return [(line.target, line.status, line.fault) for line in served.stopped_log()]


def serve_one(serve: Serve, answer: Answer) -> Served:
    return serve(ScriptedWeb({"/": answer, "/other": OTHER}))


def answered(served: Served, address: str = B) -> bool:
    """Whether another connection is served as ever."""
    connection = http.client.HTTPConnection(address, served.port, timeout=TIMEOUT_S)
    connection.request("GET", "/other")
    body = connection.getresponse().read()
    connection.close()
    return body == b"other"


@pytest.mark.parametrize("body", [b"", b"x", BODY, LARGE], ids=len)
def test_chunked_answer_is_whole_and_the_connection_kept(serve: Serve, body: bytes):
    """Chunks end where they say; the next answer follows on the same connection."""
    served = serve_one(serve, Answer(200, (), body, framing=Framing.CHUNKED))
    connection = http.client.HTTPConnection(A, served.port, timeout=TIMEOUT_S)
    for _ in range(2):
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert "Content-Length" not in answer.headers
        assert answer.read() == body
    connection.close()
    lines = served.stopped_log()
    assert [(line.status, line.fault) for line in lines] == [(200, "-")] * 2
    assert len({line.client for line in lines}) == 1
    assert all(line.sent_bytes > len(body) for line in lines)


@pytest.mark.parametrize(("framing", "version"), [(Framing.CLOSE, "HTTP/1.1"), (Framing.OLD, "HTTP/1.0")])
@pytest.mark.parametrize("body", [b"", BODY, LARGE], ids=len)
def test_body_without_length_ends_with_the_connection(serve: Serve, framing: Framing, version: str, body: bytes):
    """With neither length nor chunks the connection closes after the last byte, whatever the client wishes."""
    served = serve_one(serve, Answer(200, (("X", "y"),), body, framing=framing))
    heard = hear(served.port, request("/", Connection="keep-alive"))
    assert heard.head.startswith(f"{version} 200 OK\r\n")
    assert "Connection: close" in heard.head
    assert "Content-Length" not in heard.head
    assert "Transfer-Encoding" not in heard.head
    assert (heard.body, heard.is_reset) == (body, False)
    assert logged(served) == [("/", 200, "-")]


def test_client_of_http_1_0_is_sent_no_chunks(serve: Serve):
    """To a client that does not know chunks the body is sent plain, and the connection closes."""
    served = serve_one(serve, Answer(200, (), BODY, framing=Framing.CHUNKED))
    heard = hear(served.port, request("/", version="1.0", Connection="keep-alive"))
    assert heard.body == BODY
    assert "Transfer-Encoding" not in heard.head


@pytest.mark.parametrize("framing", list(Framing))
def test_cut_body_arrives_up_to_the_cut_and_the_connection_ends(serve: Serve, framing: Framing):
    """What was sent before the cut reaches the client, though it has sent more than was read: no reset."""
    served = serve_one(serve, Answer(200, (), BODY, framing=framing, fault=Fault.CUT, fault_at=5000))
    # A body that nobody reads, and requests that nobody answers: closing at once would reset the connection.
    heard = hear(served.port, request("/", **{"Content-Length": "9"}) + b"z" * 9 + request("/other") * 1000)
    assert not heard.is_reset
    if framing is Framing.CHUNKED:
        assert heard.body == b"1000\r\n" + BODY[:4096] + b"\r\n388\r\n" + BODY[4096:5000] + b"\r\n"
    else:
        assert heard.body == BODY[:5000]
    assert ("Content-Length: 10240" in heard.head) is (framing is Framing.LENGTH)
    assert logged(served)[0] == ("/", 200, "cut")


def test_stalled_body_stops_and_the_connection_stays(serve: Serve):
    """After the stall nothing comes and nothing closes, not even after another request; the client ends it."""
    served = serve_one(serve, Answer(200, (), BODY, fault=Fault.STALLED, fault_at=5000))
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        assert "Content-Length: 10240" in heard_head(sock)
        assert heard_bytes(sock, 5000) == BODY[:5000]
        sock.sendall(request("/other"))
        assert answered(served)
        sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            sock.recv(1)
    assert logged(served) == [("/other", 200, "-"), ("/", 200, "stalled")]


def test_silent_host_says_nothing_and_does_not_hold_up_others(serve: Serve):
    """No byte comes, other connections are served meanwhile, and the client's going is its end in the log."""
    served = serve_one(serve, Answer(503, (("Retry-After", "7"),), BODY, fault=Fault.SILENT))
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        assert answered(served)
        assert answered(served, A)
        sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            sock.recv(1)
    *_, line = served.stopped_log()
    assert (line.target, line.status, line.fault, line.sent_bytes, line.retry_after_ms) == ("/", 503, "silent", 0, 7000)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reset_connection_is_reset_and_no_byte_comes(serve: Serve, method: str):
    """A host that is down answers with a reset, to HEAD as well."""
    served = serve_one(serve, Answer(200, (), BODY, fault=Fault.RESET, delay_ms=5))
    assert hear(served.port, request("/", method)) == Heard("", b"", is_reset=True)
    (line,) = served.stopped_log()
    assert (line.status, line.fault, line.sent_bytes) == (200, "reset", 0)
    assert line.end_ms - line.start_ms >= 5


@pytest.mark.parametrize("framing", [Framing.CHUNKED, Framing.CLOSE, Framing.OLD])
def test_endless_body_comes_again_and_again_until_the_client_goes(serve: Serve, framing: Framing):
    """An endless body has no last byte; others are served while it is read."""
    served = serve_one(serve, Answer(200, (), b"0123456789", framing=framing, fault=Fault.ENDLESS))
    connection = http.client.HTTPConnection(A, served.port, timeout=TIMEOUT_S)
    connection.request("GET", "/")
    answer = connection.getresponse()
    body = answer.read(3_000_000)
    assert answered(served)
    body += answer.read(3_000_000)
    answer.close()
    connection.close()
    assert body == b"0123456789" * 600_000
    assert ("/", 200, "endless") in logged(served)


def test_endless_body_waits_for_its_reader(serve: Serve):
    """What nobody reads is not made: the server sends no more than the kernel's buffers hold."""
    served = serve_one(serve, Answer(200, (), BODY, framing=Framing.CLOSE, fault=Fault.ENDLESS))
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        heard_head(sock)
        for _ in range(200):
            assert answered(served)
    line = served.stopped_log()[-1]
    assert (line.target, line.fault) == ("/", "endless")
    assert line.sent_bytes < 50_000_000


def test_endless_body_without_bytes_is_a_stall(serve: Serve):
    """Nothing, again and again, keeps nobody busy."""
    served = serve_one(serve, Answer(200, (), b"", framing=Framing.CLOSE, fault=Fault.ENDLESS))
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        heard_head(sock)
        assert answered(served)
    assert logged(served) == [("/other", 200, "-"), ("/", 200, "endless")]


def test_length_that_is_too_large_is_told_and_the_connection_ends(serve: Serve):
    """A client waits for what was promised until the server closes."""
    served = serve_one(serve, Answer(200, (), BODY, announced_bytes=20_000))
    heard = hear(served.port, request("/"))
    assert "Content-Length: 20000" in heard.head
    assert "Connection: keep-alive" in heard.head
    assert (heard.body, heard.is_reset) == (BODY, False)
    assert logged(served) == [("/", 200, "short")]


def test_length_that_is_too_small_leaves_bytes_behind(serve: Serve):
    """The rest of the body stands where the client looks for the next answer."""
    served = serve_one(serve, Answer(200, (), b"0123456789", announced_bytes=4))
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        assert "Content-Length: 4" in heard_head(sock)
        assert heard_bytes(sock, 10) == b"0123456789"
        sock.sendall(request("/other"))
        assert heard_head(sock).startswith("HTTP/1.1 200 OK")
    assert logged(served) == [("/", 200, "long"), ("/other", 200, "-")]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, (), BODY),
        Answer(200, (), BODY, framing=Framing.CHUNKED),
        Answer(200, (), BODY, fault=Fault.CUT, fault_at=5),
        Answer(200, (), BODY, fault=Fault.STALLED, fault_at=5),
        Answer(200, (), BODY, framing=Framing.CHUNKED, fault=Fault.ENDLESS),
        Answer(200, (), BODY, announced_bytes=99_999),
        Answer(200, (), BODY, bytes_per_s=1),
    ],
    ids=repr,
)
def test_head_tells_what_get_does_and_meets_no_fault_of_the_body(serve: Serve, answer: Answer):
    """HEAD sends no body, so nothing can happen to it, and the connection is kept."""
    served = serve_one(serve, answer)
    with connected(served.port) as sock:
        sock.sendall(request("/", "HEAD") + request("/other", "HEAD"))
        first, second = heard_head(sock), heard_head(sock)
    told = len(BODY) if answer.announced_bytes is None else answer.announced_bytes
    assert ("Transfer-Encoding: chunked" in first) is (answer.framing is Framing.CHUNKED)
    assert (f"Content-Length: {told}" in first) is (answer.framing is Framing.LENGTH)
    assert "Content-Length: 5" in second
    assert logged(served) == [("/", 200, "-"), ("/other", 200, "-")]


@pytest.mark.parametrize("status", [204, 304])
def test_answer_that_can_have_no_body_has_none(serve: Serve, status: int):
    """304 and 204 end with their head, whatever the web gives them."""
    served = serve_one(serve, Answer(status, (("ETag", '"1"'),), BODY))
    with connected(served.port) as sock:
        sock.sendall(request("/") + request("/other"))
        first, second = heard_head(sock), heard_head(sock)
    assert first.startswith(f"HTTP/1.1 {status} ")
    assert "Content-Length" not in first
    assert second.startswith("HTTP/1.1 200 OK")


def test_slow_body_takes_as_long_as_its_rate_says(serve: Serve):
    """The end of a slow body is as far from its start as the rate asks, and it comes in pieces."""
    served = serve_one(serve, Answer(200, (), b"x" * 1000, bytes_per_s=10_000, delay_ms=20))
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        assert "Content-Length: 1000" in heard_head(sock)
        assert heard_bytes(sock, 1000) == b"x" * 1000
    (line,) = served.stopped_log()
    assert line.end_ms - line.start_ms >= 120
    assert (line.status, line.fault) == (200, "-")


@pytest.mark.parametrize("answer", [Answer(200, (), BODY, delay_ms=60_000), Answer(200, (), BODY, bytes_per_s=1)])
def test_client_whose_time_is_up_is_seen_to_go(serve: Serve, answer: Answer):
    """An exchange ends in the log when its client closes, not when a slow answer would have been ready."""
    served = serve_one(serve, answer)
    with connected(served.port) as sock:
        sock.sendall(request("/"))
        assert answered(served)
    assert answered(served)
    lines = served.stopped_log()
    assert [(line.target, line.status) for line in lines] == [("/other", 200), ("/", 499), ("/other", 200)]
    assert lines[1].end_ms - lines[1].start_ms < 30_000


def test_end_of_a_large_answer_is_that_of_its_last_bytes(serve: Serve):
    """However long the reader takes, the end in the log comes after it began to read the last part."""
    served = serve_one(serve, Answer(200, (), LARGE))
    with connected(served.port) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        sock.sendall(request("/", Connection="close"))
        assert answered(served)  # by now the kernel is full of the large answer
        heard_head(sock)
        assert answered(served, A)
        assert heard_bytes(sock, len(LARGE)) == LARGE
    lines = {(line.target, line.host): line for line in served.stopped_log()}
    assert lines["/", A].end_ms >= lines["/other", A].start_ms
    assert (lines["/", A].status, lines["/", A].fault) == (200, "-")
    assert lines["/", A].sent_bytes > len(LARGE)
