"""Makes links of a sitemap, gzipped or not, with what the site says of its pages as a hint for their priority."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from typing import TYPE_CHECKING, Final

from scrapy.utils.gz import gunzip

from bigcrawl.links import LeftOut, Links
from bigcrawl.listings.sitemaps import entries, is_index
from bigcrawl.middlewares.compression import FREE_BYTES, GZIP_MEMBERS_MAX
from bigcrawl.spiders.hints import hinted_priority

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

logger = logging.getLogger(__name__)

SITEMAP_URLS_MAX, SITEMAP_BYTES_MAX = 50_000, 50 << 20  # of one sitemap, by the protocol
BATCH_URLS: Final = 1_000
_GZIP: Final = b"\x1f\x8b\x08"
_NO_GZIP: Final = (ValueError, OSError, EOFError, zlib.error)


async def sitemap_links(response: Response, ratio_max: int, callback: str) -> AsyncIterator[Links]:
    """Yield what a sitemap lists, in batches by priority; nothing for anything else.

    Args:
        response: of a sitemap, or of anything.
        ratio_max: how many times a gzipped one may grow, above 1 MiB.
        callback: the spider's method for further sitemaps; pages go to its `parse`.
    """
    body = _unpacked(response, ratio_max)
    lists_sitemaps = is_index(body) if body else None
    if lists_sitemaps is None:
        return
    now_s = time.time()
    for found in entries(body, SITEMAP_URLS_MAX):
        await asyncio.sleep(0)
        for at in range(0, len(found), BATCH_URLS):
            batch = [entry for entry in found[at : at + BATCH_URLS] if not entry.is_too_long]
            too_long = len(found[at : at + BATCH_URLS]) - len(batch)
            links = Links(
                [entry.location for entry in batch],
                base=response.url,
                callback=callback if lists_sitemaps else None,
                left_out=LeftOut(too_long=too_long),
            )
            for of_priority in links.by_priority([hinted_priority(e.modified, now_s, e.priority) for e in batch]):
                yield of_priority


def _unpacked(response: Response, ratio_max: int) -> bytes:
    """Return the body of an answer of 200; empty if it is packed too well, in too many parts, or badly."""
    body = response.body if response.status == 200 else b""
    if not body.startswith(_GZIP):
        return body
    try:
        if body.count(_GZIP) > GZIP_MEMBERS_MAX:
            raise ValueError("it is packed in too many parts")
        return gunzip(body, max_size=min(SITEMAP_BYTES_MAX, max(FREE_BYTES, ratio_max * len(body))))
    except _NO_GZIP as error:
        logger.debug("%(url)s is no sitemap: %(error)s", {"url": response.url, "error": error})
        return b""
