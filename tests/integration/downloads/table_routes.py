"""Rows about the way to the server: TLS, proxies, tunnels, the address that is bound to."""

from __future__ import annotations

from typing import Any

from tests.integration.downloads.case import Answer, Case, End, Step, answer, page


def _by(proxy: str | None, **more: Any) -> dict[str, Any]:
    return {**more, "meta": {"proxy": proxy, "dont_retry": True}}


_MOVED: Answer = answer(b"", ("Location", "{other}/proxied-redirect/landed"), status="302 Found")

CASES = (
    Case(name="tls", url="{tls}/tls/"),
    Case(name="tls-post", url="{tls}/tls-post/", request={"method": "POST", "body": b"sealed"}),
    Case(name="tls-empty", url="{tls}/tls-empty/", answers=(answer(b""),)),
    Case(
        name="tls-cut",
        url="{tls}/tls-cut/",
        answers=((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", End.CLOSE),),
        request={"meta": {"dont_retry": True}},
    ),
    Case(
        name="tls-cookie",
        url="{tls}/tls-cookie/",
        answers=(answer(b"", ("Set-Cookie", "s=1; Secure; Path=/tls-cookie")), page()),
        then=(Step(url="{tls}/tls-cookie/two"),),
    ),
    Case(name="tls-to-plain-server", url="{plain-as-tls}/tls-to-plain-server/", request={"meta": {"dont_retry": True}}),
    Case(name="plain-to-tls-server", url="{tls-as-plain}/plain-to-tls-server/", request={"meta": {"dont_retry": True}}),
    Case(name="proxied", request=_by("{proxy}")),
    Case(name="proxied-query", url="{plain}/proxied-query/%2f?a=ü#part", request=_by("{proxy}")),
    Case(name="proxied-post", request=_by("{proxy}", method="POST", body=b"through")),
    Case(name="proxied-user", request=_by("http://us%65r:p%40ss@{proxy-address}")),
    Case(name="proxied-no-scheme", request=_by("{proxy-address}")),
    Case(name="proxied-own-header", request=_by("{proxy}", headers={"Proxy-Authorization": "Basic bWluZQ=="})),
    Case(
        name="proxied-redirect",
        answers=(_MOVED, page("landed")),
        request=_by("{proxy}"),
    ),
    Case(name="proxied-deaf", request=_by("{deaf}")),
    Case(name="proxied-none", request={"meta": {"proxy": None}, "headers": {"Proxy-Authorization": "Basic bWluZQ=="}}),
    Case(name="tunnelled", url="{tls}/tunnelled/", request=_by("{proxy}")),
    Case(name="tunnelled-user", url="{tls}/tunnelled-user/", request=_by("http://user:right@{proxy-address}")),
    Case(name="tunnelled-refused", url="{tls}/tunnelled-refused/", request=_by("http://user:wrong@{proxy-address}")),
    Case(name="tunnelled-post", url="{tls}/tunnelled-post/", request=_by("{proxy}", method="PUT", body=b"through")),
    Case(name="bound", request={"meta": {"bindaddress": "{net}.1.9"}}),
    Case(name="bound-port", request={"meta": {"bindaddress": ("{net}.1.8", 0)}}),
    Case(name="bound-tls", url="{tls}/bound-tls/", request={"meta": {"bindaddress": "{net}.1.9"}}),
)
