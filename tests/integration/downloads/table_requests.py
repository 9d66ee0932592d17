"""Rows about what is sent: methods, bodies, headers, and the bytes of URLs."""

from __future__ import annotations

from tests.integration.downloads.case import Case, Step, answer

_HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n",)

METHODS = (
    Case(name="head", answers=(_HEAD,), request={"method": "HEAD"}),
    Case(
        name="head-then-get",
        answers=(_HEAD, answer(b"got")),
        request={"method": "HEAD"},
        then=(Step(url="{plain}/head-then-get/"),),
    ),
    Case(name="post", request={"method": "POST", "body": "a=1&b=ü"}),
    Case(name="post-empty", request={"method": "POST"}),
    Case(name="post-bytes", request={"method": "POST", "body": bytes(range(256))}),
    Case(name="post-typed", request={"method": "POST", "body": "{}", "headers": {"Content-Type": "application/json"}}),
    Case(name="post-large", request={"method": "POST", "body": b"z" * 300_000}),
    Case(name="put", request={"method": "PUT", "body": b"stored"}),
    Case(name="put-empty", request={"method": "PUT"}),
    Case(name="patch", request={"method": "PATCH", "body": b"changed"}),
    Case(name="delete", request={"method": "DELETE"}),
    Case(name="options", request={"method": "OPTIONS"}),
    Case(name="own-method", request={"method": "PROPFIND", "body": b"<x/>"}),
    Case(name="lower-method", request={"method": "post", "body": b"small letters"}),
    Case(name="get-with-body", request={"body": b"a body"}),
)

HEADERS = (
    Case(name="own-headers", request={"headers": {"X-Own": "1", "Accept": "text/plain", "Accept-Language": "de"}}),
    Case(
        name="odd-case", request={"headers": {"x-oDD-cASE": "kept?", "etag": "e", "DNT": "1", "www-authenticate": "w"}}
    ),
    Case(name="repeated", request={"headers": {"X-Twice": ["one", "two"], "Accept": ["text/html", "text/plain"]}}),
    Case(name="empty-value", request={"headers": {"X-Empty": ""}}),
    Case(name="utf8-value", request={"headers": {"X-Name": "größe"}}),
    Case(name="latin-value", request={"headers": {"X-Name": "größe"}, "encoding": "latin-1"}),
    Case(name="bytes-value", request={"headers": {"X-Name": b"\xff\xfe"}}),
    Case(name="own-host", request={"headers": {"Host": "elsewhere.example"}}),
    Case(name="own-agent", request={"headers": {"User-Agent": "mine/1.0"}}),
    Case(name="no-agent", request={"headers": {"User-Agent": None}}),
    Case(name="own-encoding", request={"headers": {"Accept-Encoding": "identity"}}),
    Case(name="own-connection", request={"headers": {"Connection": "close"}}),
    Case(name="own-length", request={"method": "POST", "body": b"four", "headers": {"Content-Length": "4"}}),
    Case(name="own-authorization", request={"headers": {"Authorization": "Bearer t"}}),
    Case(name="own-referer", request={"headers": {"Referer": "http://elsewhere.example/"}}),
    Case(name="conditional", request={"headers": {"If-None-Match": '"a"', "If-Modified-Since": "never"}}),
    Case(name="range", request={"headers": {"Range": "bytes=0-9"}}),
    Case(name="auth-in-meta", request={"meta": {"http_user": "user", "http_pass": "pa:ss"}}),
    Case(
        name="auth-elsewhere",
        request={"meta": {"http_user": "user", "http_pass": "pass", "http_auth_domain": "elsewhere.example"}},
    ),
)


def _url(name: str, rest: str, *, verbatim: bool = False, **request: object) -> Case:
    meta = {"meta": {"verbatim_url": True}} if verbatim else {}
    return Case(name=name, url=f"{{plain}}/{name}{rest}", request={**meta, **request})


URLS = (
    _url("path-utf8", "/größe/日本"),
    _url("path-latin", "/größe?q=größe", encoding="latin-1"),
    _url("query-utf8", "/?q=größe&r=%E4"),
    _url("escapes", "/%2f%2F%7e%41%20+%c3%BC/?a=%2b%26&b=%zz"),
    _url("escapes-as-is", "/%2f%7e[x]|'\"/?a=%zz|[]", verbatim=True),
    _url("space", "/a b/?c d=e f"),
    _url("reserved", "/;p=1,2:3@4!$&'()*+=~/?a=b?c/d:e@f"),
    _url("unwise", "/{a}|b^c`d/?{x}|\\y"),
    _url("brackets", "/[a]/?b[]=1"),
    _url("dots", "/a/../b/./c//d"),
    _url("dots-escaped", "/a/%2e%2e/b"),
    _url("dots-as-is", "/a/../b/./c//d", verbatim=True),
    _url("empty-query", "/?"),
    Case(
        name="empty-query-as-is",
        url="{plain}/empty-query-as-is/?",
        request={"meta": {"verbatim_url": True}},
        ours={"served.0.line.1": "/empty-query-as-is/?"},
        why="a verbatim URL is sent byte by byte; Twisted's client drops a query that is empty",
    ),
    _url("fragment", "/a#part"),
    _url("hash-bang", "/a#!/b=1"),
    _url("order", "/?z=1&a=2&z=0&&b"),
    _url("no-slash", ""),
    _url("query-only", "?a=1"),
    _url("long", "/" + "p" * 2000 + "?" + "q" * 5000),
    Case(name="by-name", url="{named}/by-name/"),
    Case(name="by-capital-name", url="{capital}/by-capital-name/"),
)

CASES = (*METHODS, *HEADERS, *URLS)
