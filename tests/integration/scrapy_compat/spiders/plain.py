"""One plain spider that asks for a page in every way there is, and tells in items what came back."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from scrapy import Field, FormRequest, Item, Request, Spider
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.http import JsonRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

WHEN = datetime.datetime(2026, 11, 21, 12, 30, tzinfo=datetime.UTC)


class Basket(Item):
    goods = Field()


class PlainSpider(Spider):
    name = "plain"

    def __init__(self, origins: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site, *self.others = origins.split(",")
        self.start_urls = [f"{self.site}/"]

    def parse(self, response: Any) -> Iterator[Any]:
        yield self.seen("home", response)
        yield from response.follow_all(css="a", callback=self.parse_page, cb_kwargs={"how": "follow_all"})
        yield response.follow("/page/4", self.parse_page, cb_kwargs={"how": "follow"})
        yield Request(f"{self.site}/page/1", self.parse_page, cb_kwargs={"how": "again"})  # seen before
        yield from self.with_everything()
        yield from self.with_bodies()
        yield from self.that_fail()
        yield from self.that_are_redirected()
        for number in range(3):
            yield Request(f"{self.site}/page/always", self.parse_page, cb_kwargs={"how": number}, dont_filter=True)

    def with_everything(self) -> Iterator[Request]:
        yield Request(
            f"{self.site}/echo/everything?b=2&a=1#here",
            callback=self.parse_everything,
            cb_kwargs={
                "number": 3,
                "pair": (1, ("two", 3)),
                "nested": {"list": [1.5, None, True], 7: "seven"},
            },
            meta={"when": WHEN, "members": {1, 2}, "raw": b"\x00\xff", "basket": Basket(goods=[9])},
            headers={"X-Many": ["one", "two"], "Accept-Language": "de"},
            cookies=[{"name": "basket", "value": "full"}],
            encoding="latin-1",
            flags=["flagged"],
            priority=3,
        )

    def with_bodies(self) -> Iterator[Request]:
        url = f"{self.site}/echo/body"
        yield FormRequest(url, self.parse_echo, formdata={"query": "caf\u00e9", "page": ["1", "2"]})
        yield FormRequest(url, self.parse_echo, formdata={"query": "other"})
        yield JsonRequest(url, callback=self.parse_echo, data={"query": ["json", 1]})
        yield Request(url, self.parse_echo, method="PUT", body=bytes(range(256)))
        yield Request(url, self.parse_echo, method="HEAD")
        yield Request(url, self.parse_echo)

    def that_fail(self) -> Iterator[Request]:
        def ask(path: str, origin: str = self.site, **meta: Any) -> Request:
            return Request(origin + path, self.parse_page, errback=self.failed, cb_kwargs={"how": path}, meta=meta)

        yield ask("/status/404")
        yield ask("/status/500", dont_retry=True)
        yield ask("/status/410", handle_httpstatus_list=[410])
        yield ask("/private/page")
        yield ask("/page/raises")
        # A host that is asked to come back later is left alone for seconds: each has its own.
        yield ask("/flaky/1/comes", self.others[1])
        yield ask("/flaky/9/never", self.others[2])
        yield ask("/flaky/1/spider", self.others[3], dont_retry=True, handle_httpstatus_all=True)

    def that_are_redirected(self) -> Iterator[Request]:
        for name in ("same", "cross", "chain", "loop-a"):
            url = f"{self.site}/redirect/{name}"
            yield Request(url, self.parse_page, errback=self.failed, cb_kwargs={"how": name}, meta={"tag": name})
        # To themselves: only so does Scrapy's own duplicate filter let them through.
        for path in ("/redirect/forever", "/cookie-gate"):
            yield Request(
                self.site + path,
                self.parse_page,
                errback=self.failed,
                cb_kwargs={"how": path},
                dont_filter=True,
            )
        for status in (303, 307):
            yield FormRequest(f"{self.site}/redirect/post-{status}", self.parse_echo, formdata={"status": str(status)})

    def parse_page(self, response: Response, how: Any) -> Iterator[Any]:
        if response.url.endswith("/raises"):
            raise ValueError("a callback of somebody's that fails")
        if response.status == 503 and response.meta.get("dont_retry"):
            request = response.request
            assert request is not None
            again = get_retry_request(request, spider=self, reason="busy")
            assert again is not None
            yield again
            return
        came_by = [*response.meta.get("redirect_urls", ()), response.meta.get("tag")]
        yield self.seen("page", response, how=how, status=response.status, came_by=came_by)

    async def parse_everything(
        self, response: Any, number: int, pair: tuple[Any, ...], nested: dict[Any, Any]
    ) -> AsyncIterator[Any]:
        request, meta, headers = response.request, response.meta, response.json()["headers"]
        yield self.seen(
            "everything",
            response,
            number=number,
            pair=[type(pair).__name__, type(pair[1]).__name__, pair],
            nested=repr(nested),
            when=meta["when"].isoformat(),
            members=repr(meta["members"]),
            raw=repr(meta["raw"]),
            basket=repr(meta["basket"]),
            headers={name: headers[name] for name in ("x-many", "accept-language", "cookie")},
            request=[request.method, request.encoding, request.flags, request.priority, request.cookies],
        )
        yield Request(f"{self.site}/page/from-async", self.parse_page, cb_kwargs={"how": "async"})

    def parse_echo(self, response: Any) -> Iterator[Any]:
        said: dict[str, Any] = response.json() if response.body else {"method": "HEAD", "headers": {}, "body": ""}
        fields = {"method": said["method"], "body": said["body"], "class": type(response.request).__name__}
        fields["content_type"] = said["headers"].get("content-type")
        yield self.seen("echo", response, **fields)

    def failed(self, failure: Failure) -> Iterator[Any]:
        request = failure.request  # type: ignore[attr-defined]
        how = request.cb_kwargs["how"]
        kinds = {kind.__name__ for kind in type(failure.value).__mro__}
        kind = "HttpError" if "HttpError" in kinds else "IgnoreRequest" if "IgnoreRequest" in kinds else repr(failure)
        yield {"kind": "errback", "how": how, "error": kind}
        yield Request(f"{self.site}/page/after{how}", self.parse_page, cb_kwargs={"how": "errback"})

    def seen(self, kind: str, response: Response, **fields: Any) -> dict[str, Any]:
        return {"kind": kind, "url": response.url, "depth": response.meta.get("depth"), **fields}
