"""`scrapy frontier import --from`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from bigcrawl.commands.foreign.jobdir import JobDir
from bigcrawl.commands.foreign.request_sender import RequestSender
from bigcrawl.commands.foreign.scrapy_redis import ScrapyRedis
from bigcrawl.commands.foreign.url_lists import CdxFile, UrlList
from bigcrawl.commands.moving.export_file import exported_crawl
from bigcrawl.commands.moving.import_crawl import begun, import_crawl
from bigcrawl.commands.result import Result
from bigcrawl.project_settings import crawl_name_of
from bigcrawl.views.opened_crawl import server_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

EXPORT: Final = "export"


class ImportSource(Protocol):
    """A source to import; `pauses` tells whether the crawl is paused until all of it is there."""

    pauses: bool

    async def read_into(self, crawl: OpenedCrawl, sender: RequestSender) -> list[str]:
        """Send all of it. Return warnings about missing parts."""


SOURCES: Final[dict[str, Callable[[str, argparse.Namespace], ImportSource]]] = {
    "scrapy-redis": ScrapyRedis,
    "jobdir": JobDir,
    "urls": UrlList,
    "cdx": CdxFile,
}
"""Possible sources besides an export."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", choices=[EXPORT, *SOURCES], default=EXPORT, help="what it is; an export by default"
    )
    parser.add_argument("--spider", default="", help="the spider whose crawl it is; names keys, and a new crawl")
    parser.add_argument(
        "--queue-key", default="%(spider)s:requests", help="scrapy-redis' SCHEDULER_QUEUE_KEY, as by default"
    )
    parser.add_argument(
        "--dupefilter-key",
        default="%(spider)s:dupefilter",
        help="scrapy-redis' SCHEDULER_DUPEFILTER_KEY, as by default; '' if there is none",
    )
    parser.add_argument("--stack", action="store_true", help="the queue is a LifoQueue or SpiderStack")
    parser.add_argument("--priority", type=int, default=0, help="of the URLs of a list or index; higher is sooner")
    parser.add_argument("--callback", help="the spider's method for the URLs of a list or index; parse by default")
    parser.add_argument(
        "--request-class",
        action="append",
        default=[],
        metavar="CLASS",
        help="a class of requests of your own that the queue may hold; may be repeated",
    )


def name_for(opts: argparse.Namespace) -> str:
    """Return the crawl's name from the export or the spider, if none is given; empty for none."""
    if opts.source == EXPORT:
        return exported_crawl(Path(opts.words[0]))
    return crawl_name_of(opts.spider) if opts.spider else ""


def import_from(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Import an export, or data of another crawler, into a crawl, which is begun if it does not exist.

    Unreadable items are reported and left out, and make the exit status 1. The import may be repeated.
    """
    if opts.source == EXPORT:
        return import_crawl(config, words, opts)
    source = SOURCES[opts.source](words[0], opts)
    with server_of(config, may_begin=True) as server:
        sender, remarks = asyncio.run(_import(config, server, source, opts))
    lines = [f"crawl {config.crawl.name}: {sender.sent:,} URLs are in", *remarks, *sender.notes, *sender.lines()]
    data = {
        "crawl": config.crawl.name,
        "sent": sender.sent,
        "left_out": sender.left_out,
        "bad": [each._asdict() for each in sender.bad],
        "remarks": [*remarks, *sender.notes],
    }
    return Result(data, "\n".join(lines), 1 if remarks or sender.left_out else 0)


async def _import(
    config: Config, server: str, source: ImportSource, opts: argparse.Namespace
) -> tuple[RequestSender, list[str]]:
    async with begun(config, server, pauses=source.pauses) as crawl:
        sender = RequestSender(crawl, opts.request_class)
        remarks = await source.read_into(crawl, sender)
        await sender.flush()
    return sender, remarks
