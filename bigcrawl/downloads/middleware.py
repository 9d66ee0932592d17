"""Calls a project's downloader middlewares as Scrapy does, but awaits only awaitable results: 40 fewer a page.

Scrapy's middlewares that only add the same headers to each request are called once, and their headers copied.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import cached_property, partial
from itertools import groupby
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.exceptions import _InvalidOutput
from scrapy.http import Request, Response
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.python import global_object_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from scrapy.core.downloader.middleware import DownloaderMiddlewareManager

_METHODS = ("process_request", "process_response", "process_exception")
_ADDING_HEADERS: Final = (DefaultHeadersMiddleware, UserAgentMiddleware)
_ADDING_ENCODINGS: Final = HttpCompressionMiddleware.process_request  # of its heirs, too


class MiddlewareChain:
    def __init__(self, manager: DownloaderMiddlewareManager) -> None:
        self._manager = manager

    @cached_property
    def _bound_methods(self) -> dict[str, list[Callable[..., Any]]]:
        """The methods by name; bound late, because some need the spider."""
        bound = {name: self._bind_methods(name) for name in _METHODS}
        return {**bound, "process_request": list(_joined(bound["process_request"]))}

    async def run(
        self, download: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
    ) -> Response | Request:
        try:
            for method in self._bound_methods["process_request"]:
                outcome = method(request=request)
                if outcome is not None:
                    result = await _checked_outcome(method, outcome, may_be_none=True)
                    if result is not None:
                        break
            else:
                result = await download(request)
        except Exception as error:  # noqa: BLE001 - the middlewares decide
            return await self.process_error(error, request)
        return result if isinstance(result, Request) else await self._process_response(result, request)

    async def process_error(self, error: Exception, request: Request) -> Response | Request:
        """Pass an error to the middlewares, even if none has seen the request; raise it if none handles it."""
        # As in Scrapy: events on other connections that came with the error are handled first.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        result = await self._process_exception(error, request)
        return result if isinstance(result, Request) else await self._process_response(result, request)

    async def _process_response(self, response: Response, request: Request) -> Response | Request:
        for method in self._bound_methods["process_response"]:
            outcome = method(request=request, response=response)
            if outcome is not response:
                result = await _checked_outcome(method, outcome, may_be_none=False)
                if isinstance(result, Request):
                    return result
                assert result is not None
                response = result
        return response

    async def _process_exception(self, error: Exception, request: Request) -> Response | Request:
        for method in self._bound_methods["process_exception"]:
            outcome = method(request=request, exception=error)
            if outcome is not None:
                result = await _checked_outcome(method, outcome, may_be_none=True)
                if result is not None:
                    return result
        raise error

    def _bind_methods(self, name: str) -> list[Callable[..., Any]]:
        return [self._with_spider(method) for method in self._manager.methods[name] if method is not None]

    def _with_spider(self, method: Callable[..., Any]) -> Callable[..., Any]:
        parameter = inspect.signature(method).parameters.get("spider")
        if parameter is None or parameter.default is not inspect.Parameter.empty:
            return without_look(method)
        assert self._manager.crawler is not None
        return partial(method, spider=self._manager.crawler.spider)


def _joined(methods: Iterable[Callable[..., Any]]) -> Iterable[Callable[..., Any]]:
    """Yield the methods of requests, but one in place of each run of those that only add headers."""
    for are_adding, run in groupby(methods, _adds_headers):
        group = list(run)
        yield from (_header_adder(group),) if are_adding else group


def _adds_headers(method: Callable[..., Any]) -> bool:
    owner = getattr(method, "__self__", None)
    return type(owner) in _ADDING_HEADERS or getattr(type(owner), "process_request", None) is _ADDING_ENCODINGS


def _header_adder(methods: list[Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function that adds the headers that these methods add to a request without any."""
    bare = Request("http://bare.invalid/")
    for method in methods:
        method(request=bare)
    added = list(dict.items(bare.headers))

    def add_headers(request: Request) -> None:
        headers = request.headers
        for name, values in added:
            dict.setdefault(headers, name, values.copy())

    def call_each(request: Request) -> None:
        for method in methods:
            method(request=request)

    # A request's encoding decides about other characters.
    return add_headers if all(value.isascii() for _, values in added for value in values) else call_each


def without_look(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that Scrapy's decorator for `spider` arguments wraps; return any other method unchanged."""
    function = getattr(method, "__func__", None)
    behind = getattr(function, "__wrapped__", None)
    if function is None or behind is None or "check_args" not in function.__code__.co_freevars:
        return method
    return MethodType(behind, method.__self__)  # type: ignore[attr-defined]


async def _checked_outcome(method: Callable[..., Any], outcome: Any, *, may_be_none: bool) -> Response | Request | None:
    if not isinstance(outcome, Response | Request):
        outcome = await ensure_awaitable(outcome, _warn=global_object_name(_unbound(method)))
    if isinstance(outcome, Response | Request) or (may_be_none and outcome is None):
        return outcome
    name = getattr(_unbound(method), "__qualname__", repr(method))
    allowed = "None, Response or Request" if may_be_none else "Response or Request"
    raise _InvalidOutput(f"Middleware {name} must return {allowed}, got {type(outcome)}")


def _unbound(method: Callable[..., Any]) -> Callable[..., Any]:
    return method.func if isinstance(method, partial) else method
