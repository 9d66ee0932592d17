"""Scrapy's HttpCompressionMiddleware, held to limits that a bomb does not pass.

Scrapy unpacks a body up to DOWNLOAD_MAXSIZE, as many times as the answer names encodings. Here it may also not grow
by more than BIGCRAWL_DECOMPRESSION_RATIO_MAX, nor be packed more often than BIGCRAWL_ENCODINGS_MAX. What is refused
is counted by reason, no spider sees it, and its URL ends as `error:too-large`; its WARC record has it as it came. What
is not packed as its head says, on which Scrapy's fails with a traceback, is counted and seen by no spider either.

This overrides `_handle_encoding` and `_decode`, which Scrapy does not document; a release that renames them leaves
Scrapy's own limit in force, and a test fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.utils._compression import _DecompressionMaxSizeExceeded

from bigcrawl.config import read_config
from bigcrawl.extensions.tally import Tally
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

FREE_BYTES: Final = 1 << 20
"""A body that is no larger when it is unpacked is no bomb, however small it was."""


GZIP_MEMBERS_MAX: Final = 4_096
"""Parts of a gzip file, each of which costs 6 us, however small it is."""

GZIP_FREE_BYTES: Final = 64 << 10  # has no more of them
_GZIP: Final = b"\x1f\x8b\x08"


class BodyRefusedError(IgnoreRequest):
    """A body that is not unpacked, for a limit of ours."""


class CompressionMiddleware(HttpCompressionMiddleware):
    """See the module. Works without the frontier too; then an unpacked body is refused all the same."""

    def __init__(self, *, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self._crawler = crawler
        self._limits = read_config(crawler.settings).limits
        self._tally = Tally(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("COMPRESSION_ENABLED"):
            raise NotConfigured
        return cls(crawler=crawler)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Unpack the body.

        Raises:
            IgnoreRequest: it is larger, or packed otherwise, than the limits allow, or than it says itself.
        """
        if b"Content-Encoding" not in response.headers:
            return response
        try:
            unpacked: Request | Response = super().process_response(request, response)
        except IgnoreRequest as error:
            if not isinstance(error, BodyRefusedError):
                self._tally.inc_value("bigcrawl/limits/decompressed-size")
            frontier = frontier_of(self._crawler)
            if frontier is not None:
                frontier.started.note_too_large(request)
            raise
        except Exception as error:
            self._tally.inc_value("bigcrawl/limits/packing")
            raise IgnoreRequest(f"a body is not packed as its Content-Encoding says: {error}") from error
        return unpacked

    def _handle_encoding(self, body: bytes, content_encoding: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        packed, _ = self._split_encodings(content_encoding)
        if len(packed) > self._limits.encodings_max:
            self._tally.inc_value("bigcrawl/limits/encodings")
            raise BodyRefusedError(f"a body is packed {len(packed)} times, which is more than BIGCRAWL_ENCODINGS_MAX")
        bound = max(FREE_BYTES, len(body) * self._limits.decompression_ratio_max)
        if 0 < max_size <= bound:
            return super()._handle_encoding(body, content_encoding, max_size)
        try:
            return super()._handle_encoding(body, content_encoding, bound)
        except _DecompressionMaxSizeExceeded as error:
            self._tally.inc_value("bigcrawl/limits/decompression-ratio")
            message = f"a body of {len(body)} bytes grows more than BIGCRAWL_DECOMPRESSION_RATIO_MAX times"
            raise BodyRefusedError(message) from error

    @staticmethod
    def _decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
        if len(body) > GZIP_FREE_BYTES and body.startswith(_GZIP) and body.count(_GZIP) > GZIP_MEMBERS_MAX:
            raise ValueError(f"it has more than {GZIP_MEMBERS_MAX} parts")
        unpacked: bytes = HttpCompressionMiddleware._decode(body, encoding, max_size)
        return unpacked
