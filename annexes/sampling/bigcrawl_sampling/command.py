"""The command `scrapy frontier estimate`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.views.activity.recent import summaries_of
from bigcrawl.views.opened_crawl import OpenedCrawl, in_crawl
from bigcrawl_sampling.estimating import WALKS_MIN
from bigcrawl_sampling.sketch import WalkSketch

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config


def estimate(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Estimate how many URLs and pages a web has, from the random walks of a running crawl so far."""
    data = in_crawl(config, estimate_so_far)
    return Result(data, estimate_text(data))


async def estimate_so_far(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return the estimate from all nodes' sketches, sent only while someone asks. Cost: one Redis command."""
    whole = WalkSketch()
    for data in await summaries_of(crawl):
        one = WalkSketch()
        with suppress(ValueError, TypeError, LookupError, OverflowError):  # of another spider, or of another version
            one.merge(data)
            whole.merge(data)
    return whole.estimate()


def estimate_text(data: dict[str, Any]) -> str:
    if not data["walks"]:
        return (
            "no node has told of a random walk: this is for a running crawl of the spider sample; ask again in seconds"
        )
    walked = f"{data['walks']:,} walks of {data['fetches']:,} fetches so far"
    if data["urls"] is None:
        return f"{walked}; an estimate needs at least {WALKS_MIN}"
    (urls, most_urls), (pages, most_pages) = data["urls"], data["pages"]
    return (
        f"{walked}\nURLs that links lead to: {urls:,} to {most_urls:,}\npages among them: {pages:,} to {most_pages:,}\n"
        f"with intervals: python -m bigcrawl_sampling and the items of the crawl"
    )
