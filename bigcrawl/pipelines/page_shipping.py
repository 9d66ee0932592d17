"""Uploads the WARC files of a node to a store, and pauses the crawl while waiting files fill the disk."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from scrapy.utils.asyncio import CallLaterResult, call_later, run_in_thread

from bigcrawl.page_index.index_files import SUFFIXES
from bigcrawl.page_store.uploads import waiting_files
from bigcrawl.pipelines.page_uploader import PageUploader

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from scrapy.crawler import Crawler

    from bigcrawl.config import CrawlConfig
    from bigcrawl.page_store.uploads import UploadResult
    from bigcrawl.pipelines.engine_pause import EnginePause

logger = logging.getLogger(__name__)

LOOK_S: Final = 1.0
_REASON: Final = "files that wait for the store fill the disk"
_REMEDY: Final = "if no line above says why they wait, see `scrapy frontier warc index` and `warc upload`"


class WarcUploads:
    def __init__(self, crawler: Crawler, directory: Path, config: CrawlConfig, url: str, pause: EnginePause) -> None:
        self._crawler = crawler
        self._directory = directory
        self._pause = pause
        self._timer: CallLaterResult | None = None
        self._has_complained = False
        self._uncounted: deque[UploadResult | None] = deque()
        required = [SUFFIXES[kind] for kind in config.warc_indexes]
        self._uploader = PageUploader(directory, url, tuple(SUFFIXES.values()), required, self._uncounted.append)
        self._disk = DiskUse(directory, config.warc_disk_percent_max, self._uploader.staying)

    def begin(self) -> None:
        self._uploader.start()
        self._disk.start()
        self._check_disk()

    def check_for_files(self) -> None:
        self._uploader.check_for_files()

    async def end(self, within_s: float) -> None:
        """Upload the remaining files; wait at most `within_s`. A running process may live longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._disk.stop()
        await run_in_thread(self._uploader.end, within_s)
        self._count_uploads()

    def _check_disk(self) -> None:
        self._timer = call_later(LOOK_S, self._check_disk)
        self._count_uploads()
        complaint = self._disk.complaint
        if bool(complaint) == self._has_complained:
            return
        self._has_complained = bool(complaint)
        if complaint:
            told = {"complaint": complaint, "remedy": _REMEDY}
            logger.error("%(complaint)s; the crawl pauses until there is room: %(remedy)s", told)
            self._pause.pause_for(_REASON)
        else:
            logger.info("the disk of %(directory)s has room again; the crawl continues", {"directory": self._directory})
            self._pause.resume_for(_REASON)

    def _count_uploads(self) -> None:
        """Count files and failures in the stats, which only the crawl's thread may change."""
        stats = self._crawler.stats
        while self._uncounted:
            done = self._uncounted.popleft()
            if done is None:
                stats.inc_value("bigcrawl/warc/upload_errors")
            else:
                stats.inc_value("bigcrawl/warc/uploaded_files")
                stats.inc_value("bigcrawl/warc/uploaded_bytes", done.bytes)


class DiskUse:
    """Watches whether a disk is more than `percent_max` full while files wait, apart from those that stay here."""

    def __init__(self, directory: Path, percent_max: int, staying: Container[str] = ()) -> None:
        self._directory = directory
        self._percent_max = percent_max
        self._staying = staying
        self.complaint = ""
        self._is_over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._poll_disk, name="warc-disk-use", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _poll_disk(self) -> None:
        while not self._is_over.is_set():
            try:
                self.complaint = self._current_complaint()
            except OSError:
                self.complaint = ""  # the writers there report the error
            self._is_over.wait(LOOK_S)

    def _current_complaint(self) -> str:
        percent = percent_used(self._directory)
        if percent < self._percent_max:
            return ""
        waiting = [path for path in waiting_files(self._directory) if path.name not in self._staying]
        if not waiting:
            return ""
        files = f"{len(waiting):,} files there wait for the store"
        return f"the disk of {self._directory} is {percent:.0f} % full, and {files}"


def percent_used(directory: Path) -> float:
    """Return how full a disk is, counted as `df` does, without the space reserved for root."""
    disk = os.statvfs(directory)
    used = disk.f_blocks - disk.f_bfree
    return 100 * used / max(1, used + disk.f_bavail)
