"""Rows about what comes back: framings, encodings, sizes, losses, statuses and headers of answers."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import brotli  # type: ignore[import-untyped]
from backports import zstd

from tests.integration.downloads.case import NOTHING, Case, End, answer, page

_HTML = ("Content-Type", "text/html; charset=utf-8")
_NO_RETRY = {"meta": {"dont_retry": True}}
# A GET that is not answered at all on a kept connection is sent once more by the client, unseen: a POST is not.
_ONCE = {**_NO_RETRY, "method": "POST"}
_TEXT = b"<html><body>" + b"<p>some text</p>" * 500 + b"</body></html>"
_BIG = bytes(range(256)) * (5 * 1024 * 4)
_BOMB = gzip.compress(bytes(20_000_000))


def _encoded(name: str, body: bytes) -> Case:
    return Case(name=name, answers=(answer(body, _HTML, ("Content-Encoding", name.partition("-")[2])),))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
_SHORT = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nthirty of a hundred"
_UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end"


def _limited(name: str, **meta: object) -> dict[str, object]:
    return {"meta": {"dont_retry": True, f"download_{name}": 1000, **meta}}


def _bodyless(name: str, status: bytes, header: bytes) -> Case:
    return Case(
        name=name,
        answers=((b"HTTP/1.1 %b\r\n%b\r\n\r\n" % (status, header),),),
        ours={"record.0.headers.Content-Length": NOTHING},
        ours_watched={"signals.1.1.Content-Length": NOTHING, "signals.1.2": "unknown"},
        counted={"downloader/response_bytes": -len("Content-Length: 0\r\n")},
        why="the headers are those that came; Twisted's client adds a Content-Length to an answer without a body",
    )


FRAMINGS = (
    Case(name="plain-page"),
    Case(name="empty-body", answers=(answer(b"", _HTML),)),
    _bodyless("no-content", b"204 No Content", b"X-Kept: yes"),
    _bodyless("not-modified", b"304 Not Modified", b'ETag: "a"'),
    Case(name="continue-first", answers=((b"HTTP/1.1 100 Continue\r\n\r\n", *page()),)),
    Case(name="early-hints", answers=((b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n", *page()),)),
    Case(name="http-1-0", answers=((b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old</p>", End.CLOSE),)),
    Case(name="until-close", answers=((_UNTIL_CLOSE, End.CLOSE),)),
    Case(name="chunked", answers=((_CHUNKED, _chunk(b"<p>one "), 0.02, _chunk(b"two</p>"), b"0\r\n\r\n"),)),
    Case(
        name="chunked-trailer",
        answers=((_CHUNKED, b"4;ext=1\r\nbody\r\n0\r\nX-Trailer: late\r\n\r\n"),),
    ),
    Case(name="big-body", answers=(answer(_BIG, ("Content-Type", "application/octet-stream")),)),
    Case(
        name="dripped-body",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", *(0.03, b"ab", 0.03, b"cd", 0.03, b"ef")),),
    ),
    Case(
        name="dripped-head",
        answers=((b"HTTP/1.1 200", 0.03, b" OK\r\nX-On", 0.03, b"e: 1\r\nContent-Length: 0\r\n\r\n"),),
    ),
)

ENCODINGS = (
    _encoded("coded-gzip", gzip.compress(_TEXT)),
    _encoded("coded-x-gzip", gzip.compress(_TEXT)),
    _encoded("coded-deflate", zlib.compress(_TEXT)),
    Case(
        name="raw-deflate",
        answers=(answer(zlib.compress(_TEXT, wbits=-15), _HTML, ("Content-Encoding", "deflate")),),
    ),
    _encoded("coded-br", brotli.compress(_TEXT)),
    _encoded("coded-zstd", zstd.compress(_TEXT)),
    _encoded("coded-compress", b"nobody can read this"),
    Case(
        name="coded-twice",
        answers=(answer(brotli.compress(gzip.compress(_TEXT)), _HTML, ("Content-Encoding", "gzip, br")),),
    ),
    Case(
        name="coded-badly",
        answers=(answer(b"\0 not gzip at all", _HTML, ("Content-Encoding", "gzip")),),
        request=_NO_RETRY,
    ),
    Case(name="coded-empty", answers=(answer(b"", _HTML, ("Content-Encoding", "gzip")),), request=_NO_RETRY),
    Case(
        name="coded-cut",
        answers=(answer(gzip.compress(_TEXT)[:-30], _HTML, ("Content-Encoding", "gzip")),),
        request=_NO_RETRY,
    ),
    Case(
        name="coded-for-head",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 500\r\n\r\n",),),
        request={"method": "HEAD"},
    ),
    Case(
        name="utf-16-page",
        answers=(answer("<p>größe</p>".encode("utf-16"), ("Content-Type", "text/html; charset=utf-16")),),
    ),
    Case(name="guessed-text", answers=(answer("<html><body>naïve</body></html>".encode()),)),
    Case(name="guessed-binary", answers=(answer(b"\x89PNG\r\n\x1a\n\x00\x00"),)),
    Case(name="json-body", answers=(answer(b'{"a": 1}', ("Content-Type", "application/json")),)),
)

SIZES = (
    Case(name="maxsize-told", answers=(answer(b"x" * 2000, _HTML),), request=_limited("maxsize")),
    Case(
        name="maxsize-met",
        answers=((_CHUNKED, *(_chunk(b"x" * 600),) * 3, End.HOLD),),
        request=_limited("maxsize"),
    ),
    Case(name="maxsize-kept", answers=(answer(b"x" * 1000, _HTML),), request=_limited("maxsize")),
    Case(name="maxsize-off", answers=(answer(b"x" * 2000, _HTML),), request={"meta": {"download_maxsize": 0}}),
    Case(name="warnsize-told", answers=(answer(b"x" * 2000, _HTML),), request=_limited("warnsize")),
    Case(
        name="bomb",
        answers=(answer(_BOMB, _HTML, ("Content-Encoding", "gzip")),),
        request={"meta": {"dont_retry": True, "download_maxsize": 100_000}},
    ),
    Case(
        name="bomb-endless",
        answers=((_CHUNKED, *(_chunk(b"y" * 50_000),) * 8, End.HOLD),),
        request={"meta": {"dont_retry": True, "download_maxsize": 100_000}},
    ),
)

LOSSES = (
    Case(name="cut-short", answers=((_SHORT, End.CLOSE),), request=_NO_RETRY),
    Case(
        name="cut-short-kept",
        answers=((_SHORT, End.CLOSE),),
        request={"meta": {"download_fail_on_dataloss": False}},
    ),
    Case(name="cut-chunk", answers=((_CHUNKED, b"20\r\nhalf a chunk", End.CLOSE),), request=_NO_RETRY),
    Case(
        name="cut-chunk-kept",
        answers=((_CHUNKED, _chunk(b"whole"), b"20\r\nhalf", End.CLOSE),),
        request={"meta": {"download_fail_on_dataloss": False}},
    ),
    Case(name="cut-last-chunk", answers=((_CHUNKED, _chunk(b"no zero chunk"), End.CLOSE),), request=_NO_RETRY),
    Case(name="bad-chunk", answers=((_CHUNKED, 0.1, b"zz\r\nnot hexadecimal\r\n", End.CLOSE),), request=_NO_RETRY),
    Case(name="bad-chunk-at-once", answers=((_CHUNKED + b"zz\r\nnot hexadecimal\r\n", End.CLOSE),), request=_NO_RETRY),
    Case(name="reset-at-once", answers=((End.RESET,),), request=_ONCE),
    Case(name="closed-at-once", answers=((End.CLOSE,),), request=_ONCE),
    Case(name="closed-in-head", answers=((b"HTTP/1.1 200 OK\r\nX-Half", End.CLOSE),), request=_ONCE),
    Case(
        name="no-http", url="{odd4}/no-http/", answers=((b"SSH-2.0-OpenSSH_9.2\r\n\r\n", End.CLOSE),), request=_NO_RETRY
    ),
    Case(
        name="too-much",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour and more", End.CLOSE),),
    ),
    Case(
        name="never-answered",
        answers=((End.HOLD,),),
        request={"meta": {"dont_retry": True, "download_timeout": 0.4}},
    ),
    Case(
        name="stuck-in-body",
        answers=((_SHORT, End.HOLD),),
        request={"meta": {"dont_retry": True, "download_timeout": 3}},
    ),
    Case(
        name="stuck-kept",
        answers=((_SHORT, End.HOLD),),
        request={"meta": {"dont_retry": True, "download_timeout": 3, "download_fail_on_dataloss": False}},
    ),
    Case(name="nobody-listens", url="{deaf}/nobody-listens/", request=_NO_RETRY),
)

STATUSES = tuple(
    Case(name=f"status-{status.partition(' ')[0]}", answers=(page(status=status),), request=_NO_RETRY)
    for status in (
        "201 Created",
        "206 Partial Content",
        "300 Multiple Choices",
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "410 Gone",
        "418 I'm a teapot",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "599 Made Up",
        "999 Denied",
    )
)

_FAILED = "scrapy.exceptions.DownloadFailedError"


def _and_of_our_reader(hits: list[Any]) -> list[Any]:
    """The request, and that of our own reader, which asks for the end of the connection."""
    return [*hits, {**hits[0], "headers": sorted([*hits[0]["headers"], ["Connection", "close"]])}]


def _trace_of_two(trace: list[str]) -> list[str]:
    """What the middlewares saw of a try that failed, up to the one that tries again, and then of the next."""
    requests = [line for line in trace if " request" in line]
    kinds = ("deferred", "async-spider", "spider")
    return [*requests, *(f"{kind} exception DownloadFailedError" for kind in kinds), *trace]


HEADERS = (
    Case(
        name="repeated-headers",
        answers=(answer(b"", ("Set-Cookie", "a=1"), ("X-Twice", "one"), ("Set-Cookie", "b=2"), ("x-twice", "two")),),
    ),
    Case(
        name="header-bytes",
        answers=((b"HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\nContent-Length: 0\r\n\r\n",),),
    ),
    Case(
        name="header-spaces",
        answers=((b"HTTP/1.1 200 OK\r\nX-Spaces:   a  b \t\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n",),),
    ),
    Case(
        name="header-folded",
        answers=((b"HTTP/1.1 200 OK\r\nX-Folded: one\r\n two\r\nContent-Length: 0\r\n\r\n",),),
    ),
    Case(
        name="header-no-colon",
        url="{odd1}/header-no-colon/",
        answers=((b"HTTP/1.1 200 OK\r\nno colon here\r\nX-Next: read\r\nContent-Length: 0\r\n\r\n",),),
        ours={
            "record.0.meta.retry_times": 1,
            "record.0.priority": -1,
            "record.0.dont_filter": True,
            "served": _and_of_our_reader,
        },
        ours_watched={
            "signals": lambda heard: [heard[0], heard[3], *heard],
            "record.0.meta.trace": _trace_of_two,
        },
        counted={
            "retry/count": 1,
            "downloader/request_bytes": -len("Connection: close\r\n"),
            f"retry/reason_count/{_FAILED}": 1,
            "downloader/exception_count": 1,
            f"downloader/exception_type_count/{_FAILED}": 1,
        },
        why="libcurl refuses such a head: the try fails, and the server's next answers are read by our own reader",
    ),
    Case(name="bare-line-feeds", answers=((b"HTTP/1.1 200 OK\nX-Bare: yes\nContent-Length: 2\n\nok",),)),
    Case(name="no-reason", answers=((b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",),)),
    Case(
        name="same-length-twice", answers=((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",),)
    ),
    Case(
        name="other-length-twice",
        url="{odd2}/other-length-twice/",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", End.CLOSE),),
        request=_NO_RETRY,
    ),
    Case(
        name="length-and-chunked",
        answers=(
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                End.CLOSE,
            ),
        ),
        request=_NO_RETRY,
    ),
    Case(
        name="bad-length",
        url="{odd3}/bad-length/",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", End.CLOSE),),
        request=_NO_RETRY,
    ),
    Case(name="long-header", answers=(answer(b"ok", ("X-Long", "v" * 12_000)),), request=_NO_RETRY),
    Case(
        name="many-headers",
        answers=(answer(b"ok", *((f"X-{number}", "v") for number in range(300))),),
        request=_NO_RETRY,
    ),
)

CASES = (*FRAMINGS, *ENCODINGS, *SIZES, *LOSSES, *STATUSES, *HEADERS)
