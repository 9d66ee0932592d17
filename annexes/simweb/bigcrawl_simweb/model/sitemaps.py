"""Sitemaps: an index of gzipped lists of front pages, and of mapped pages without other links.

If pages of the web change, the first list has the host's news, with true change times and frequencies. One host in
`LIARS_EVERY` claims that its mapped pages change, which they never do.
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
NEWS_LIST: Final = 1  # the list with the news
_WORDS: Final = ((600, "always"), (21_600, "hourly"), (86_400, "daily"), (604_800, "weekly"))
_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def mapped_in(number: int) -> range:
    return range(MAPPED * (number - 1) // LISTS, MAPPED * number // LISTS)


def index_of_sitemaps(urls: Iterable[str]) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls)
    return f'{_HEAD}<sitemapindex xmlns="{_NAMESPACE}">\n{entries}</sitemapindex>\n'.encode()


class ListedPage(NamedTuple):
    url: str
    changefreq: str = ""
    changed_ms: int = 0


def changefreq_of(period_ms: int) -> str:
    return next((word for most_s, word in _WORDS if period_ms <= 1000 * most_s), "monthly")


def sitemap(pages: Iterable[ListedPage]) -> bytes:
    entries = "".join(map(_entry_xml, pages))
    document = f'{_HEAD}<urlset xmlns="{_NAMESPACE}">\n{entries}</urlset>\n'
    return gzip.compress(document.encode(), mtime=0)


def _entry_xml(page: ListedPage) -> str:
    changed = datetime.fromtimestamp(page.changed_ms // 1000, UTC).isoformat() if page.changed_ms else ""
    return (
        f"<url><loc>{page.url.replace('&', '&amp;')}</loc>"
        + (f"<lastmod>{changed}</lastmod>" if changed else "")
        + (f"<changefreq>{page.changefreq}</changefreq>" if page.changefreq else "")
        + "</url>\n"
    )
