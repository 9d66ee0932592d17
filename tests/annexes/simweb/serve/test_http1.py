from __future__ import annotations

from typing import Any

import pytest

from bigcrawl_simweb.serve.http1 import BadRequestError, RequestHead, encode_head, parse_head


def expected(**differences: Any) -> RequestHead:
    plain = RequestHead("GET", "/", True, 0, is_old=False, host="x", proxy_port=0, conditions={})
    return plain._replace(**differences)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET /a?b HTTP/1.1\r\nHost: x", expected(target="/a?b")),
        (b"GET / HTTP/1.1\r\nhost:x\r\nCONNECTION: Close", expected(keep_alive=False)),
        (b"HEAD / HTTP/1.0", expected(method="HEAD", keep_alive=False, is_old=True, host="")),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nHost: x", expected(is_old=True)),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12", expected(method="POST", body_bytes=12)),
        (b"OPTIONS * HTTP/1.1\r\nHost: x", expected(method="OPTIONS", target="*")),
        (b"GET / HTTP/1.1\r\nHost:", expected(host="")),
        (b"GET / HTTP/1.1\r\nHost: WWW.Example.COM.:8080", expected(host="www.example.com")),
        (b"GET / HTTP/1.1\r\nHost: 127.16.0.1:", expected(host="127.16.0.1")),
        (b"GET / HTTP/1.1\r\nHost: [::1]:80", expected(host="[::1]")),
        (b"GET / HTTP/1.1\r\nHost: a_b.example", expected(host="a_b.example")),
        (b"GET http://x:1/y HTTP/1.1\r\nHost: z", expected(target="/y", proxy_port=1)),
        (b"GET http://x:1/y?http://z/ HTTP/1.1\r\nHost: z", expected(target="/y?http://z/", proxy_port=1)),
        (b"GET HTTP://X HTTP/1.1\r\nHost: z", expected(proxy_port=80)),
        (b"GET http://x?q/r HTTP/1.1\r\nHost: z", expected(target="/?q/r", proxy_port=80)),
        (b"CONNECT x:444 HTTP/1.1\r\nHost: z", expected(method="CONNECT", target="x:444", proxy_port=444)),
        (b"CONNECT x HTTP/1.1\r\nHost: z", expected(method="CONNECT", target="x", proxy_port=443)),
        (b"GET http://x/ HTTP/1.0", expected(keep_alive=False, is_old=True, proxy_port=80)),
        (
            b'GET / HTTP/1.1\r\nHost: x\r\nif-none-match: W/"1", "2"\r\nIf-Modified-Since:  now \r\nAccept: */*',
            expected(conditions={"If-None-Match": 'W/"1", "2"', "If-Modified-Since": "now"}),
        ),
    ],
)
def test_heads_are_understood(head: bytes, expected: RequestHead):
    """Method, target, host, the end of the connection and the length of a body are read as RFC 9112 has them."""
    assert parse_head(head) == expected


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / x HTTP/1.1\r\nHost: x", 400),
        (b"GET /\xe9 HTTP/1.1\r\nHost: x", 400),
        (b"GET /\t HTTP/1.1\r\nHost: x", 400),
        (b"GET x HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nrubbish", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y", 400),
        (b"GET / HTTP/1.1\r\nHost: x\ty", 400),
        (b"GET / HTTP/1.1\r\nHost: \xe9", 400),
        (b"GET http:///x HTTP/1.1\r\nHost: x", 400),
        (b"GET http://me@x/ HTTP/1.1\r\nHost: x", 400),
        (b"GET http://x:123456/ HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1", 400),
        (b"GET https://x/ HTTP/1.1\r\nHost: x", 421),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked", 501),
        (b"GET / HTTP/2.0\r\nHost: x", 505),
    ],
)
def test_bad_heads_are_refused(head: bytes, status: int):
    """What cannot be understood, or could break a line of the log, is an error with its status."""
    with pytest.raises(BadRequestError) as caught:
        parse_head(head)
    assert caught.value.status == status


def test_heads_are_the_same_when_read_again():
    """What is remembered of a head's fields changes nothing: the target may differ, and a bad head stays bad."""
    lines = b"Host: a\r\nConnection: close"
    first, second = (parse_head(b"GET %b HTTP/1.1\r\n%b" % (target, lines)) for target in (b"/1", b"/2"))
    assert second == first._replace(target="/2")
    for _ in range(2):
        with pytest.raises(BadRequestError, match="400 Bad Request"):
            parse_head(b"GET / HTTP/1.1\r\nHost: a\r\nbad")


def test_head_of_an_answer_has_its_headers_in_order():
    """Status line, headers as Latin-1, and the empty line; a status without a name has one all the same."""
    assert encode_head("HTTP/1.1", 200, [("B", "1"), ("A", "\xe9")]) == b"HTTP/1.1 200 OK\r\nB: 1\r\nA: \xe9\r\n\r\n"
    assert encode_head("HTTP/1.0", 599, []) == b"HTTP/1.0 599 Unknown\r\n\r\n"
