"""An extension that listens to all signals of a download, notes them by case, and stops downloads as told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import StopDownload

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response


class Watch:
    """`spider.more["signals"]`: by case, what was heard in its order; runs of `bytes` are one, with their sum."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.heard: dict[str, list[Any]] = {}
        connect = crawler.signals.connect
        connect(self.reached, signals.request_reached_downloader)
        connect(self.left, signals.request_left_downloader)
        connect(self.got_headers, signals.headers_received)
        connect(self.got_bytes, signals.bytes_received)
        connect(self.downloaded, signals.response_downloaded)
        connect(self.received, signals.response_received)
        connect(self.opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def opened(self, spider: Spider) -> None:
        spider.more = {"signals": self.heard}  # type: ignore[attr-defined]

    def reached(self, request: Request, spider: Spider) -> None:
        self._note(request, "reached", request.url, spider.name)

    def left(self, request: Request, spider: Spider) -> None:
        self._note(request, "left", request.url, spider.name)

    def downloaded(self, response: Response, request: Request, spider: Spider) -> None:
        self._note(request, "downloaded", response.status, len(response.body), spider.name)

    def received(self, response: Response, request: Request, spider: Spider) -> None:
        self._note(request, "received", response.status, len(response.body), spider.name)

    def got_headers(self, headers: Headers, body_length: Any, request: Request, spider: Spider) -> None:
        length = body_length if isinstance(body_length, int) else "unknown"
        known = {name.decode("latin-1"): list(map(repr, headers.getlist(name))) for name in sorted(headers)}
        self._note(request, "headers", known, length, spider.name)
        self._stop(request, "headers")

    def got_bytes(self, data: bytes, request: Request, spider: Spider) -> None:
        heard = self.heard.setdefault(request.meta.get("case", ""), [])
        if not heard or heard[-1][0] != "bytes":
            heard.append(["bytes", 0])
        # How much comes beyond a limit depends on how the kernel cuts it: one byte stands for all.
        most = request.meta.get("download_maxsize", 0) + 1
        heard[-1][1] = heard[-1][1] + len(data) if most == 1 else min(heard[-1][1] + len(data), most)
        self._stop(request, "bytes")

    def _note(self, request: Request, *what: Any) -> None:
        self.heard.setdefault(request.meta.get("case", ""), []).append(list(what))

    def _stop(self, request: Request, signal: str) -> None:
        wanted, fail = request.meta.get("stop", ["", False])
        if wanted == signal:
            raise StopDownload(fail=fail)
        if wanted == "broken":
            raise LookupError("a handler that fails")
