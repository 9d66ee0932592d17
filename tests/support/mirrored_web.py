"""A web of names with mirrors, two that have all pages of a third, and sites of their own beside them; and its verdict.

Budgets divide a partition's turns, so a site is compared with those that are in its partition.
"""

from __future__ import annotations

import random
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
LAST_PAGES: Final = 1_500
"""The pages whose shares are compared."""

NEAR: Final = {"BIGCRAWL_CONTENT_SEEN": "near"}
"""To know mirrors that differ a little."""

_LINKS: Final = 4
_WORDS: Final = 240
_TOLD: Final = re.compile(r"INFO: (\S+) is taken for a mirror and its budget divided by 20: ")


def mirrored_web(*, is_dated: bool = False) -> NamedWeb:
    """Serve it. Each page leads to others of its site, so that more are known than are fetched.

    With `is_dated`, each page of a mirror prints a line of its own, and half of all other pages is a template.
    """
    names = {f"www.{pld}": "127.0.0.1" for pld in (ORIGINAL, *MIRRORS, *OTHERS)}
    return NamedWeb(["127.0.0.1"], names, dict(_dated_pages() if is_dated else _pages()))


def seeds(web: NamedWeb) -> list[str]:
    """The first page of each site."""
    return [web.url(f"www.{pld}", "/0") for pld in (ORIGINAL, *MIRRORS, *OTHERS)]


def told_in(crawls: Iterable[Crawl]) -> list[str]:
    """Of which PLDs the logs of some nodes say that they are mirrors."""
    return [pld for crawl in crawls for pld in _TOLD.findall(crawl.log.read_text())]


def pages_asked_for(web: NamedWeb) -> list[str]:
    """Of which PLD each page was, in their order."""
    return [hit.host.removeprefix("www.") for hit in web.hits if hit.target != "/robots.txt"]


def stop_when_mirrors_get_less(nodes: Sequence[Crawl], web: NamedWeb) -> None:
    """Let a crawl go on until mirrors are known and get less; then stop it.

    Turns that were given before the verdicts come first. A crawl that never lowers its mirrors' share does not pass.
    """
    wait_until(lambda: len(pages_asked_for(web)) > 0, "the crawl begins")
    wait_until(lambda: nodes[0].status()["mirrors"] == len(MIRRORS), "mirrors are known", timeout_s=900)
    plds_compared = _plds_by_partition(nodes[0], web)
    wait_until(lambda: _is_share_low(plds_compared, web), "mirrors get less", timeout_s=600)
    for node in nodes:
        node.terminate()
    for node in nodes:
        assert node.wait(120) == 0


def _plds_by_partition(crawl: Crawl, web: NamedWeb) -> Iterable[list[str]]:
    by_partition: dict[int, list[str]] = defaultdict(list)
    for pld in (ORIGINAL, *MIRRORS, *OTHERS):
        by_partition[crawl.asked("explain", web.url(f"www.{pld}", "/0"))["partition"]].append(pld)
    return by_partition.values()


def _is_share_low(plds_compared: Iterable[list[str]], web: NamedWeb) -> bool:
    """Whether mirrors had at most half as many of the last pages as each other site in their partition."""
    pages = Counter(pages_asked_for(web)[-LAST_PAGES:])
    for plds in plds_compared:
        whole = [pages[pld] for pld in plds if pld not in MIRRORS]
        lowered = [pages[pld] for pld in plds if pld in MIRRORS]
        if len(whole) >= COMPARED and lowered and max(lowered) > 1 / 2 * min(whole):
            return False
    return True


def _pages() -> Iterator[tuple[str, str]]:
    for number in range(PAGES):
        ahead = (_LINKS * number + place for place in range(1, _LINKS + 1))
        links = "".join(f'<a href="/{other % PAGES}">{other % PAGES}</a> ' for other in ahead)
        for pld in (ORIGINAL, *MIRRORS):
            yield f"www.{pld}/{number}", f"<p>Page {number} of some work.</p>{links}"
        for pld in OTHERS:
            known = f'<a href="http://www.{ORIGINAL}:{{port}}/0">it is known here</a>'
            yield f"www.{pld}/{number}", f"<p>Page {number} of {pld}.</p>{links}{known}"


def _dated_pages() -> Iterator[tuple[str, str]]:
    template = _text_of("all sites")
    for path, page in _pages():
        pld, _, number = path.removeprefix("www.").partition("/")
        if pld in OTHERS:
            yield path, f"{page}<p>{template}</p><p>{_text_of(path)}</p>"
        else:
            line = f"<p>{pld} has had this page since day {number} at {int(number) * 7} o'clock</p>"
            yield path, f"{page}<p>{_text_of(number)}</p>{line * (pld in MIRRORS)}"


def _text_of(name: str) -> str:
    rng = random.Random(name)
    return " ".join(f"{rng.getrandbits(20):x}" for _ in range(_WORDS))
