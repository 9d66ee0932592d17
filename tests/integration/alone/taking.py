"""Middlewares that take requests, or put others in their places."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request


class TakesTheFirst:
    """Gives the first request back to the scheduler."""

    def __init__(self) -> None:
        self._has_taken = False

    def process_request(self, request: Request) -> Request | None:
        """Return a request in the request's place, once."""
        if self._has_taken:
            return None
        self._has_taken = True
        logging.getLogger(__name__).info("took %s", request.url)
        return request.replace(dont_filter=True)


class Rewrites:
    """Puts another request in the place of each, as middlewares for some proxies do."""

    def process_request(self, request: Request) -> Request | None:
        """Mark the URL."""
        return None if "via" in request.url else request.replace(url=f"{request.url}?via", dont_filter=True)
