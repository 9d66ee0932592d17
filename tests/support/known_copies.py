"""Which pages of a simulated web are copies, found from their bytes alone, and which of them a crawl has listed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from bigcrawl.content.copies import EXACT
from bigcrawl.scheduler.partition.reader import read_copies_of
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bigcrawl.views.opened_crawl import OpenedCrawl
    from tests.support.crawling.crawls import Crawl, SimulatedWeb

_no_text = re.compile(rb"(?s)<script.*?</script>|<[^>]*>")
PHRASE_WORDS = 4
NEAR_MIN = 0.9


class Listed(NamedTuple):
    """A page that a crawl has listed as a copy."""

    page: str
    original: str
    is_exact: bool


def bodies_of(web: SimulatedWeb) -> dict[str, bytes]:
    """The bodies of all pages that a crawl fetches with status 200, by URL."""
    bodies = {}
    for url, status in web.expected().items():
        if status == 200:
            parts = urlsplit(url)
            assert parts.hostname is not None
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            bodies[url] = web.web.answer(parts.hostname, target, web.saved.port).body
    return bodies


def groups_of(bodies: Mapping[str, bytes]) -> list[set[str]]:
    """The sets of pages with equal bodies, of two pages or more."""
    pages: dict[bytes, set[str]] = defaultdict(set)
    for url, body in bodies.items():
        pages[body].add(url)
    return [group for group in pages.values() if len(group) > 1]


def phrases_of(body: bytes) -> frozenset[tuple[bytes, ...]]:
    """The phrases of four words in a page, tags and scripts left out."""
    words = _no_text.sub(b" ", body).lower().split()
    return frozenset(zip(*(words[at:] for at in range(PHRASE_WORDS)), strict=False))


def similarity(some: bytes, other: bytes) -> float:
    """The share of all phrases in either page that both have (Jaccard)."""
    return _share(phrases_of(some), phrases_of(other))


def listed_by(crawl: Crawl, urls: Iterable[str]) -> list[Listed]:
    """The copies that the partitions' files list, with the URLs of their keys."""

    async def read(known: OpenedCrawl) -> list[Listed]:
        names = {known.place_of(url).key: url for url in urls}
        found = []
        for partition in range(known.partitions):
            rows = read_copies_of(known.directory(partition))
            for page, _, original, kind in () if rows is None else rows.tolist():
                found.append(Listed(names[page], names[original], kind == EXACT))
        return found

    return in_crawl(crawl.config(), read)


def check_exact(bodies: Mapping[str, bytes], listed: Iterable[Listed]) -> int:
    """Of pages with equal bodies, all but one are listed as exact copies of that one. Returns how many."""
    exact = [copy for copy in listed if copy.is_exact]
    copies = {copy.page for copy in exact}
    assert len(copies) == len(exact), "a page is listed once"
    groups = groups_of(bodies)
    for group in groups:
        (original,) = group - copies
        assert {copy.original for copy in exact if copy.page in group} == {original}
    assert len(copies) == sum(len(group) - 1 for group in groups), "nothing else is listed"
    return len(copies)


class NearFound(NamedTuple):
    """How many near copies a crawl has found, and how well.

    Attributes:
        expected: contents that are similar to one that is left as an original: of each family all but one.
        found: contents that are listed as near copies.
        recall: the share of the expected ones that are listed.
        precision: the share of the listed ones that are similar to their original.
    """

    expected: int
    found: int
    recall: float
    precision: float


def near_found(bodies: Mapping[str, bytes], listed: Iterable[Listed]) -> NearFound:
    """Hold the listed near copies to the similarity of the pages' texts."""
    near = [copy for copy in listed if not copy.is_exact]
    assert len({bodies[copy.page] for copy in near}) == len(near), "a content is listed once"
    expected = sum(len(family) - 1 for family in families_of({*bodies.values()}))
    right = sum(similarity(bodies[copy.page], bodies[copy.original]) >= NEAR_MIN for copy in near)
    return NearFound(expected, len(near), right / expected, right / len(near) if near else 1.0)


def families_of(contents: Iterable[bytes]) -> list[set[bytes]]:
    """The sets of contents that are similar, each to another of its set; of two contents or more."""
    phrases = {content: phrases_of(content) for content in contents}
    with_phrase: dict[tuple[bytes, ...], list[bytes]] = defaultdict(list)
    families: dict[bytes, set[bytes]] = {}
    for content, own in phrases.items():
        common = Counter(other for phrase in own for other in with_phrase[phrase])
        family = families[content] = {content}
        for other, count in common.items():
            if count >= NEAR_MIN * (len(own) + len(phrases[other]) - count) and families[other] is not family:
                family |= families[other]
                families.update(dict.fromkeys(family, family))
        for phrase in own:
            with_phrase[phrase].append(content)
    return [family for content, family in families.items() if len(family) > 1 and content == min(family)]


def _share(some: frozenset[tuple[bytes, ...]], others: frozenset[tuple[bytes, ...]]) -> float:
    return len(some & others) / (len(some | others) or 1)
