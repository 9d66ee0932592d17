"""Whether all sides do the same work: the same links of every page, and bigcrawl all that it is said to do."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any, Final

from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from benchmarks.crawl.sides import CONCURRENCY
from bigcrawl.links import extract_links
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LINKS_A_PAGE: Final = 60


def fetched(urls: Iterable[str]) -> list[HtmlResponse]:
    """The pages, as Scrapy would have them."""
    # The origin is on this machine, whatever proxy the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    pages = []
    for url in urls:
        with opener.open(url, timeout=30) as answer:
            headers = {"Content-Type": answer.headers["Content-Type"]}
            pages.append(HtmlResponse(url, headers=headers, body=answer.read()))
    return pages


def disagreements(pages: Sequence[HtmlResponse], links_a_page: int = LINKS_A_PAGE) -> list[str]:
    """What differs between the peers' links and bigcrawl's, or from what a page has; empty when nothing does.

    Spellings do not count: a URL is compared in canonical form.
    """
    extractor = LinkExtractor()
    found = []
    for page in pages:
        peers = {canonicalize(link.url) for link in extractor.extract_links(page)}
        ours = set(extract_links(page))
        if peers != ours:
            found.append(f"{page.url}: only Scrapy finds {sorted(peers - ours)}, only bigcrawl {sorted(ours - peers)}")
        elif len(ours) != links_a_page:
            found.append(f"{page.url} has {len(ours)} links, not {links_a_page}")
    return found


def faults(side: str, stats: Mapping[str, Any], pages: int, seeds: int) -> list[str]:
    """What a crawl did less of than it should, by its own stats and the pages that the origin served it."""
    # Pages that were being fetched or parsed when the crawl was told to stop.
    unfinished = 2 * CONCURRENCY
    links = stats.get("bigcrawl/links/found", 0) - seeds if side == "bigcrawl" else stats.get("bench/links", 0)
    expected = {f"{LINKS_A_PAGE} links a page": (links, LINKS_A_PAGE * (pages - unfinished))}
    if side == "bigcrawl":
        # A response, a request and notes of each.
        expected["every page in a WARC file"] = (stats.get("bigcrawl/warc/records", 0), 3 * (pages - unfinished))
    return [f"not {what}: {done} in all, not {least}" for what, (done, least) in expected.items() if done < least]
