"""Rows for projects with other settings, with other download handlers, and for what differs on purpose."""

from __future__ import annotations

import gzip
from typing import Any

from tests.integration.downloads.case import Case, End, Step, answer, page

_HTML = ("Content-Type", "text/html")
_SHORT = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nthirty of a hundred"
_MOVED = answer(b"", ("Location", "/moved/landed"), status="302 Found")
_AGAIN: dict[str, Any] = {"dont_filter": True}

# {other} is reached through the environment's proxy, {plain} is exempt, {tls} is verified.
SURROUNDED = (
    Case(name="here"),
    Case(name="there", url="{other}/there/?a=1"),
    Case(name="there-but-not", url="{other}/there-but-not/", request={"meta": {"proxy": None}}),
    Case(name="there-by-hand", url="{other}/there-by-hand/", request={"meta": {"proxy": "http://u:p@{proxy-address}"}}),
    Case(name="verified", url="{tls}/verified/"),
    Case(name="from-elsewhere", request={"meta": {"bindaddress": "{net}.1.6"}}),
    Case(
        name="cached",
        answers=(page("first"), page("second")),
        then=(
            Step(url="{plain}/cached/", request=_AGAIN),
            Step(url="{plain}/cached/", request={**_AGAIN, "meta": {"dont_cache": True}}),
        ),
    ),
    Case(
        name="not-cached",
        answers=(page("first", status="500 Broken"), page("second")),
        then=(Step(url="{plain}/not-cached/", request=_AGAIN),),
    ),
    Case(name="still-coded", answers=(answer(gzip.compress(b"<p>coded</p>"), _HTML, ("Content-Encoding", "gzip")),)),
    Case(name="moved", answers=(_MOVED,)),
    Case(name="no-cookies", answers=(answer(b"", ("Set-Cookie", "a=1")),), then=(Step(url="{plain}/no-cookies/two"),)),
    Case(name="own-cookie-header", request={"headers": {"Cookie": "by=hand"}}),
    Case(name="too-large", answers=(answer(b"x" * 60_000, _HTML),)),
    Case(name="large-by-meta", answers=(answer(b"x" * 60_000, _HTML),), request={"meta": {"download_maxsize": 70_000}}),
    Case(name="too-slow", answers=((End.HOLD,),)),
    Case(name="lossy", answers=((_SHORT, End.CLOSE),)),
    Case(name="lossy-by-meta", answers=((_SHORT, End.CLOSE),), request={"meta": {"download_fail_on_dataloss": True}}),
    Case(name="no-retry", answers=(page(status="503 Later"),)),
    Case(name="pages-file", answers=(answer(b"%PDF-1.7", ("Content-Type", "application/pdf")),)),
    Case(name="missing-file", answers=(page(status="404 Not Found"),)),
    Case(
        name="with-files",
        files=(
            "{plain}/with-files/a.pdf",
            "{other}/with-files/b.pdf",
            "{deaf}/with-files/c.pdf",
            "{plain}/no-such/d.pdf",
        ),
    ),
    Case(name="surrounded-engine", url="{other}/surrounded-engine/", by_engine=True),
)

HANDLED = (
    Case(name="handled"),
    Case(name="handled-post", request={"method": "POST", "body": b"data", "headers": {"X-Odd": "1"}}),
    Case(name="handled-until-close", answers=((b"HTTP/1.1 200 OK\r\n\r\nuntil the end", End.CLOSE),)),
    Case(name="handled-status", answers=(page(status="404 Not Found"),)),
    Case(name="handled-url", url="{plain}/handled-url/%7e%2f?a=%zz"),
    Case(name="handled-tls", url="{tls}/handled-tls/"),
    Case(
        name="handled-tls-until-close",
        url="{tls}/handled-tls-until-close/",
        answers=((b"HTTP/1.1 200 OK\r\n\r\nuntil the end", End.CLOSE),),
    ),
    Case(name="handled-engine", by_engine=True),
    Case(name="handled-engine-tls", url="{tls}/handled-engine-tls/", by_engine=True),
    Case(name="handled-own-scheme", url="own://somewhere/handled-own-scheme", by_engine=True),
    Case(name="handled-old-scheme", url="old://somewhere/handled-old-scheme", by_engine=True),
    Case(name="handled-file", url="{file}", by_engine=True),
    Case(name="handled-failing", url="failing://somewhere/", by_engine=True),
)

# The first two are for one host, so that their distance in time can be told.
DOCUMENTED = (
    Case(name="delayed", then=(Step(url="{plain}/delayed/two"),)),
    Case(name="retried-late", url="{flaky1}/retried-late/", answers=(page(status="503 Later"), page("at last"))),
    Case(name="forbidden", url="{other}/forbidden/"),
    Case(name="robots.txt", url="{other}/allowed/", answers=(answer(b"User-agent: *\nDisallow: /forbidden/\n"),)),
)
