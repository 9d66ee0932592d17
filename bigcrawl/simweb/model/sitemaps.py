"""Sitemaps: an index of gzipped lists. They name front pages, and mapped pages to which nothing else leads."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Lists on each host, and mapped pages in all its lists together.
LISTS: Final = 2
MAPPED: Final = 6
_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def mapped_in(number: int) -> range:
    """Return the mapped pages in list `number`, 1 to `LISTS`."""
    return range(MAPPED * (number - 1) // LISTS, MAPPED * number // LISTS)


def index_of_sitemaps(urls: Iterable[str]) -> bytes:
    """Return the index, a document that names other sitemaps."""
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls)
    return f'{_HEAD}<sitemapindex xmlns="{_NAMESPACE}">\n{entries}</sitemapindex>\n'.encode()


def sitemap(urls: Iterable[str]) -> bytes:
    """Return a list of URLs as a gzip file; the file itself is gzip, it has no Content-Encoding."""
    entries = "".join(f"<url><loc>{url.replace('&', '&amp;')}</loc></url>\n" for url in urls)
    document = f'{_HEAD}<urlset xmlns="{_NAMESPACE}">\n{entries}</urlset>\n'
    return gzip.compress(document.encode(), mtime=0)
