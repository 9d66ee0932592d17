"""Scrapy's HttpCompressionMiddleware with limits against decompression bombs.

Scrapy decompresses a body up to DOWNLOAD_MAXSIZE, through all encodings that the answer names. Here the body may also
not grow by more than BIGCRAWL_DECOMPRESSION_RATIO_MAX, nor have more encodings than BIGCRAWL_ENCODINGS_MAX. A refused
body is counted by reason, its URL ends as `error:too-large`, and the spider does not see it; the WARC record has it as
received. A body that cannot be unpacked is counted, too; the error is Scrapy's.

A body that is not encoded as its header says is read by its first bytes: as gzip, zlib or zstd, or as it is if it is
text, as Chromium and Firefox do. Empty elements of Content-Encoding, and `identity`, say nothing.

This overrides `_handle_encoding`, `_split_encodings` and `_decode`, which Scrapy does not document. If a release
renames them, Scrapy's own limit remains in force, and a test fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.utils._compression import _DecompressionMaxSizeExceeded

from bigcrawl.config import read_config
from bigcrawl.downloads.response_parts import response_class
from bigcrawl.media_types import is_binary
from bigcrawl.scheduler.adapter.fetch_errors import UNPACKING
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

FREE_BYTES: Final = 1 << 20
"""A body that stays within this size is not a bomb, however small it was."""


GZIP_MEMBERS_MAX: Final = 4_096
"""Members of a gzip file. Each costs 6 us, however small."""

GZIP_FREE_BYTES: Final = 64 << 10  # a smaller file cannot have more members
_GZIP: Final = b"\x1f\x8b\x08"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
# Those of zlib say less than a header, because a text or brotli may have them.
_ZLIB: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_USUAL: Final = frozenset({b"gzip", b"br", b"zstd"})
_NO_ENCODINGS: Final = frozenset({b"", b"identity"})


class BodyRefusedError(IgnoreRequest):
    """A body is not decompressed because it exceeds a limit."""


class CompressionMiddleware(HttpCompressionMiddleware):
    """See the module. It works without the frontier too."""

    def __init__(self, *, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self._crawler = crawler
        self._limits = read_config(crawler.settings).limits
        self._stats_buffer = StatsBuffer(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("COMPRESSION_ENABLED"):
            raise NotConfigured
        return cls(crawler=crawler)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Decompress the body.

        Raises:
            IgnoreRequest: the body exceeds a limit.
            Exception: what Scrapy raises on a body that is not encoded as its header says, with the note `UNPACKING`.
        """
        if b"Content-Encoding" not in response.headers or _is_cut_at_headers(response):
            return response
        try:
            unpacked: Request | Response = super().process_response(request, response)
        except IgnoreRequest as error:
            if not isinstance(error, BodyRefusedError):
                self._stats_buffer.inc_value("bigcrawl/limits/decompressed-size")
            frontier = frontier_of(self._crawler)
            if frontier is not None:
                frontier.started.note_too_large(request)
            raise
        except Exception as error:
            self._stats_buffer.inc_value("bigcrawl/limits/packing")
            error.add_note(UNPACKING)
            raise
        frontier = frontier_of(self._crawler)
        if not isinstance(unpacked, Response):
            return unpacked
        if not isinstance(unpacked, HtmlResponse):
            kind = response_class(unpacked.headers, unpacked.url, unpacked.body)
            unpacked = unpacked if isinstance(unpacked, kind) else unpacked.replace(cls=kind, encoding=None)
        if frontier is not None:
            frontier.started.note_unpacked(request, unpacked, len(response.body))
        return unpacked

    def _handle_encoding(self, body: bytes, content_encoding: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        packed, _ = self._split_encodings(content_encoding)
        if len(packed) > self._limits.encodings_max:
            self._stats_buffer.inc_value("bigcrawl/limits/encodings")
            raise BodyRefusedError(f"a body is packed {len(packed)} times, which is more than BIGCRAWL_ENCODINGS_MAX")
        bound = max(FREE_BYTES, len(body) * self._limits.decompression_ratio_max)
        if 0 < max_size <= bound:
            return super()._handle_encoding(body, content_encoding, max_size)
        try:
            return super()._handle_encoding(body, content_encoding, bound)
        except _DecompressionMaxSizeExceeded as error:
            self._stats_buffer.inc_value("bigcrawl/limits/decompression-ratio")
            message = f"a body of {len(body)} bytes grows more than BIGCRAWL_DECOMPRESSION_RATIO_MAX times"
            raise BodyRefusedError(message) from error

    @staticmethod
    def _split_encodings(content_encoding: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        if len(content_encoding) == 1 and content_encoding[0] in _USUAL:
            return content_encoding, []
        named = [part.strip().lower() for header in content_encoding for part in header.split(b",")]
        split: tuple[list[bytes], list[bytes]]
        split = HttpCompressionMiddleware._split_encodings([name for name in named if name not in _NO_ENCODINGS])
        return split

    @staticmethod
    def _decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
        if len(body) > GZIP_FREE_BYTES and body.startswith(_GZIP) and body.count(_GZIP) > GZIP_MEMBERS_MAX:
            raise ValueError(f"it has more than {GZIP_MEMBERS_MAX} parts")
        if body.startswith(_GZIP):
            encoding = b"gzip"
        elif body.startswith(_ZSTD):
            encoding = b"zstd"
        if encoding == b"deflate" and body and not is_binary(body):
            return body  # some texts are raw deflate of something
        try:
            unpacked: bytes = HttpCompressionMiddleware._decode(body, encoding, max_size)
        except _DecompressionMaxSizeExceeded:
            raise
        except Exception:
            if encoding != b"deflate" and body.startswith(_ZLIB):
                return CompressionMiddleware._decode(body, b"deflate", max_size)
            if not body or is_binary(body):
                raise
            return body
        return unpacked


def _is_cut_at_headers(response: Response) -> bool:
    """Whether a filter did not want the body; an empty body that came is what Scrapy makes of it."""
    return not response.body and "download_stopped" in response.flags
