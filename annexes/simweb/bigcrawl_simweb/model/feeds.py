"""An RSS and an Atom feed of each host, which its front page names.

They announce pages without other links and, if pages of the web change, the host's news.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import formatdate
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.hashing import mix_bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Feeds of each host, pages announced in them together, and announced news.
FEEDS: Final = 2
ANNOUNCED: Final = 6
NEWS_MAX: Final = 20
_TYPES: Final = ("application/rss+xml", "application/atom+xml")
_NEWEST_MS: Final = 1_767_225_600_000  # 2026-01-01: pages that do not change were announced before
_YEAR_MS: Final = 31_536_000_000
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


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
