"""Tells links within a host from entries, which begin a host.

Source: UbiCrawler §3 (a host that is met is visited whole), §6 (the limit on its depth). Differs: pages beyond the
limit become entries, as with a limit of 0 all pages are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.scheduler.queues.front_queues import URGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEPTH_KEY: Final = "bigcrawl_host_depth"
"""The key in `meta` of a page's links from the page by which its host was entered; entries have none."""


def depth_of_links(page_depth: int, depth_max: int) -> int:
    """Return the depth of a page's links within its host; 0 if they are entries."""
    return page_depth + 1 if page_depth < depth_max else 0


def split(urls: Sequence[str], is_inside: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    inside: list[str] = []
    entries: list[str] = []
    for url in urls:
        (inside if is_inside(url) else entries).append(url)
    return inside, entries


def raised(priority: int) -> int:
    return URGENT + max(priority, 0)
