"""Turns a sitemap, gzipped or not, into links, with the site's claims about age and change of its pages."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from bigcrawl.downloads.packing import gunzip
from bigcrawl.links import NOTHING_LEFT_OUT, LeftOut, Links
from bigcrawl.links.detection import detected, top_level_domain
from bigcrawl.listings import ListReading, feeds
from bigcrawl.listings.changefreqs import changefreq_of
from bigcrawl.listings.encodings import EncodingHints
from bigcrawl.listings.sitemaps import SitemapEntry, is_index, is_list, sitemap_entries, text_sitemap_entries
from bigcrawl.media_types import HTML, type_of
from bigcrawl.middlewares.compression import FREE_BYTES
from bigcrawl.url.canonical import Joiner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator, Sequence

    from scrapy.http import Response

DATE_CHARS_MAX: Final = 64
DAY_S: Final = 86_400
RAISED_MAX: Final = 9
"""The highest priority of the level *raised*; pages that a spider chose come before."""
_STEPS: Final = ((1, 6), (7, 4), (31, 2))  # days since the change, priority
_WEIGHT: Final = 6  # of the part of a sitemap's priority above 0.5


def seconds_of(written: str) -> float | None:
    """Return the Unix time of a date in RFC 822, ISO 8601 or W3C form; None if it is not a date."""
    text = written.strip()
    return _read_date(text) if 0 < len(text) <= DATE_CHARS_MAX else None


# W3C dates without a day: https://www.w3.org/TR/NOTE-datetime
_month = re.compile(r"(\d{4})(?:-(\d\d))?+", re.ASCII).fullmatch


@lru_cache(4_096)  # a sitemap has few dates, each read twice
def _read_date(text: str) -> float | None:
    if month := _month(text):
        text = f"{month[1]}-{month[2] or '01'}-01"
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError, OSError):
            continue
    return None


def modified_s(written: str, now_s: float) -> int | None:
    """Return the latest time of change that a site's date allows, at most `now_s`; None without a valid date.

    A date more than a day ahead is invalid; one without a time of day means its last second.
    """
    at_s = seconds_of(written)
    if at_s is None or at_s > now_s + DAY_S:
        return None
    is_day = at_s % DAY_S == 0 and ":" not in written
    return int(min(at_s + is_day * (DAY_S - 1), now_s))


def hinted_priority(modified: str, now_s: float, importance: str = "") -> int:
    """Return a priority from 0, which is ordinary, to `RAISED_MAX`.

    A `modified` date more than a day after `now_s` does not count, nor an `importance` (a sitemap's `priority`) up to
    its default, 0.5.
    """
    return min(RAISED_MAX, _by_age(seconds_of(modified), now_s) + _by_importance(importance))


def _by_age(at_s: float | None, now_s: float) -> int:
    if at_s is None or at_s > now_s + DAY_S:
        return 0
    return next((priority for days, priority in _STEPS if now_s - at_s <= days * DAY_S), 0)


def _by_importance(written: str) -> int:
    try:
        given = float(written[:DATE_CHARS_MAX] or 0.5)
    except ValueError:
        return 0
    return round(_WEIGHT * (min(given, 1.0) - 0.5)) if math.isfinite(given) and given > 0.5 else 0


logger = logging.getLogger(__name__)

SITEMAP_URLS_MAX, SITEMAP_BYTES_MAX = 50_000, 50 << 20  # of one sitemap, by the protocol
BATCH_URLS: Final = 1_000
LOCATION_CHARS_MAX: Final = 2_048  # by the protocol; changes of a page with a longer one are not noticed
BASES_MAX: Final = 100
_GZIP: Final = b"\x1f\x8b\x08"
_NO_GZIP: Final = (OSError, EOFError, zlib.error)


async def sitemap_links(
    response: Response, ratio_max: int, callback: str, *, follows_alternates: bool = False
) -> AsyncIterator[Links]:
    """Yield a sitemap's links, in batches by priority; nothing for any other response.

    Above 1 MiB, `ratio_max` limits how much a gzipped one may grow. `callback` gets further sitemaps, `parse` the
    pages.
    """
    body, limit = _decompress_body(response, ratio_max)
    hints, now_s = hints_of(response), time.time()
    lists_sitemaps = is_index(body, hints) if body else None
    reading = ListReading(
        _read_entries(body, lists_sitemaps, response.url, hints, follows_alternates=follows_alternates)
    )
    for listed_here in reading:
        await asyncio.sleep(0)
        found = [one for entry in listed_here for one in _with_alternates(entry)]
        for at in range(0, len(found), BATCH_URLS):
            for links in _batch_links(found[at : at + BATCH_URLS], response.url, now_s):
                yield replace(links, callback=callback) if lists_sitemaps else links
    if limit := limit or reading.limit:
        yield Links((), base=response.url, left_out=LeftOut(limit=f"listing-{limit}"))


def may_be_sitemap(response: Response) -> bool:
    """Return whether a response is not HTML, or only by its header, as many servers declare sitemaps text/html."""
    is_page = type_of(dict.get(response.headers, b"Content-Type"), response.body) in HTML
    return not is_page or response.body.startswith(_GZIP) or is_index(response.body, hints_of(response)) is not None


def hints_of(response: Response) -> EncodingHints:
    told = dict.get(response.headers, b"Content-Type") or [b""]
    return EncodingHints(told[-1], partial(detected, domain=top_level_domain(response.url)))


class EntryJoiner:
    """Joins the URL of a feed's entry with its bases; returns None if that is not a web address."""

    def __init__(self, feed_url: str) -> None:
        self._of_bases: dict[tuple[str, ...], Joiner] = {(): Joiner(feed_url)}

    def __call__(self, entry: feeds.FeedEntry) -> str | None:
        join = self._of_bases.get(entry.bases)
        if join is None:
            join = self._of_bases[()]
            for base in entry.bases:
                url = join(base)
                join = join if url is None else Joiner(url)
            if len(self._of_bases) < BASES_MAX:
                self._of_bases[entry.bases] = join
        return join(entry.url)


def _read_entries(
    body: bytes, lists_sitemaps: bool | None, url: str, hints: EncodingHints, *, follows_alternates: bool
) -> Generator[list[SitemapEntry], None, str]:
    """Yield the entries of a sitemap of any form: XML, plain text, or a feed (sitemaps.org)."""
    if lists_sitemaps is not None:
        return (yield from sitemap_entries(body, SITEMAP_URLS_MAX, hints, with_alternates=follows_alternates))
    if is_list(body, hints):
        return (yield from text_sitemap_entries(body, SITEMAP_URLS_MAX, hints))
    if feeds.is_feed(body, hints):
        reading, join = ListReading(feeds.feed_entries(body, SITEMAP_URLS_MAX, hints)), EntryJoiner(url)
        for found in reading:
            dated = [(join(entry), entry.updated or entry.published) for entry in found]
            yield [SitemapEntry(url, date) for url, date in dated if url]
        return reading.limit
    return ""


def _with_alternates(entry: SitemapEntry) -> Iterator[SitemapEntry]:
    """Yield an entry, and one for each of its alternates, with the same time of change."""
    yield entry  # nearly always all
    for url in entry.alternates:
        if url != entry.location:
            yield entry._replace(location=url, alternates=(), is_too_long=False)


def _batch_links(found: Sequence[SitemapEntry], base: str, now_s: float) -> Iterator[Links]:
    """Yield entries as links, one batch for each priority and frequency of change, highest priority first."""
    left_out = LeftOut(too_long=sum(entry.is_too_long for entry in found))
    join, modified = Joiner(base), {}
    alike: dict[tuple[int, str], list[str]] = {}
    said: dict[tuple[str, str, str], tuple[int | None, list[str]]] = {}  # few differ
    for entry in found:
        if entry.is_too_long:
            continue
        hints = (entry.modified, entry.priority, entry.changefreq)
        if hints not in said:
            at_s = modified_s(entry.modified, now_s)
            changefreq = changefreq_of(entry.changefreq, None if at_s is None else now_s - at_s)
            priority = hinted_priority(entry.modified, now_s, entry.priority)
            said[hints] = at_s, alike.setdefault((priority, changefreq), [])
        at_s, urls = said[hints]
        urls.append(entry.location)
        if at_s is not None and len(entry.location) <= LOCATION_CHARS_MAX and (url := join(entry.location)):
            modified[url] = at_s
    for (priority, changefreq), urls in sorted((alike or {(0, ""): []}).items(), reverse=True):
        yield Links(urls, base=base, priority=priority, changefreq=changefreq, modified=modified, left_out=left_out)
        modified, left_out = {}, NOTHING_LEFT_OUT  # once for all


def _decompress_body(response: Response, ratio_max: int) -> tuple[bytes, str]:
    """Return the decompressed body of a 200, and why that failed, if so; the first bytes show gzip."""
    body = response.body if response.status == 200 else b""
    if not body.startswith(_GZIP):
        return body, ""
    try:
        size_max = min(SITEMAP_BYTES_MAX, max(FREE_BYTES, ratio_max * len(body)))
        unpacked, is_whole = gunzip(body, size_max)
    except ValueError:  # it grows too much, or has too many members
        return b"", "growth"
    except _NO_GZIP as error:
        logger.debug("%(url)s is not a sitemap: %(error)s", {"url": response.url, "error": error})
        return b"", "packing"
    return unpacked, "" if is_whole else "packing"
