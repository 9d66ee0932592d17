"""Rows for a project with downloader middlewares of its own and with handlers of Scrapy's signals.

`act` is done by the middleware of that letter in that method, see the project's `middlewares`; `stop` is done by
the extension `Watch`.
"""

from __future__ import annotations

from itertools import product

from tests.integration.downloads.case import Case, End, answer, page

_KINDS = ("plain", "async", "spider", "async-spider", "deferred")
STOPPED_PEER = "who answered is known when the head is there; Scrapy's handler tells it with the first byte of a body"
_SLOW = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nfirst", End.HOLD)


def _acting(kind: str, method: str, what: str) -> Case:
    name = f"{kind}-{method}-{what}"
    place = "deaf" if method == "exception" else "plain"
    meta = {"act": [kind, method, what], "dont_retry": True}
    return Case(name=name, url=f"{{{place}}}/{name}/", request={"meta": meta})


ACTING = (
    *(
        _acting(*row)
        for row in product(_KINDS, ("request", "response"), ("response", "request", "ignore", "error", "rubbish"))
    ),
    *(_acting(*row) for row in product(_KINDS, ("exception",), ("response", "request", "ignore", "error", "rubbish"))),
    Case(name="raised-in-request", request={"meta": {"act": ["deferred", "request", "lost"], "dont_retry": True}}),
    Case(name="changed-request", request={"meta": {"act": ["async", "request", "change"]}}),
    Case(name="changed-response", request={"meta": {"act": ["plain", "response", "change"]}}),
)


def _stopping(signal: str, *, fail: bool) -> Case:
    name = f"stop-{signal}-{'fail' if fail else 'keep'}"
    response = "record.0.with" if fail else "record.0"
    ours = {f"{response}.ip_address": "127.__.0.1"} if signal == "headers" else {}
    request = {"meta": {"stop": [signal, fail], "dont_retry": True}}
    return Case(name=name, answers=(_SLOW,), request=request, ours=ours, why=STOPPED_PEER if ours else "")


STOPPING = (
    *(_stopping(signal, fail=fail) for signal, fail in product(("headers", "bytes"), (True, False))),
    Case(
        name="stop-headers-empty",
        answers=(answer(b""),),
        request={"meta": {"stop": ["headers", False], "dont_retry": True}},
        ours={"record.0.ip_address": "127.__.0.1"},
        why=STOPPED_PEER,
    ),
    Case(
        name="stop-headers-tls",
        url="{tls}/stop-headers-tls/",
        answers=(_SLOW,),
        request={"meta": {"stop": ["headers", False], "dont_retry": True}},
        ours={"record.0.ip_address": "127.__.0.3", "record.0.has_certificate": True},
        why=STOPPED_PEER,
    ),
    Case(name="broken-handler", answers=(page(),), request={"meta": {"stop": ["broken", False]}}),
)

CASES = (*ACTING, *STOPPING)
