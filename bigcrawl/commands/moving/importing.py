from __future__ import annotations

import asyncio
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.commands.moving.export_file import exported_crawl
from bigcrawl.commands.moving.import_crawl import crawl_for_import, import_crawl
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, RequestNotStorableError
from bigcrawl.given import has_annex, load_module
from bigcrawl.links import Links
from bigcrawl.project_settings import crawl_name_of
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import ListKeys
from bigcrawl.redisdb.scripts.entries import QueuePart, read_queue
from bigcrawl.scheduler.adapter.request_codec import encode_stored, links_encoder
from bigcrawl.scheduler.crawl.fetched_elsewhere import FINGERPRINTS
from bigcrawl.scheduler.crawl.fingerprints import Fingerprints
from bigcrawl.scheduler.records.queued_url import traits_of
from bigcrawl.url.canonical import UrlError, host_of
from bigcrawl.views.opened_crawl import OpenedCrawl, server_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from bigcrawl.config import Config

BAD_SHOWN: Final = 5
ENTRY_BYTES_MAX: Final = 4 << 20
"""Larger requests in another crawler's queue are not read."""

_PART_BYTES_MAX: Final = 1 << 20
_PART_ENTRIES_MAX: Final = 500
_SCRAPYS: Final = "scrapy."


class NotImported(NamedTuple):
    """An item that was not imported, and why."""

    where: str
    reason: str


class RequestSender:
    """Sends the data of one import; `bad` are the first skipped items, `notes` warnings about refetched pages."""

    def __init__(self, crawl: OpenedCrawl, request_classes: Collection[str] = ()) -> None:
        """Permit requests of Scrapy's own classes and of `request_classes`."""
        self._crawl = crawl
        self._inboxes = InboxSender(crawl, "import")
        self._traits = traits_of(crawl.config)
        self._classes = request_classes
        self.sent = 0
        self.bad: list[NotImported] = []
        self.left_out = 0
        self.notes: list[str] = []

    async def send_request(self, where: str, fields: dict[str, Any], entry: str = "") -> bool:
        """Send a request, given as `Request.to_dict` returns it. If that fails, record it and return False.

        A request with `dont_filter` is queued even if its URL was seen, but only once for each `entry`.
        """
        name = fields.get("_class")
        if isinstance(name, str) and not name.startswith(_SCRAPYS) and name not in self._classes:
            self.record_skipped(where, f"it is a {name[:100]}: allow that with --request-class {name[:100]}")
            return False
        try:
            url, canonical = encode_stored(
                fields,
                key_of=self._crawl.url_keys.of_request,
                url_bytes_max=self._crawl.config.frontier.url_bytes_max,
                traits=self._traits,
                entry=entry,
            )
        except (UrlError, RequestNotStorableError, ValueError, OverflowError) as error:
            self.record_skipped(where, str(error))
            return False
        await self._inboxes.add_url(self._partition_of(canonical), url)
        self.sent += 1
        return True

    async def send_url(self, where: str, url: str, priority: int = 0, callback: str | None = None) -> bool:
        """Send a URL. If that fails, record it and return False."""
        try:
            place = self._crawl.place_of(url)
            queued = links_encoder(Links([place.url], priority=priority, callback=callback), 0, self._traits)
        except (UrlError, RequestNotStorableError, ValueError) as error:
            self.record_skipped(where, str(error))
            return False
        await self._inboxes.add_url(place.partition, queued(place.key, place.url))
        self.sent += 1
        return True

    def record_skipped(self, where: str, reason: str) -> None:
        self.left_out += 1
        if len(self.bad) < BAD_SHOWN:
            self.bad.append(NotImported(where, reason[:300]))

    async def flush(self) -> None:
        await self._inboxes.flush()

    async def keep_fetched(
        self, scheme: str, known: npt.NDArray[np.uint64], waiting: npt.NDArray[np.uint64], *, is_certain: bool
    ) -> str:
        """Store the fingerprints of fetched pages: all in `known` (ascending) except those in `waiting`.

        Return the scheme of the fingerprints, one of `bigcrawl.url.scrapy_fingerprint`. An earlier import's scheme
        replaces one that is not certain; raise ConfigError if it contradicts one that is.
        """
        client, crawl = self._crawl.client, self._crawl.config.crawl.name
        control = self._crawl.crawl_keys.control
        found = await client.command("HGET", control, FINGERPRINTS)
        earlier = scheme if found is None else found.decode()
        if is_certain and earlier != scheme:
            raise ConfigError(
                f"crawl {crawl!r} has fingerprints of another kind ({earlier}, not {scheme}) from an earlier "
                f"import: import into another crawl"
            )
        await Fingerprints(client, crawl).update(known, waiting)
        await client.command("HSET", control, FINGERPRINTS, earlier)
        return earlier

    def lines(self) -> list[str]:
        more = self.left_out - len(self.bad)
        shown = [f"left out: {where}: {reason}" for where, reason in self.bad]
        return shown + ([f"and {more:,} more"] if more else [])

    def _partition_of(self, canonical: str) -> int:
        pld = self._crawl.suffixes.pld(host_of(canonical))
        return self._crawl.url_keys.partition_of(pld, self._crawl.partitions)


class ImportSource(Protocol):
    """Reads the data of another crawler.

    `pauses` says that fetched pages must be known before links lead to them; then the crawl must not run, and is paused
    until all data is there.
    """

    pauses: bool

    async def read_into(self, sender: RequestSender) -> list[str]:
        """Send all data with `sender`. Return warnings about missing parts."""


def import_source(config: Config, source: ImportSource, request_classes: Collection[str]) -> Result:
    """Import data into a crawl, which is created if missing; the exit status is 1 if parts were skipped."""
    with server_of(config, may_begin=True) as server:
        sender, remarks = asyncio.run(_import(config, server, source, request_classes))
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
    config: Config, server: str, source: ImportSource, request_classes: Collection[str]
) -> tuple[RequestSender, list[str]]:
    async with crawl_for_import(config, server, pauses=source.pauses) as crawl:
        if source.pauses and await crawl.nodes():
            raise ConfigError(f"crawl {config.crawl.name!r} is running: stop it, import, and start it again")
        sender = RequestSender(crawl, request_classes)
        remarks = await source.read_into(sender)
        await sender.flush()
    return sender, remarks


class SourceRedis:
    """Another crawler's Redis, which is only read. Raises ConfigError if there is no Redis at the URL."""

    def __init__(self, url: str) -> None:
        with _about_source():
            self._client = RedisClient(url)

    async def close(self) -> None:
        await self._client.close()

    async def command(self, *words: str | bytes | int) -> Any:
        with _about_source():
            return await self._client.command(*words)

    async def read_queue(self, queue: str, rank: int, *, is_stack: bool) -> QueuePart:
        """Read entries of a list or zset from `rank` on, in queue order; of large entries only the size."""
        end, bounds = "left" if is_stack else "right", (_PART_ENTRIES_MAX, _PART_BYTES_MAX, ENTRY_BYTES_MAX)
        with _about_source():
            part: QueuePart = await self._client.read(read_queue(ListKeys(queue), rank, end, *bounds))
        if part.kind not in ("list", "zset", "none"):
            raise ConfigError(
                f"{queue} is a {part.kind}: it must be a list or a zset, as the queues of scrapy-redis are"
            )
        return part


@contextmanager
def _about_source() -> Iterator[None]:
    """Make connection errors name the Redis to import from, not BIGCRAWL_REDIS_URL."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(str(error).replace("BIGCRAWL_REDIS_URL", "the Redis to import from")) from None


EXPORT: Final = "export"
_SOURCES: Final = "bigcrawl_foreign.url_lists"


def import_from_options(parser: argparse.ArgumentParser) -> None:
    annex = load_module(_SOURCES) if has_annex(_SOURCES) else None
    parser.add_argument(
        "--from",
        dest="source",
        type=_check_source,
        choices=annex and [EXPORT, *annex.SOURCES],
        default=EXPORT,
        help="what it is; an export by default",
    )
    if annex:
        annex.add_options(parser)


def _check_source(word: str) -> str:
    """Return the name of a source; raise ConfigError if it needs the annex for other crawlers, which is missing."""
    if word != EXPORT:
        load_module(_SOURCES)
    return word


def name_for(opts: argparse.Namespace) -> str:
    """Return the crawl's name, from the export or the spider; empty if neither has one."""
    if opts.source == EXPORT:
        return exported_crawl(Path(opts.words[0]))
    return crawl_name_of(opts.spider) if opts.spider else ""


def import_from(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Import an export, or another crawler's data, into a crawl, which is created if missing."""
    if opts.source == EXPORT:
        return import_crawl(config, words, opts)
    source = load_module(_SOURCES).SOURCES[opts.source](words[0], opts)
    return import_source(config, source, opts.request_class)
