"""Moves the sealed WARC files of a node into a store, by one process after another.

A process may hang or be killed: the next one uploads the rest, and the crawl never waits for it. While the store is
away, which is logged once, retries follow after 10 seconds to five minutes. After a failure the next process begins
with the following file, so that a refused or hung file does not hold up the others.

    when                                                       started
    files of earlier runs are found, or a file has its indexes a process, after the running one
    a process has failed                                       the next one, after a rest
    the crawl ends                                             a last one, which also waits for indexes and may
                                                               outlive the crawl
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.page_store.process import UploadError, UploadOrders, UploadProcess
from bigcrawl.page_store.uploads import UploadResult, waiting_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

REST_S, REST_S_MAX = 10.0, 300.0
LOOK_S: Final = 600.0  # wait before looking again for files that another process had locked and did not move
WAIT_AT_END_S: Final = 600.0
_REMEDY: Final = "the next start uploads them, or `scrapy frontier warc upload`"


class PageUploader:
    """Uploads files in the background, each once it has its `required` indexes; the thread calls `on_result`."""

    def __init__(
        self,
        directory: Path,
        url: str,
        known: Sequence[str],
        required: Sequence[str],
        on_result: Callable[[UploadResult | None], object],
    ) -> None:
        self._directory = directory
        self._url = url
        self._orders = UploadOrders(directory, url, known, required)
        self._after = ""
        self._on_result = on_result
        self._wake = threading.Event()
        self._is_ending = threading.Event()
        self._is_last = False
        self._is_away = False
        self._told: set[str] = set()
        self.staying: set[str] = set()
        self._process: UploadProcess | None = None
        self._left: UploadProcess | None = None  # the last process, which may outlive the crawl
        self._thread = threading.Thread(target=self._upload_repeatedly, name="warc-upload", daemon=True)

    def start(self) -> None:
        self._wake.set()
        self._thread.start()

    def check_for_files(self) -> None:
        self._wake.set()

    def end(self, within_s: float) -> None:
        self._is_ending.set()
        self._wake.set()
        self._thread.join(within_s)
        if not self._thread.is_alive():
            self._log_remaining()
            return
        process = self._process
        if not self._is_last:
            with suppress(OSError):
                process = self._left = UploadProcess(self._orders, WAIT_AT_END_S, self._after)
                process.detach()
        who = f"process {process.pid} goes on" if process else "none goes on"
        logger.info(
            "WARC files still have to be uploaded to %(url)s: %(who)s; if it is stopped, %(remedy)s",
            {"url": self._url, "who": who, "remedy": _REMEDY},
        )

    def _upload_repeatedly(self) -> None:
        rest_s = REST_S
        while not self._is_ending.is_set():
            self._wake.wait(LOOK_S)
            self._wake.clear()
            if self._has_work() and not self._upload_once(0.0):
                self._is_ending.wait(rest_s)
                rest_s = min(2 * rest_s, REST_S_MAX)
                self._wake.set()
            else:
                rest_s = REST_S
        self._is_last = True
        if self._left is None and self._has_work():
            self._upload_once(WAIT_AT_END_S)

    def _has_work(self) -> bool:
        try:
            return bool(waiting_files(self._directory))
        except OSError:
            return False  # the writers there report the error

    def _upload_once(self, wait_s: float) -> bool:
        has_moved = False
        try:
            self._process = UploadProcess(self._orders, wait_s, self._after)
            for done in self._process.uploaded():
                self._handle_result(done)
                has_moved = has_moved or not done.problem
        except (OSError, UploadError) as problem:
            self._on_result(None)
            refused: set[str] = set()
            if isinstance(problem, UploadError):
                self._after, refused = problem.at, set(problem.refused)
            if refused and has_moved:
                self._record_refused(refused, str(problem))
            elif not refused or not refused <= self.staying:
                self._log_store_away(str(problem))
            return False
        finally:
            self._process = None
        if self._is_away:
            self._is_away = False
            logger.info("%(url)s accepts WARC files again", {"url": self._url})
        return True

    def _handle_result(self, done: UploadResult) -> None:
        if not done.problem:
            self.staying.discard(done.path.name)
            self._on_result(done)
            return
        self.staying.add(done.path.name)
        if done.problem not in self._told:
            self._told.add(done.problem)
            logger.error("%(problem)s", {"problem": done.problem})

    def _record_refused(self, refused: set[str], error: str) -> None:
        """Keep retrying files that the store refuses while it accepts others, but stop waiting for them."""
        self._is_away = False
        if new := sorted(refused - self.staying):
            self.staying.update(new)
            told = {"url": self._url, "files": ", ".join(new), "error": error, "directory": self._directory}
            logger.error("%(url)s accepts other files, but not %(files)s: %(error)s; they wait in %(directory)s", told)

    def _log_remaining(self) -> None:
        try:
            left = len(waiting_files(self._directory))
        except OSError:
            return
        if left:
            told = {"left": left, "directory": self._directory, "url": self._url, "remedy": _REMEDY}
            logger.warning("%(left)d WARC files in %(directory)s wait for %(url)s; %(remedy)s", told)

    def _log_store_away(self, error: str) -> None:
        if self._is_away:
            return
        self._is_away = True
        logger.error(
            "WARC files are not uploaded to %(url)s: %(error)s; they wait in %(directory)s, and the upload is "
            "retried until it succeeds",
            {"url": self._url, "error": error, "directory": self._directory},
        )
