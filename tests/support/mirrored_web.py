"""A web of names with mirrors, two that have all pages of a third, and sites of their own beside them; and its verdict.

Budgets divide a partition's turns, so a site is compared with those that are in its partition.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from tests.support.running.processes import wait_until
from tests.support.servers.named_web import NamedWeb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.support.crawling.crawls import Crawl

ORIGINAL: Final = "original.example"
MIRRORS: Final = ("mirror.example", "other-mirror.example")
OTHERS: Final = tuple(f"own{number}.example" for number in range(8))
PAGES: Final = 3_000
SETTINGS: Final = {
    "BIGCRAWL_HOST_DELAY": 0.01,
    "BIGCRAWL_HOT_URLS": 1_000,
    "BIGCRAWL_HOST_HOT_URLS": 8_000,  # so many that no host's URLs are parked, which is beyond budgets
    "BIGCRAWL_STEP_SECONDS": 0.2,
}
"""For a crawl of it that has more URLs than room."""

COMPARED: Final = 4
"""In a partition with fewer other sites, pages may wait for these hosts' delays alone, and budgets divide nothing."""
IN_TURNS: Final = 2_500
"""Pages after the verdicts, whose turns were given before them."""
LAST_PAGES: Final = 1_500
"""Pages after those, whose shares are compared."""

_LINKS: Final = 4
_TOLD: Final = re.compile(r"INFO: (\S+) is taken for a mirror and its budget divided by 20: ")


def mirrored_web() -> NamedWeb:
    """Serve it. Each page leads to others of its site, so that more are known than are fetched."""
    names = {f"www.{pld}": "127.0.0.1" for pld in (ORIGINAL, *MIRRORS, *OTHERS)}
    return NamedWeb(["127.0.0.1"], names, dict(_pages()))


def seeds(web: NamedWeb) -> list[str]:
    """The first page of each site."""
    return [web.url(f"www.{pld}", "/0") for pld in (ORIGINAL, *MIRRORS, *OTHERS)]


def told_in(crawls: Iterable[Crawl]) -> list[str]:
    """Of which PLDs the logs of some nodes say that they are mirrors."""
    return [pld for crawl in crawls for pld in _TOLD.findall(crawl.log.read_text())]


def pages_asked_for(web: NamedWeb) -> list[str]:
    """Of which PLD each page was, in their order."""
    return [hit.host.removeprefix("www.") for hit in web.hits if hit.target != "/robots.txt"]


def stop_after_verdicts(nodes: Sequence[Crawl], web: NamedWeb) -> None:
    """Let a crawl go on until what follows from its verdicts can be seen, however late they come; then stop it."""
    wait_until(lambda: len(pages_asked_for(web)) > 0, "the crawl begins")
    wait_until(lambda: nodes[0].status()["mirrors"] == len(MIRRORS), "mirrors are known", timeout_s=900)
    enough = len(pages_asked_for(web)) + IN_TURNS + LAST_PAGES
    wait_until(lambda: len(pages_asked_for(web)) >= enough, "their turns have come", timeout_s=900)
    for node in nodes:
        node.terminate()
    for node in nodes:
        assert node.wait(120) == 0


def check_shares(crawl: Crawl, web: NamedWeb) -> None:
    """Hold the last pages of mirrors to those of other sites in their partitions: half of them at most."""
    pages = Counter(pages_asked_for(web)[-LAST_PAGES:])
    by_partition: dict[int, list[str]] = defaultdict(list)
    for pld in (ORIGINAL, *MIRRORS, *OTHERS):
        by_partition[crawl.asked("explain", web.url(f"www.{pld}", "/0"))["partition"]].append(pld)
    for plds in by_partition.values():
        whole = [pages[pld] for pld in plds if pld not in MIRRORS]
        lowered = [pages[pld] for pld in plds if pld in MIRRORS]
        if len(whole) >= COMPARED and lowered:
            assert max(lowered) <= 1 / 2 * min(whole), pages


def _pages() -> Iterator[tuple[str, str]]:
    for number in range(PAGES):
        ahead = (_LINKS * number + place for place in range(1, _LINKS + 1))
        links = "".join(f'<a href="/{other % PAGES}">{other % PAGES}</a> ' for other in ahead)
        for pld in (ORIGINAL, *MIRRORS):
            yield f"www.{pld}/{number}", f"<p>Page {number} of some work.</p>{links}"
        for pld in OTHERS:
            known = f'<a href="http://www.{ORIGINAL}:{{port}}/0">it is known here</a>'
            yield f"www.{pld}/{number}", f"<p>Page {number} of {pld}.</p>{links}{known}"
