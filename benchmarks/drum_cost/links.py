"""`python -m benchmarks.drum_cost.links`: IRLbot's l and p by its own definition, over a crawl. Options: --help.

The paper counts each link that goes to the URL-seen check: K of N pages, so l = K / N, and p is the share of them that
is new (§7.1, Figure 6 (a)). bigcrawl checks each URL once a page. Both are counted here, by bigcrawl's reader of
pages, in a breadth-first crawl of a simulated web, without network.
"""

from __future__ import annotations

import argparse
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from benchmarks.crawl.report import aligned, say
from bigcrawl.links.encoding import Encoding, joiner_of
from bigcrawl.links.limits import IN_FORCE
from bigcrawl.links.tags import LINK_ATTRIBUTES, PageTags
from bigcrawl_simweb.model.web import Web

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.links.encoding import Page

_PORT = 80
_FOUND = 200


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page as the reader of links sees it."""

    body: bytes
    url: str
    headers: dict[str, bytes] = field(default_factory=lambda: {"Content-Type": b"text/html"})


class Counts(NamedTuple):
    """After so many pages: links as the paper counts them, URLs once a page, and distinct URLs.

    `recent_links` and `recent_new` are of the pages since the counts before.
    """

    pages: int
    links: int
    urls: int
    seen: int
    recent_links: int
    recent_new: int

    @property
    def links_per_page(self) -> float:
        """IRLbot's l."""
        return self.links / self.pages

    @property
    def unique_share(self) -> float:
        """IRLbot's p, of the pages since the counts before."""
        return self.recent_new / max(1, self.recent_links)


def links_of(page: Page) -> Counter[str]:
    """Return the canonical URLs of a page with the number of links to each, nofollow ones included."""
    encoding = Encoding(page, IN_FORCE.limits.page_bytes)
    tags = PageTags(encoding.text(), tuple(LINK_ATTRIBUTES), IN_FORCE.limits.links)
    joiner = joiner_of(page.url, tags.base_href)
    found: Counter[str] = Counter()
    for reference, times in Counter([*tags.references, *tags.nofollow]).items():
        for url in joiner.join_all((reference,), encoding.respell) if joiner else ():
            found[url] += times
    return found


def crawl(web: Web, pages_max: int, steps: int) -> Iterator[Counts]:
    """Crawl breadth-first from one seed; yield counts after `pages_max` pages, and after its halves, `steps` times."""
    seeds = web.seeds(_PORT)[:1]
    waiting, seen = deque(seeds), set(seeds)
    pages = links = urls = links_before = 0
    seen_before, next_at = len(seen), max(1, pages_max >> steps)
    while waiting and pages < pages_max:
        parts = urlsplit(waiting.popleft())
        answer = web.answer(parts.hostname or "", urlunsplit(parts._replace(scheme="", netloc="")), _PORT)
        if answer.status != _FOUND:
            continue
        pages += 1
        found = links_of(ReadPage(answer.body, parts.geturl()))
        links, urls = links + found.total(), urls + len(found)
        fresh = [url for url in found if url not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
        if pages in (next_at, pages_max) or not waiting:
            yield Counts(pages, links, urls, len(seen), links - links_before, len(seen) - seen_before)
            links_before, seen_before, next_at = links, len(seen), 2 * next_at


def main() -> None:
    """Crawl, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drum_cost.links", description=__doc__)
    parser.add_argument("--hosts", type=int, default=4_000, help="of the web; default 4,000")
    parser.add_argument("--pages", type=int, default=60_000, help="of the web; default 60,000")
    parser.add_argument("--crawled", type=int, default=16_384, help="pages; default 16,384")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = [
        ("pages", "links a page, l", "URLs a page", "distinct URLs a page, L", "p, of the pages since the last row")
    ]
    for counts in crawl(Web(7, options.hosts, options.pages), options.crawled, 7):
        per_page = (counts.links_per_page, counts.urls / counts.pages, counts.seen / counts.pages)
        cells = (*(f"{each:.2f}" for each in per_page), f"{counts.unique_share:.3f}")
        rows.append((f"{counts.pages:,}", *cells))
    say(*aligned(rows))


if __name__ == "__main__":
    main()
