from __future__ import annotations

import pytest

from bigcrawl.simweb.http1 import BadRequestError, RequestHead, encode_answer, parse_head


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET /a?b HTTP/1.1\r\nHost: x", RequestHead("GET", "/a?b", True, 0)),
        (b"GET / HTTP/1.1\r\nhost:x\r\nCONNECTION: Close", RequestHead("GET", "/", False, 0)),
        (b"HEAD / HTTP/1.0", RequestHead("HEAD", "/", False, 0)),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", RequestHead("GET", "/", True, 0)),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12", RequestHead("POST", "/", True, 12)),
        (b"GET http://x:1/y HTTP/1.1\r\nHost: z", RequestHead("GET", "/y", True, 0)),
        (b"GET HTTP://x HTTP/1.1\r\nHost: z", RequestHead("GET", "/", True, 0)),
    ],
)
def test_heads_are_understood(head: bytes, expected: RequestHead):
    """Method, target, the end of the connection and the length of a body are read as RFC 9112 has them."""
    assert parse_head(head) == expected


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / x HTTP/1.1\r\nHost: x", 400),
        (b"GET /\xe9 HTTP/1.1\r\nHost: x", 400),
        (b"GET /\t HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nrubbish", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked", 501),
        (b"GET / HTTP/2.0\r\nHost: x", 505),
    ],
)
def test_bad_heads_are_refused(head: bytes, status: int):
    """What cannot be understood, or could break a line of the log, is an error with its status."""
    with pytest.raises(BadRequestError) as caught:
        parse_head(head)
    assert caught.value.status == status


def test_answer_to_head_tells_the_length_and_sends_no_body():
    """HEAD has the headers of GET, and nothing after them."""
    answer = encode_answer(200, (("X", "y"),), b"12345", head_only=True, keep_alive=False, date="now")
    assert answer == (
        b"HTTP/1.1 200 OK\r\nDate: now\r\nServer: simweb\r\nX: y\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    )
