"""The sitemaps and feeds of hosts: gzipped lists of front pages and of pages without other links, RSS and Atom."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from email.utils import formatdate
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.power_law import mix_bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


# Feeds of each host, pages announced in them together, and announced news.
FEEDS: Final = 2
ANNOUNCED: Final = 6
NEWS_MAX: Final = 20
_TYPES: Final = ("application/rss+xml", "application/atom+xml")
_NEWEST_MS: Final = 1_767_225_600_000  # 2026-01-01: pages that do not change were announced before
_YEAR_MS: Final = 31_536_000_000


class Entry(NamedTuple):
    url: str
    title: str
    at_ms: int


def announced_in(number: int) -> range:
    return range(ANNOUNCED * number // FEEDS, ANNOUNCED * (number + 1) // FEEDS)


def announced_ms(seed: int, host: int, number: int) -> int:
    """Return when a page that does not change was announced: a whole second of the year 2025."""
    return (_NEWEST_MS - mix_bits(seed ^ mix_bits(host ^ mix_bits(number))) % _YEAR_MS) // 1000 * 1000


def feed(number: int, url: str, entries: Iterable[Entry]) -> tuple[str, bytes]:
    """Return media type and body of feed `number`: RSS for 0, Atom for 1."""
    newest_first = sorted(entries, key=lambda entry: (-entry.at_ms, entry.url))
    write = _atom if number else _rss
    return _TYPES[number], write(escape(url), newest_first).encode()


def alternate_links(urls: Sequence[str]) -> bytes:
    named = zip(urls, _TYPES, strict=True)
    return "".join(f'<link rel="alternate" type="{kind}" href="{escape(url)}">\n' for url, kind in named).encode()


def _rss(url: str, entries: Sequence[Entry]) -> str:
    items = "".join(
        f"<item><title>{escape(title)}</title><link>{escape(link)}</link>"
        f"<pubDate>{formatdate(at_ms // 1000, usegmt=True)}</pubDate></item>\n"
        for link, title, at_ms in entries
    )
    return f'{_HEAD}<rss version="2.0"><channel><title>News</title><link>{url}</link>\n{items}</channel></rss>\n'


def _atom(url: str, entries: Sequence[Entry]) -> str:
    items = "".join(
        f'<entry><title>{escape(title)}</title><link rel="alternate" href="{escape(link)}"/>'
        f"<id>{escape(link)}</id><updated>{_iso_time(at_ms)}</updated></entry>\n"
        for link, title, at_ms in entries
    )
    begin = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><id>{url}</id>'
    return f'{_HEAD}{begin}<link rel="self" href="{url}"/>\n{items}</feed>\n'


def _iso_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
