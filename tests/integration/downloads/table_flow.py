"""Rows that take more than one request: redirects, cookies, retries, kept connections, the engine's own door."""

from __future__ import annotations

from typing import Any

from tests.integration.downloads.case import Answer, Case, End, Step, answer, page

_EMPTY: Answer = (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 70\r\n\r\n",)


def _to(target: str, status: str = "302 Found", *headers: tuple[str, str]) -> Answer:
    return answer(b"", ("Location", target), *headers, status=status)


def _redirect(status: str, target: str = "", **request: Any) -> Case:
    """A redirect to another page of the same case."""
    name = f"redirect-{status.partition(' ')[0]}" + (f"-{request['method'].lower()}" if request else "")
    target = target or f"/{name}/landed?x=1#part"
    landed = _EMPTY if request.get("method") == "HEAD" else page("landed")
    return Case(name=name, answers=(_to(target, status), landed), request=request)


_POST: dict[str, Any] = {"method": "POST", "body": b"kept?", "headers": {"Content-Type": "text/plain"}}

_META = b'<html><head><meta http-equiv="refresh" content="%b;url=/meta-refresh/landed"></head></html>'
_HTML = ("Content-Type", "text/html")

REDIRECTS = (
    *(_redirect(status) for status in ("301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent")),
    *(_redirect(status, **_POST) for status in ("301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent")),
    _redirect("302 Found", "/redirect-302-head/landed", method="HEAD"),
    Case(name="redirect-304", answers=(_to("/redirect-304/landed", "304 Not Modified"),)),
    Case(name="redirect-nowhere", answers=(page(status="302 Found"),)),
    Case(name="redirect-relative", answers=(_to("landed?größe"), page("landed"))),
    Case(
        name="redirect-bytes",
        answers=(
            (b"HTTP/1.1 302 Found\r\nLocation: /redirect-bytes/\xc3\xbc%zz a\r\nContent-Length: 0\r\n\r\n",),
            page(),
        ),
    ),
    Case(
        name="redirect-chain", answers=(_to("/redirect-chain/2"), _to("/redirect-chain/3", "301 Moved"), page("landed"))
    ),
    Case(name="redirect-too-often", answers=tuple(_to(f"/redirect-too-often/{number}") for number in range(9))),
    Case(
        name="redirect-refused", answers=(_to("/redirect-refused/landed"),), request={"meta": {"dont_redirect": True}}
    ),
    Case(
        name="redirect-handled",
        answers=(_to("/redirect-handled/landed"),),
        request={"meta": {"handle_httpstatus_list": [302]}},
    ),
    Case(
        name="redirect-other",
        answers=(_to("{other}/redirect-other/landed"), page("landed")),
        request={"headers": {"Authorization": "Basic s3cret", "Cookie": "own=1"}, "cookies": {"jar": "1"}},
    ),
    Case(
        name="redirect-secure",
        answers=(_to("{tls}/redirect-secure/landed"), page("landed")),
    ),
    Case(name="redirect-file", answers=(_to("file:///etc/hostname"),)),
    Case(name="redirect-data", answers=(_to("data:text/html,hello"),)),
    Case(name="meta-refresh", answers=(answer(_META % b"0", _HTML), page("landed"))),
    Case(
        name="meta-refresh-late",
        answers=(answer(_META.replace(b"meta-refresh", b"meta-refresh-late") % b"1000", _HTML),),
    ),
)

COOKIES = (
    Case(name="cookies-sent", request={"cookies": {"a": "1", "b": "zwei"}}),
    Case(
        name="cookies-listed",
        request={
            "cookies": [
                {"name": "here", "value": "1", "path": "/cookies-listed"},
                {"name": "there", "value": "2", "path": "/elsewhere"},
                {"name": "secret", "value": "3", "path": "/cookies-listed", "secure": True},
                {"name": "far", "value": "4", "domain": "elsewhere.example"},
            ]
        },
    ),
    Case(
        name="cookies-back",
        answers=(
            answer(b"", ("Set-Cookie", "a=1; Path=/cookies-back"), ("Set-Cookie", "b=2")),
            answer(b"", ("Set-Cookie", "a=; Max-Age=0; Path=/cookies-back")),
            page(),
        ),
        then=(Step(url="{plain}/cookies-back/two"), Step(url="{plain}/cookies-back/three")),
    ),
    Case(
        name="cookies-jars",
        answers=(answer(b"", ("Set-Cookie", "who=one; Path=/cookies-jars")), page()),
        request={"meta": {"cookiejar": 1}},
        then=(
            Step(url="{plain}/cookies-jars/other-jar", request={"meta": {"cookiejar": "two"}}),
            Step(url="{plain}/cookies-jars/same-jar", request={"meta": {"cookiejar": 1}}),
            Step(url="{plain}/cookies-jars/no-jar"),
        ),
    ),
    Case(
        name="cookies-unmerged",
        answers=(answer(b"", ("Set-Cookie", "a=1; Path=/cookies-unmerged")), page()),
        request={"meta": {"dont_merge_cookies": True}, "headers": {"Cookie": "by=hand"}},
        then=(Step(url="{plain}/cookies-unmerged/after"),),
    ),
    Case(
        name="cookies-on-the-way",
        answers=(_to("/cookies-on-the-way/in", "302 Found", ("Set-Cookie", "in=yes")), page()),
    ),
)

# A retry rests its host for seconds: each row has one of its own, so that they rest at the same time.
RETRIES = (
    Case(name="retry-503", url="{flaky1}/retry-503/", answers=(page(status="503 Later"), page("at last"))),
    Case(name="retry-in-vain", url="{flaky2}/retry-in-vain/", answers=(page(status="500 Broken"),)),
    Case(name="retry-reset", url="{flaky3}/retry-reset/", answers=((End.RESET,), page("at last")), request=_POST),
    Case(name="retry-post", url="{flaky4}/retry-post/", answers=(page(status="503 Later"), page()), request=_POST),
    Case(name="retry-never", answers=(page(status="503 Later"),), request={"meta": {"max_retry_times": 0}}),
    Case(
        name="retry-after-redirect",
        url="{flaky5}/retry-after-redirect/",
        answers=(_to("/retry-after-redirect/landed"), page(status="502 Bad"), page("at last")),
    ),
)

KEPT = (
    Case(
        name="closed-politely",
        answers=((*answer(b"one", ("Connection", "close")), End.CLOSE), page()),
        then=(Step(url="{other}/closed-politely/two"), Step(url="{other}/closed-politely/three")),
        url="{other}/closed-politely/one",
    ),
    Case(
        name="closed-silently",
        url="{other}/closed-silently/one",
        answers=((*answer(b"one"), 0.01, End.CLOSE), page()),
        then=(Step(url="{other}/closed-silently/two"),),
    ),
    Case(
        name="unfiltered",
        then=(
            Step(url="{plain}/unfiltered/", request={"dont_filter": True}),
            Step(url="{plain}/unfiltered/", request={"dont_filter": True, "priority": 5}),
        ),
    ),
    Case(
        name="cut-then-good",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", End.CLOSE), page()),
        request={"meta": {"dont_retry": True}},
        then=(Step(url="{plain}/cut-then-good/two"),),
    ),
    Case(
        name="request-attributes",
        request={
            "cb_kwargs": {"number": 3, "pair": (1, 2)},
            "flags": ["mine"],
            "priority": 7,
            "meta": {"own": {"a": [1]}},
        },
    ),
)

ENGINE = (
    Case(name="engine-page", by_engine=True),
    Case(name="engine-tls", by_engine=True, url="{tls}/engine-tls/"),
    Case(name="engine-404", by_engine=True, answers=(page(status="404 Not Found"),)),
    Case(name="engine-redirect", by_engine=True, answers=(_to("/engine-redirect/landed"), page("landed"))),
    Case(name="engine-retry", by_engine=True, answers=(page(status="503 Later"), page("at last"))),
    Case(name="engine-post", by_engine=True, request=_POST),
    Case(name="engine-deaf", by_engine=True, url="{deaf}/engine-deaf/", request={"meta": {"dont_retry": True}}),
    Case(
        name="engine-unknown-host",
        by_engine=True,
        url="http://nobody.invalid/engine-unknown-host/",
        request={"meta": {"dont_retry": True}},
    ),
    Case(name="engine-data", by_engine=True, url="data:text/plain;charset=latin-1,caf%E9"),
    Case(name="engine-file", by_engine=True, url="{file}"),
    Case(name="engine-no-file", by_engine=True, url="{file}.missing", request={"meta": {"dont_retry": True}}),
    Case(name="engine-no-scheme", by_engine=True, url="gopher://127.0.0.1/engine-no-scheme"),
)

CASES = (*RETRIES, *REDIRECTS, *COOKIES, *KEPT, *ENGINE)
