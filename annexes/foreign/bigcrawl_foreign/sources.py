"""The sources of `scrapy frontier import --from`, by name, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_foreign.jobdir import JobDir
from bigcrawl_foreign.scrapy_redis import ScrapyRedis
from bigcrawl_foreign.url_lists import CdxFile, UrlList

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from bigcrawl.commands.moving.importing import ImportSource

SOURCES: Final[dict[str, Callable[[str, argparse.Namespace], ImportSource]]] = {
    "scrapy-redis": ScrapyRedis,
    "jobdir": JobDir,
    "urls": UrlList,
    "cdx": CdxFile,
}


def add_options(parser: argparse.ArgumentParser) -> None:
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
