"""Sitemaps: an index of gzipped lists. They name front pages, and mapped pages that nothing else leads to."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# As many lists a host, and mapped pages in all of them.
LISTS: Final = 2
MAPPED: Final = 6
_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def mapped_in(number: int) -> range:
    """The mapped pages that list `number`, 1 to `LISTS`, names."""
    return range(MAPPED * (number - 1) // LISTS, MAPPED * number // LISTS)


def index_of_sitemaps(urls: Iterable[str]) -> bytes:
    """The index: a document that names other sitemaps."""
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls)
    return f'{_HEAD}<sitemapindex xmlns="{_NAMESPACE}">\n{entries}</sitemapindex>\n'.encode()


def sitemap(urls: Iterable[str]) -> bytes:
    """A list of URLs, as a gzip file: not a Content-Encoding, the file itself is one."""
    entries = "".join(f"<url><loc>{url.replace('&', '&amp;')}</loc></url>\n" for url in urls)
    document = f'{_HEAD}<urlset xmlns="{_NAMESPACE}">\n{entries}</urlset>\n'
    return gzip.compress(document.encode(), mtime=0)
