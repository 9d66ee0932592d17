"""A downloader middleware that passes pages to a renderer, and its documents to the spider and the WARC files.

A page that was in a browser that died or hung is a suspect, as a URL is that was in process when a node died: it is
tried again, alone in a browser. A proven one reaches the spider as it was fetched, with the flag `render-suspect`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse

from bigcrawl.config import read_config
from bigcrawl.features.rendering.settings import AUTO, RenderConfig
from bigcrawl.given import import_object
from bigcrawl.links import decoded_start
from bigcrawl.middlewares.page_requests import PageRequests
from bigcrawl.scheduler.adapter.registry import notes_of
from bigcrawl_rendering.interface import PageSuspectError, RawPage
from bigcrawl_rendering.loads import KeptAnswers, PageLoads
from bigcrawl_rendering.rules import BlockedHosts, PageChoice
from bigcrawl_rendering.scanning import CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.middlewares.page_requests import PageTurn
    from bigcrawl_rendering.interface import Rendered, Renderer

logger = logging.getLogger(__name__)

RENDERED: Final = "rendered"
RAW: Final = {"suspect": "render-suspect", "failed": "render-failed"}
"""The flags of responses that were rendered, and of those that should have been."""

TRIES_MAX: Final = 4
"""The first of them beside other pages. A page that hangs alone has no further one."""
LOOK_S: Final = 0.25
TYPE: Final = "text/html; charset=utf-8"
_UNPACKED: Final = ("Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding")


class RenderedPage(HtmlResponse):
    """A page after its scripts; `raw` is the response as it was fetched."""

    attributes = (*HtmlResponse.attributes, "raw")

    def __init__(self, *args: Any, raw: Response | None = None, **kwargs: Any) -> None:
        self.raw = raw
        super().__init__(*args, **kwargs)


class RenderMiddleware:
    def __init__(self, crawler: Crawler, renderer: Renderer) -> None:
        config = read_config(crawler.settings)
        self._config = config.feature_config(RenderConfig)
        self._crawler = crawler
        self._renderer = renderer
        self._requests = PageRequests(crawler)
        self._choice = PageChoice(self._config.always, self._config.never, detects=self._config.mode == AUTO)
        self._blocked = BlockedHosts(self._config.blocked)
        self._kept = KeptAnswers()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        path = read_config(crawler.settings).feature_config(RenderConfig).renderer
        middleware = cls(crawler, import_object("BIGCRAWL_RENDERER", path).from_crawler(crawler))
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        return middleware

    def spider_opened(self) -> None:
        self._requests.begin()

    async def spider_closed(self) -> None:
        await self._renderer.close()

    def process_response(self, request: Request, response: Response) -> Response | Coroutine[Any, Any, Response]:
        if response.status != 200 or not isinstance(response, HtmlResponse) or request.method != "GET":
            return response
        turn = self._requests.turn_of(request)
        if turn is None:
            return response
        page = response
        verdict = self._choice.verdict_on(request.url, lambda: decoded_start(page, CHARS_MAX))
        if not verdict:
            return response
        self._count(f"reasons/{verdict.reason}")
        return self._render(request, response, turn, verdict.reason)

    async def _render(self, request: Request, response: Response, turn: PageTurn, reason: str) -> Response:
        config = self._config
        loads = PageLoads(turn, request.url, self._kept, config.loads, self._blocked, config.requests_max)
        headers = {
            name.decode("latin-1").lower(): b", ".join(values).decode("latin-1")
            for name, values in response.headers.items()
        }
        try:
            rendered = await self._try_to_render(request, RawPage(request.url, response.body, headers), loads)
        except PageSuspectError as error:
            return self._raw(request, response, "suspect", error)
        except IgnoreRequest:
            raise  # the page returns to its queue
        except Exception as error:  # noqa: BLE001 - of any renderer
            return self._raw(request, response, "failed", error)
        finally:
            await loads.end()
            for end, count in loads.counts.items():
                self._count(f"requests/{end}", count)
        return self._page(request, response, rendered, loads, reason)

    async def _try_to_render(self, request: Request, page: RawPage, loads: PageLoads) -> Rendered:
        for tries in range(1, TRIES_MAX + 1):
            try:
                return await self._wait_for(request, self._renderer.render(page, loads, alone=tries > 1))
            except PageSuspectError as error:
                if tries == TRIES_MAX or (error.hangs and tries > 1):
                    raise
                logger.debug("%(url)s is rendered again, alone: %(error)s", {"url": page.url, "error": error})
        raise AssertionError("the last try ends")

    async def _wait_for(self, request: Request, work: Coroutine[Any, Any, Rendered]) -> Rendered:
        """Wait for a renderer. If the node stops meanwhile, the page returns to its queue."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_S)
                if self._requests.are_ending and not task.done():
                    raise self._requests.abort(request)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task

    def _page(
        self, request: Request, response: Response, rendered: Rendered, loads: PageLoads, reason: str
    ) -> RenderedPage:
        is_cut = rendered.is_cut or loads.is_cut
        body = _with_links(rendered).encode("utf-8", "replace")
        self._count("pages")
        self._count("links", len(rendered.links))
        self._count("cut", int(is_cut))
        if (notes := notes_of(self._crawler)) is not None:
            counts = ", ".join(f"{end} {count}" for end, count in sorted(loads.counts.items()))
            fields = {"renderedBy": rendered.by, "renderedFor": reason, "renderedRequests": counts or "none"}
            notes.record_page(request, fields | ({"renderedTruncated": "yes"} if is_cut else {}))
            notes.record_conversion(request, TYPE, body)
        headers = response.headers.copy()
        for name in _UNPACKED:
            headers.pop(name, None)
        headers["Content-Type"] = TYPE
        return RenderedPage(
            response.url,
            status=response.status,
            headers=headers,
            body=body,
            flags=[*response.flags, RENDERED],
            request=request,
            certificate=response.certificate,
            ip_address=response.ip_address,
            protocol=response.protocol,
            encoding="utf-8",
            raw=response,
        )

    def _raw(self, request: Request, response: Response, reason: str, error: Exception) -> Response:
        self._count(f"raw/{reason}")
        level = logging.WARNING if reason == "failed" else logging.INFO
        logger.log(level, "%(url)s stays as it was fetched: %(error)r", {"url": request.url, "error": error})
        return response.replace(flags=[*response.flags, RAW[reason]])

    def _count(self, key: str, count: int = 1) -> None:
        assert self._crawler.stats is not None
        if count:
            self._crawler.stats.inc_value(f"render/{key}", count)


def _with_links(rendered: Rendered) -> str:
    """Return the document, with the links that none of its elements has in an extra `nav` at its end."""
    if not rendered.links:
        return rendered.html
    links = "".join(f'<a href="{escape(url)}"></a>' for url in rendered.links)
    before, end, after = rendered.html.rpartition("</body>")
    return f'{before or after}<nav hidden data-bigcrawl="found">{links}</nav>{end}{after if end else ""}'
