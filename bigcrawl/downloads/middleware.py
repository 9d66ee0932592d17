"""Calls a project's downloader middlewares at less cost.

Scrapy awaits each method of each middleware, although nearly all are plain functions that return at once: 40 awaits per
page with its defaults. Here a result is awaited only if it is awaitable. Order, arguments, allowed results and errors
are Scrapy's (docs: Downloader Middleware).
"""

from __future__ import annotations

import asyncio
import inspect
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import _InvalidOutput
from scrapy.http import Request, Response
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.python import global_object_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.core.downloader.middleware import DownloaderMiddlewareManager

_METHODS = ("process_request", "process_response", "process_exception")


class MiddlewareChain:
    """Runs the middlewares of Scrapy's own manager, in its order."""

    def __init__(self, manager: DownloaderMiddlewareManager) -> None:
        self._manager = manager

    @cached_property
    def _bound(self) -> dict[str, list[Callable[..., Any]]]:
        """Collect the methods by name. Done lazily, because some need the spider, which is set late."""
        return {name: self._bind(name) for name in _METHODS}

    async def run(
        self, download: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
    ) -> Response | Request:
        """Send a request down the chain and through `download`, and the result up again."""
        try:
            result = await self._down(download, request)
        except Exception as error:  # noqa: BLE001 - it is for the middlewares to say what it is
            return await self.raised(error, request)
        return result if isinstance(result, Request) else await self._up(result, request)

    async def raised(self, error: Exception, request: Request) -> Response | Request:
        """Send an error up the chain, even if no request was sent down; raise it if no middleware handles it."""
        # As in Scrapy: events that arrived with the error, on other connections, are handled first.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        result = await self._around(error, request)
        return result if isinstance(result, Request) else await self._up(result, request)

    async def _down(
        self, download: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
    ) -> Response | Request:
        for method in self._bound["process_request"]:
            outcome = method(request=request)
            if outcome is not None:
                result = await _settled(method, outcome, may_be_none=True)
                if result is not None:
                    return result
        return await download(request)

    async def _up(self, response: Response, request: Request) -> Response | Request:
        for method in self._bound["process_response"]:
            outcome = method(request=request, response=response)
            # The common case first: a method that inspects a response and returns it.
            if outcome is not response:
                result = await _settled(method, outcome, may_be_none=False)
                if isinstance(result, Request):
                    return result
                assert result is not None
                response = result
        return response

    async def _around(self, error: Exception, request: Request) -> Response | Request:
        for method in self._bound["process_exception"]:
            outcome = method(request=request, exception=error)
            if outcome is not None:
                result = await _settled(method, outcome, may_be_none=True)
                if result is not None:
                    return result
        raise error

    def _bind(self, name: str) -> list[Callable[..., Any]]:
        """Return the methods of a name in order, with the spider bound for those that still take it."""
        return [self._with_spider(method) for method in self._manager.methods[name] if method is not None]

    def _with_spider(self, method: Callable[..., Any]) -> Callable[..., Any]:
        parameter = inspect.signature(method).parameters.get("spider")
        if parameter is None or parameter.default is not inspect.Parameter.empty:
            return method
        assert self._manager.crawler is not None
        return partial(method, spider=self._manager.crawler.spider)


async def _settled(method: Callable[..., Any], outcome: Any, *, may_be_none: bool) -> Response | Request | None:
    """Return a method's result, awaited if needed.

    Raises:
        _InvalidOutput: a middleware may not return this.
    """
    if not isinstance(outcome, Response | Request):
        outcome = await ensure_awaitable(outcome, _warn=global_object_name(_unbound(method)))
    if isinstance(outcome, Response | Request) or (may_be_none and outcome is None):
        return outcome
    name = getattr(_unbound(method), "__qualname__", repr(method))
    allowed = "None, Response or Request" if may_be_none else "Response or Request"
    raise _InvalidOutput(f"Middleware {name} must return {allowed}, got {type(outcome)}")


def _unbound(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the underlying method of one that is given the spider."""
    return method.func if isinstance(method, partial) else method
