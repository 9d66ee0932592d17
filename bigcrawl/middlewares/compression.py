"""Scrapy's HttpCompressionMiddleware with limits against decompression bombs.

A body that exceeds a limit is counted, its URL ends as `error:too-large`, and the WARC record has the body as received.
If a body is not encoded as its header says, its first bytes decide, as in Chromium and Firefox.

This overrides private methods of Scrapy. If a release renames them, Scrapy's own limit remains in force, and a test
fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.utils._compression import _DecompressionMaxSizeExceeded

from bigcrawl.config import read_config
from bigcrawl.downloads.response_parts import response_class
from bigcrawl.downloads.unread import unread_of
from bigcrawl.media_types import is_binary
from bigcrawl.scheduler.adapter.fetch_errors import UNPACKING
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

FREE_BYTES: Final = 1 << 20
"""A body within this size is not a bomb, whatever its ratio."""


FEW_PARTS_BYTES: Final = 32 << 10  # a smaller body cannot have more frames than packing.PARTS_MAX
_GZIP: Final = b"\x1f\x8b\x08"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = b"\x2a\x4d\x18"  # zstd frames without data, after a first byte that varies
# These may also begin a text or brotli, so the header counts more.
_ZLIB: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_USUAL: Final = frozenset({b"gzip", b"br", b"zstd"})
_NO_ENCODINGS: Final = frozenset({b"", b"identity"})


class BodyRefusedError(IgnoreRequest):
    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class CompressionMiddleware(HttpCompressionMiddleware):
    def __init__(self, *, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self._crawler = crawler
        self._limits = read_config(crawler.settings).limits
        self._unread = unread_of(crawler)
        self._is_cut = False  # whether the last unpacked body was incomplete; `process_response` reads it at once

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("COMPRESSION_ENABLED"):
            raise NotConfigured
        return cls(crawler=crawler)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Unpack a body; raise IgnoreRequest beyond a limit. Scrapy's error for damage gets the note `UNPACKING`."""
        if b"Content-Encoding" not in response.headers or _is_cut_at_headers(response):
            return response
        self._is_cut = False
        try:
            unpacked: Request | Response = super().process_response(request, response)
        except IgnoreRequest as error:
            if not isinstance(error, BodyRefusedError):
                self._unread.record_unread(request, "decompressed-size")
            else:
                self._unread.record_unread(request, error.limit)
            frontier = frontier_of(self._crawler)
            if frontier is not None:
                frontier.started.record_too_large(request)
            raise
        except Exception as error:
            self._unread.record_unread(request, "packing")
            error.add_note(UNPACKING)
            raise
        frontier = frontier_of(self._crawler)
        if not isinstance(unpacked, Response):
            return unpacked
        is_packed = b"Content-Encoding" in unpacked.headers and is_binary(unpacked.body)
        if self._is_cut or is_packed:
            self._unread.record_unread(request, "packing")
        if not isinstance(unpacked, HtmlResponse):
            kind = response_class(unpacked.headers, unpacked.url, unpacked.body)
            unpacked = unpacked if isinstance(unpacked, kind) else unpacked.replace(cls=kind, encoding=None)
        if frontier is not None:
            frontier.started.record_unpacked(request, unpacked, len(response.body))
        return unpacked

    def _handle_encoding(self, body: bytes, content_encoding: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        packed, _ = self._split_encodings(content_encoding)
        if len(packed) > self._limits.encodings_max:
            message = f"a body is packed {len(packed)} times, which is more than BIGCRAWL_ENCODINGS_MAX"
            raise BodyRefusedError(message, "encodings")
        bound = max(FREE_BYTES, len(body) * self._limits.decompression_ratio_max)
        if 0 < max_size <= bound:
            return super()._handle_encoding(body, content_encoding, max_size)
        try:
            return super()._handle_encoding(body, content_encoding, bound)
        except _DecompressionMaxSizeExceeded as error:
            message = f"a body of {len(body)} bytes grows more than BIGCRAWL_DECOMPRESSION_RATIO_MAX times"
            raise BodyRefusedError(message, "decompression-ratio") from error

    @staticmethod
    def _split_encodings(content_encoding: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        if len(content_encoding) == 1 and content_encoding[0] in _USUAL:
            return content_encoding, []
        named = [_name_of(part) for header in content_encoding for part in header.split(b",")]
        split: tuple[list[bytes], list[bytes]]
        split = HttpCompressionMiddleware._split_encodings([name for name in named if name not in _NO_ENCODINGS])
        return split

    def _decode(self, body: bytes, encoding: bytes, max_size: int) -> bytes:  # type: ignore[override]
        unpacked, is_whole = unpacked_by(encoding, body, max_size)
        self._is_cut = self._is_cut or not is_whole
        return unpacked


def unpacked_by(encoding: bytes, body: bytes, max_size: int) -> tuple[bytes, bool]:
    """Decode one content encoding, as named or as the first bytes show; also return whether the body is complete."""
    from bigcrawl.downloads.packing import PARTS_MAX, gunzip  # with the first packed body

    if body.startswith(_GZIP):
        return gunzip(body, max_size)
    if body.startswith(_ZSTD):
        encoding = b"zstd"
    is_long = encoding == b"zstd" and len(body) > FEW_PARTS_BYTES
    if is_long and body.count(_ZSTD) + body.count(_SKIPPABLE) > PARTS_MAX:
        raise ValueError(f"its compressed body has more than {PARTS_MAX} parts")
    if encoding == b"deflate" and body and not is_binary(body):
        return body, True  # some texts are raw deflate of something
    try:
        return HttpCompressionMiddleware._decode(body, encoding, max_size), True
    except _DecompressionMaxSizeExceeded:
        raise
    except Exception:
        if encoding != b"deflate" and body.startswith(_ZLIB):
            return unpacked_by(b"deflate", body, max_size)
        if not body or is_binary(body):
            raise
        return body, True


def _name_of(coding: bytes) -> bytes:
    """Return a coding's name without additions of servers (quotes, parameters, a type); empty if invalid."""
    name = coding.partition(b";")[0].strip(b" \t\"'").lower().removeprefix(b"application/")
    return name if name.isascii() else b""


def _is_cut_at_headers(response: Response) -> bool:
    return not response.body and "download_stopped" in response.flags
