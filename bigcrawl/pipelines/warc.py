"""Stores every exchange of the crawl in WARC files, in any Scrapy project, with any scheduler.

``ITEM_PIPELINES = {"bigcrawl.pipelines.warc.WarcPipeline": 900}`` and ``BIGCRAWL_WARC_DIR`` switch it on. Items pass
through it unchanged. It stores responses from Scrapy's ``response_downloaded`` signal, before any middleware has
decoded or replaced them. So the files also contain robots.txt fetches, redirects and error pages, but no responses from
Scrapy's HTTP cache or aborted with ``StopDownload(fail=True)``.

A scheduler reads `PageWrites.pages` when a request has ended, and acknowledges it once `PageWrites.safe_pages` has
reached that number. Then neither a crash, nor a stop on a full disk, nor a power failure (with
BIGCRAWL_WARC_SYNC_SECONDS) loses an acknowledged page. `pipelines.page_writes` handles full and hanging disks.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from functools import lru_cache
from threading import Event
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import scrapy
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import call_later, run_in_thread
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from bigcrawl import __version__
from bigcrawl.clock import SystemClock, time_text
from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import PAGE_PART
from bigcrawl.links.page import charset_of
from bigcrawl.page_index.index_files import remove_indexes
from bigcrawl.pipelines.engine_pause import EnginePause
from bigcrawl.pipelines.page_indexer import PageIndexer
from bigcrawl.pipelines.page_upkeep import PeriodicPageWork
from bigcrawl.pipelines.page_writes import PageWrites
from bigcrawl.scheduler.adapter.registry import frontier_of, judge_of, register_notes, register_storage, storage_of
from bigcrawl.scheduler.adapter.request_codec import FOUND, PARENT
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.warc.directory_mark import DirectoryMark
from bigcrawl.warc.files import LOCKS_REMEDY, OPEN_SUFFIX, OsFiles, lacks_locks
from bigcrawl.warc.group_commit import GroupCommit
from bigcrawl.warc.origins import ORIGINS_MAX, RecentOrigins
from bigcrawl.warc.records import Conversion, Exchange, Note, Truncation, new_record_id
from bigcrawl.warc.segments import SealingOptions, WarcWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ipaddress import IPv4Address, IPv6Address
    from pathlib import Path
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from twisted.internet.defer import Deferred

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config, CrawlConfig
    from bigcrawl.page_index.index_files import IndexedFile
    from bigcrawl.pipelines.origin_sharing import OriginSharing
    from bigcrawl.pipelines.page_shipping import WarcUploads
    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.warc.files import Files
    from bigcrawl.warc.recovery import RecoveredFile

logger = logging.getLogger(__name__)

# A crawl that ends by itself might have no next start.
DISK_AT_END_SECONDS = 60.0
_LOOK_SECONDS = 0.25
# The node must end within ten seconds of SIGTERM. The next start does the rest.
DISK_AT_CLOSE_SECONDS = 4.0
RECOVERY_AT_CLOSE_SECONDS = 2.0
INDEX_AT_CLOSE_SECONDS = 2.0
UPLOAD_AT_CLOSE_SECONDS = 1.0

_SCHEMES = ("http://", "https://")
HOPS_MAX = 100  # of a note
# "partial" is not a truncation: Scrapy sets it for every body that ends with the connection.
_TRUNCATIONS: dict[str, Truncation] = {
    "truncated": "length",
    "truncated-time": "time",
    "dataloss": "disconnect",
    "download_stopped": "unspecified",
}


class WarcPipeline:
    """Stores the crawl's exchanges; see the module. `directory` must exist."""

    def __init__(
        self,
        crawler: Crawler,
        directory: Path,
        clock: Clock | None = None,
        retry_seconds: float = 1.0,
        files: Files | None = None,
    ) -> None:
        self._crawler = crawler
        self._directory = directory
        self._clock = clock or SystemClock()
        self._disk = disk = GroupCommit(lambda: self._writer.sync_function(), None, self._clock)  # noqa: PLW0108 - made below
        config = read_config(crawler.settings)
        self._files = files or OsFiles(config.crawl.warc_mode)
        self._pause = EnginePause(crawler)
        self._shipping = _uploads_of(crawler, directory, config.crawl, self._pause)
        self._indexer = PageIndexer(config.crawl.warc_indexes, config.crawl.warc_mode, self._record_indexed)
        origins, self._sharing = _origins_of(config.crawl, disk)
        self._sharing_task: asyncio.Task[None] | None = None
        self._writer = _make_writer(config, directory, self._clock, self._files, disk, self._record_sealed, origins)
        self._stats_buffer = StatsBuffer(crawler)
        self.writes = PageWrites(directory, self._writer, disk, self._pause, self._stats_buffer, retry_seconds)
        self._record_ids: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()
        self._originals: WeakKeyDictionary[Request, str] = WeakKeyDictionary()
        self._recovery: Deferred[None] | None = None
        self._stop_recovery = Event()
        self._upkeep = PeriodicPageWork(lambda: self._disk.submit(self._writer.touch), self._recover_again)
        self._indexed = 0
        self._indexed_counted = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        whole = read_config(crawler.settings)
        if whole.source.pattern:
            raise NotConfigured("pages of BIGCRAWL_SOURCE are stored already")
        config = whole.crawl
        # Without the add-on, which sets a default, pages are stored only on request.
        if config.warc_dir is None or crawler.settings.get("BIGCRAWL_WARC_DIR") is None:
            raise NotConfigured("BIGCRAWL_WARC_DIR is not set: pages are not stored")
        if storage_of(crawler) is not None:
            raise NotConfigured("there is another pipeline that stores the pages, so this one is disabled")
        pipeline = cls(crawler, usable_directory(config.warc_dir))
        crawler.signals.connect(pipeline.response_downloaded, signal=signals.response_downloaded)
        register_storage(crawler, pipeline.writes)
        register_notes(crawler, pipeline)
        return pipeline

    def open_spider(self) -> None:
        frontier = frontier_of(self._crawler)
        settings = self._crawler.settings
        obeys = settings.getbool("ROBOTSTXT_OBEY") if frontier is None else frontier.config.politeness.obey_robots
        self._writer.describe("robots", "obeyed (RFC 9309)" if obeys else "ignored")
        if frontier is not None:
            self._disk.sync_every(frontier.config.crawl.warc_sync_s or None)
            if self._sharing is not None:
                self._sharing_task = asyncio.get_running_loop().create_task(self._sharing.run(frontier))
        else:
            logger.info(
                "Pages are stored in %(directory)s by this process alone; if it is killed, its pages in flight are "
                "neither stored nor, on Scrapy's own scheduler, fetched again",
                {"directory": self._directory},
            )
        if self._shipping is not None:
            self._shipping.begin()
        # Fetching does not wait for recovery: scanning a gigabyte takes seconds.
        self._recovery = deferred_from_coro(self._recover_files())
        self._upkeep.begin()

    def process_item(self, item: Any) -> Any:
        return item

    async def close_spider(self) -> None:
        self._crawler.signals.disconnect(self.response_downloaded, signal=signals.response_downloaded)
        self._upkeep.end()
        if self._sharing_task is not None:
            self._sharing_task.cancel()
        self.writes.end()
        self._disk.submit(self._writer.close)
        # In a thread: syncing up to a gigabyte must not delay other closing components.
        if not await self._end_disk():
            logger.error(
                "the last writes to %(directory)s failed; the next start closes the file, and pages that were not "
                "acknowledged are fetched again",
                {"directory": self._directory},
            )
        await self._end_recovery()
        await run_in_thread(self._indexer.end, INDEX_AT_CLOSE_SECONDS)
        self._count_indexed()
        if self._shipping is not None:
            await self._shipping.end(UPLOAD_AT_CLOSE_SECONDS)
        self._stats_buffer.flush()

    def response_downloaded(self, response: Response, request: Request) -> None:
        try:
            if not request.url.startswith(_SCHEMES):
                return
            judge = judge_of(self._crawler)
            if judge is not None and judge.eliminates(request, response):
                return
            record_id = self._record_ids[request] = new_record_id()
            frontier = frontier_of(self._crawler)
            notes = _metadata_fields(request, response, _download_ms(request, frontier))
            if frontier is not None and (held := frontier.started.held_of(request)):
                notes["key"] = f"{held.fields.key:016x}"
            exchange = _exchange_of(request, response, self._clock.now_ms(), record_id, notes)
            written = self.writes.write(exchange)
            self._count_indexed()
            if written is not None:
                # The spider did not see a body that came with an error before.
                if (origin := written.origin) is not None and origin.status == response.status:
                    self._originals[request] = origin.url
                if frontier is not None:
                    frontier.started.record_payload(request, response.body, written.payload)
        except Exception:
            self._stats_buffer.inc_value("bigcrawl/warc/write_errors")
            logger.exception("%(url)s is not stored", {"url": request.url})

    def record_page(self, request: Request, fields: Mapping[str, str]) -> None:
        """Write a metadata record about the page that answered a request, if it was stored. Raises nothing."""
        self._write_related(request, lambda record_id, now_ms: Note(request.url, record_id, now_ms, fields))

    def record_conversion(self, request: Request, content_type: str, body: bytes) -> None:
        """Write a converted form of the page that answered a request, like `record_page`."""
        self._write_related(
            request, lambda record_id, now_ms: Conversion(request.url, record_id, now_ms, content_type, body)
        )

    def _write_related(self, request: Request, item: Callable[[bytes, int], Note | Conversion]) -> None:
        record_id = self._record_ids.get(request)
        if record_id is None:
            return
        try:
            self.writes.write(item(record_id, self._clock.now_ms()))
        except Exception:
            self._stats_buffer.inc_value("bigcrawl/warc/write_errors")
            logger.exception("a record about %(url)s is not stored", {"url": request.url})

    def original_of(self, request: Request) -> str:
        """Return the URL of a page with the same status and body as the request's answer; empty if unknown."""
        return self._originals.get(request, "")

    async def _end_disk(self) -> bool:
        patient_until_ms = self._clock.monotonic_ms() + DISK_AT_END_SECONDS * 1000
        while self._crawler.crawling and not self._disk.has_ended and self._clock.monotonic_ms() < patient_until_ms:
            await run_in_thread(self._disk.end, _LOOK_SECONDS)
        return await run_in_thread(self._disk.end, DISK_AT_CLOSE_SECONDS)

    async def _end_recovery(self) -> None:
        """Wait briefly for recovery, so that tiny crawls recover too; the next run recovers gigabytes."""
        if self._recovery is None:
            return
        timer = call_later(RECOVERY_AT_CLOSE_SECONDS, self._stop_recovery.set)
        await maybe_deferred_to_future(self._recovery)
        timer.cancel()

    def _recover_again(self) -> None:
        if self._recovery is not None and self._recovery.called:
            self._recovery = deferred_from_coro(self._recover_files())

    async def _recover_files(self) -> None:
        try:
            found = await run_in_thread(self._recover_others)
        except Exception:
            logger.exception(
                "recovering the files of earlier runs in %(directory)s failed", {"directory": self._directory}
            )
            return
        for file in found:
            logger.info(
                "%(path)s of an earlier run is closed: %(records)d records, %(cut)d bytes cut off",
                {"path": file.path, "records": file.kept_records, "cut": file.cut_bytes},
            )
            self._stats_buffer.inc_value("bigcrawl/warc/recovered_files")
            self._stats_buffer.inc_value("bigcrawl/warc/cut_bytes", file.cut_bytes)
        try:
            await run_in_thread(self._indexer.add_missing, self._directory)
        except OSError as error:
            logger.warning("the search for files without an index failed: %(error)s", {"error": error})
        self._ship()

    def _recover_others(self) -> list[RecoveredFile]:
        """Recover other writers' files; if there are none, do not import the code for it."""
        own = self._writer.open_path
        if all(path == own for path in self._directory.glob(f"*{OPEN_SUFFIX}")):
            return []
        from bigcrawl.warc.recovery import recover_directory

        stop = self._stop_recovery.is_set
        return recover_directory(self._directory, should_stop=stop, remove_indexes=remove_indexes, files=self._files)

    def _record_sealed(self, path: Path) -> None:
        self._indexer.add_file(path)
        self._ship()

    def _record_indexed(self, indexed: IndexedFile) -> None:
        """Count an indexed file. The indexer's thread calls this, so it must not change stats."""
        self._indexed += 1
        self._ship()

    def _ship(self) -> None:
        if self._shipping is not None:
            self._shipping.check_for_files()

    def _count_indexed(self) -> None:
        made = self._indexed
        if made > self._indexed_counted:
            self._stats_buffer.inc_value("bigcrawl/warc/indexed_files", made - self._indexed_counted)
            self._indexed_counted = made


def _download_ms(request: Request, frontier: Frontier | None) -> int:
    """Return the time to the last byte, as the frontier measures it, or to the first, as Scrapy's handlers do."""
    known = frontier.started.download_ms_of(request) if frontier is not None else None
    return round(request.meta.get("download_latency", 0) * 1000) if known is None else known


def _exchange_of(
    request: Request, response: Response, now_ms: int, record_id: bytes, notes: dict[str, str]
) -> Exchange:
    # The handler measures the time to the first byte, so the date lies within the fetch.
    meta, ip = request.meta, response.ip_address
    latency_ms = int(meta.get("download_latency", 0) * 1000)
    return Exchange(
        url=request.url,
        method=request.method,
        request_headers=_header_pairs(request.headers),
        request_body=request.body,
        status=response.status,
        response_headers=_header_pairs(response.headers),
        response_body=response.body,
        date_ms=now_ms - latency_ms,
        protocol=response.protocol,
        ip=None if ip is None or meta.get("proxy") else _address_text(ip),
        truncated=_truncation_reason(response.flags),
        record_id=record_id,
        notes=notes,
    )


def _metadata_fields(request: Request, response: Response, download_ms: int) -> dict[str, str]:
    meta = request.meta
    notes = {"fetchTimeMs": str(download_ms), "depth": str(meta.get("depth", 0)), "priority": str(request.priority)}
    redirected = meta.get("redirect_urls")
    via = redirected[-1] if redirected else _last_value(request.headers, b"Referer") or meta.get(PARENT)
    if via:
        notes["via"] = via.decode("latin-1") if isinstance(via, bytes) else str(via)
    if (steps := meta.get(PAGE_PART)) is not None:  # as Heritrix writes the path from a seed: links and embeds
        notes["hopsFromSeed"] = ("L" * min(int(meta.get("depth", 0)), HOPS_MAX)) + "E" * int(steps)
    if (found := meta.get(FOUND)) is not None:
        notes["foundTime"] = time_text(found[0] * 1000, "T")
        if found[1]:
            notes["foundAddress"] = found[1]
    if isinstance(response, HtmlResponse) and b"charset" not in _last_value(response.headers, b"Content-Type").lower():
        charset = charset_of(response)
        if charset is not None:
            notes["charset"] = charset
    return notes


def _last_value(headers: Headers, name: bytes) -> bytes:
    # Scrapy's get() would convert the name and a default again.
    values: list[bytes] = dict.get(headers, name) or [b""]
    return values[-1]


def _header_pairs(headers: Headers) -> list[tuple[bytes, bytes]]:
    # Scrapy's items() would look up each name again.
    return [(name, value) for name, values in dict.items(headers) for value in values]


def _truncation_reason(flags: list[str]) -> Truncation | None:
    return next((_TRUNCATIONS[flag] for flag in flags if flag in _TRUNCATIONS), None) if flags else None


@lru_cache(10_000)
def _address_text(address: IPv4Address | IPv6Address) -> str:
    return str(address)


def _make_writer(
    config: Config,
    directory: Path,
    clock: Clock,
    files: Files,
    disk: GroupCommit,
    record_sealed: Callable[[Path], object],
    origins: RecentOrigins,
) -> WarcWriter:
    crawl, node = config.crawl.name, config.crawl.node
    info = {
        "software": f"bigcrawl/{__version__} Scrapy/{scrapy.__version__}",
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "isPartOf": crawl,
        "http-header-user-agent": config.politeness.agent,
    }
    if config.politeness.contact:
        info["operator"] = config.politeness.contact
    record = config.crawl.crawl_dir / "nodes" / f"{config.crawl.machine}.warc-marks"
    mark = DirectoryMark(directory, config.crawl.warc_mode, record)
    sealing = SealingOptions(run=disk.submit, on_sealed=record_sealed)
    writer = WarcWriter(mark, crawl, node, clock=clock, files=files, sealing=sealing, origins=origins)
    for name, value in info.items():
        writer.describe(name, value)
    return writer


def _origins_of(config: CrawlConfig, disk: GroupCommit) -> tuple[RecentOrigins, OriginSharing | None]:
    if config.warc_copies != "over-nodes":
        return RecentOrigins(0 if config.warc_copies == "whole" else ORIGINS_MAX), None
    from bigcrawl.pipelines.origin_sharing import OriginSharing
    from bigcrawl.warc.shared_origins import SharedOrigins

    origins = SharedOrigins(ORIGINS_MAX)
    return origins, OriginSharing(origins, disk)


def _uploads_of(crawler: Crawler, directory: Path, config: CrawlConfig, pause: EnginePause) -> WarcUploads | None:
    if config.warc_store_url is None:
        return None
    from bigcrawl.pipelines.page_shipping import WarcUploads

    return WarcUploads(crawler, directory, config, config.warc_store_url, pause)


def usable_directory(directory: Path) -> Path:
    """Return the directory, created durably if missing; raise ConfigError if it is unusable."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # an unreadable parent may still be writable
            for made in missing:
                OsFiles().sync_directory(made.parent)
    except OSError as error:
        raise ConfigError(f"BIGCRAWL_WARC_DIR is {directory}: {error.strerror}; name a directory") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigError(f"BIGCRAWL_WARC_DIR is {directory}: it is not writable; name another directory")
    if lacks_locks(directory):
        raise ConfigError(f"BIGCRAWL_WARC_DIR is {directory}: its file system has no locks; {LOCKS_REMEDY}")
    return directory
