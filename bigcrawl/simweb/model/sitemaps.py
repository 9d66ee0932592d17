"""Sitemaps: an index of gzipped lists. They name front pages, and mapped pages to which nothing else leads.

If pages of the web change, the first list also names the host's news, and says when each last changed and how often it
does. One host in `LIARS_EVERY` lies: it says that its mapped pages, which never change, always do, and just did.
"""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# Lists on each host, and mapped pages in all its lists together.
LISTS: Final = 2
MAPPED: Final = 6
LIARS_EVERY: Final = 3
NEWS_LIST: Final = 1  # the list that has them
_WORDS: Final = ((600, "always"), (21_600, "hourly"), (86_400, "daily"), (604_800, "weekly"))
_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def mapped_in(number: int) -> range:
    """Return the mapped pages in list `number`, 1 to `LISTS`."""
    return range(MAPPED * (number - 1) // LISTS, MAPPED * number // LISTS)


def index_of_sitemaps(urls: Iterable[str]) -> bytes:
    """Return the index, a document that names other sitemaps."""
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls)
    return f'{_HEAD}<sitemapindex xmlns="{_NAMESPACE}">\n{entries}</sitemapindex>\n'.encode()


class Listed(NamedTuple):
    """A page in a list. `changefreq` is empty, and the time of its change 0, if the site does not say."""

    url: str
    changefreq: str = ""
    changed_ms: int = 0


def changefreq_of(period_ms: int) -> str:
    """Return the word of sitemaps for a page that changes once in a period."""
    return next((word for most_s, word in _WORDS if period_ms <= 1000 * most_s), "monthly")


def sitemap(pages: Iterable[Listed]) -> bytes:
    """Return a list of pages as a gzip file; the file itself is gzip, it has no Content-Encoding."""
    entries = "".join(map(_entry, pages))
    document = f'{_HEAD}<urlset xmlns="{_NAMESPACE}">\n{entries}</urlset>\n'
    return gzip.compress(document.encode(), mtime=0)


def _entry(page: Listed) -> str:
    changed = datetime.fromtimestamp(page.changed_ms // 1000, UTC).isoformat() if page.changed_ms else ""
    return (
        f"<url><loc>{page.url.replace('&', '&amp;')}</loc>"
        + (f"<lastmod>{changed}</lastmod>" if changed else "")
        + (f"<changefreq>{page.changefreq}</changefreq>" if page.changefreq else "")
        + "</url>\n"
    )
