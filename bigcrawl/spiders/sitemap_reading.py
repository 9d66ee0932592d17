"""Makes links of a sitemap, gzipped or not, with what the site says of its pages as hints for priority and revisits."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from scrapy.utils.gz import gunzip

from bigcrawl.links import NOTHING_LEFT_OUT, LeftOut, Links
from bigcrawl.listings.sitemaps import entries, is_index
from bigcrawl.middlewares.compression import FREE_BYTES, GZIP_MEMBERS_MAX
from bigcrawl.revisiting.hints import changefreq_of
from bigcrawl.spiders.hints import hinted_priority, modified_s
from bigcrawl.url.canonical import Joiner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from scrapy.http import Response

    from bigcrawl.listings.sitemaps import SitemapEntry

logger = logging.getLogger(__name__)

SITEMAP_URLS_MAX, SITEMAP_BYTES_MAX = 50_000, 50 << 20  # of one sitemap, by the protocol
BATCH_URLS: Final = 1_000
LOCATION_CHARS_MAX: Final = 2_048  # by the protocol; changes of a page with a longer one are not noticed
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
            for links in _batches(found[at : at + BATCH_URLS], response.url, now_s):
                yield replace(links, callback=callback) if lists_sitemaps else links


def _batches(found: Sequence[SitemapEntry], base: str, now_s: float) -> Iterator[Links]:
    """Yield entries as links, one batch for each priority and frequency of change, highest priority first.

    The first batch says how many locations were too long to be links.
    """
    left_out = LeftOut(too_long=sum(entry.is_too_long for entry in found))
    join, modified = Joiner(base), {}
    alike: dict[tuple[int, str], list[str]] = {}
    for entry in found:
        if entry.is_too_long:
            continue
        at_s = modified_s(entry.modified, now_s)
        if at_s is not None and len(entry.location) <= LOCATION_CHARS_MAX and (url := join(entry.location)):
            modified[url] = at_s
        changefreq = changefreq_of(entry.changefreq, None if at_s is None else now_s - at_s)
        priority = hinted_priority(entry.modified, now_s, entry.priority)
        alike.setdefault((priority, changefreq), []).append(entry.location)
    for (priority, changefreq), urls in sorted((alike or {(0, ""): []}).items(), reverse=True):
        yield Links(urls, base=base, priority=priority, changefreq=changefreq, modified=modified, left_out=left_out)
        modified, left_out = {}, NOTHING_LEFT_OUT  # once for all


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
