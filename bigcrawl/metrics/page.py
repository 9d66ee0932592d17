from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from twisted.web.resource import Resource

from bigcrawl.serving.sites import QuietSite

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.web.server import Request

logger = logging.getLogger(__name__)

KEPT_S: Final = 0.5  # requests within this time get the same text, which bounds their cost


class MetricsPage(Resource):
    """The page /metrics; `write` returns text and content type for an Accept header. Its first error is logged."""

    isLeaf = True  # noqa: N815 - Twisted's name

    def __init__(self, write: Callable[[str], tuple[bytes, str]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._write = write
        self._kept: tuple[float, str, tuple[bytes, str]] = (0.0, "", (b"", ""))  # expiry, Accept header, page
        self._has_failed = False

    def render_GET(self, request: Request) -> bytes:  # noqa: N802 - Twisted's name
        try:
            text, content_type = self._cached_text(request.getHeader("accept") or "")
        except Exception:
            if not self._has_failed:
                logger.exception("the metrics could not be written; this is logged once")
            self._has_failed = True
            request.setResponseCode(500)
            return b""
        request.setHeader("content-type", content_type)  # type: ignore[no-untyped-call]
        return text

    def _cached_text(self, accept: str) -> tuple[bytes, str]:
        until, accepted, written = self._kept
        now = time.monotonic()
        if now >= until or accepted != accept:
            written = self._write(accept)
            self._kept = (now + KEPT_S, accept, written)
        return written


def metrics_site(write: Callable[[str], tuple[bytes, str]]) -> QuietSite:
    root = Resource()  # type: ignore[no-untyped-call]
    root.putChild(b"metrics", MetricsPage(write))  # type: ignore[arg-type]  # zope's interfaces are not known to mypy
    return QuietSite(root)
