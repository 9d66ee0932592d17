"""Indexes the WARC files of a node after they are sealed, and those that earlier runs left without an index.

A large file takes some 20 seconds of CPU per gibibyte, so a process of low priority indexes it; a small one takes
milliseconds in a thread, except as Parquet, whose imports would stay in memory. A failed index is retried.
"""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from bigcrawl.json_text import read_json
from bigcrawl.page_index.index_files import PARQUET, IndexedFile, index_file, index_path, unindexed_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

SMALL_BYTES: Final = 4 << 20
AGAIN_S: Final = 300.0  # wait before a retry, because a large file is costly
_REMEDY: Final = "the next start makes it, or `scrapy frontier warc index`"


class PageIndexer:
    """Indexes files in the background, one by one, and calls `is_made` in its thread after each."""

    def __init__(self, kinds: Sequence[str], mode: int, is_made: Callable[[IndexedFile], object]) -> None:
        self._kinds = kinds
        self._mode = mode
        self._is_made = is_made
        self._waiting: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._again_s: dict[Path, float] = {}
        self._is_ending = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._here: Path | None = None
        self._left: subprocess.Popen[bytes] | None = None  # outlives the crawl
        self._thread = threading.Thread(target=self._index_files, name="warc-index", daemon=True)
        self._starting = threading.Lock()

    def add_file(self, path: Path) -> None:
        """Index a sealed file if it has no index. Thread-safe; raises nothing."""
        if not self._kinds:
            return
        self._waiting.put(path)
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()

    def add_missing(self, directory: Path) -> None:
        if self._kinds:
            for path in unindexed_files(directory, self._kinds):
                self.add_file(path)

    def end(self, within_s: float) -> None:
        """Wait for the remaining files, at most `within_s`; a process finishes the current file, even later."""
        self._waiting.put(None)
        if self._thread.ident is None:
            return
        self._thread.join(within_s)
        self._is_ending.set()
        process, here = self._process, self._here
        if self._thread.is_alive():
            if here is not None:
                process = self._left = self._leave_to_process(here)
            logger.info(
                "WARC files still have to be indexed: %(who)s; if it is stopped, %(remedy)s",
                {"who": f"process {process.pid} goes on" if process else "none goes on", "remedy": _REMEDY},
            )

    def _index_files(self) -> None:
        while not self._is_ending.is_set() and (path := self._next_file()) is not None:
            try:
                indexed = self._index_file(path)
            except (OSError, ValueError) as error:
                if path not in self._again_s:
                    remedy = f"it is tried again every {AGAIN_S / 60:g} minutes; or {_REMEDY}"
                    problem = {"path": path, "error": error, "remedy": remedy}
                    logger.error("%(path)s has no index: %(error)s; %(remedy)s", problem)  # noqa: TRY400 - one line
                self._try_again(path)
                continue
            except Exception:
                logger.exception("%(path)s has no index", {"path": path})
                self._try_again(path)
                continue
            if indexed is None and path.exists() and not self._is_indexed(path):
                self._try_again(path)
                continue
            self._again_s.pop(path, None)
            if indexed is None:
                continue
            if indexed.problem:
                found = {"problem": indexed.problem, "pages": indexed.pages}
                logger.error(
                    "%(problem)s; its index has only the %(pages)d pages before that place; see `scrapy frontier warc`",
                    found,
                )
            self._is_made(indexed)

    def _next_file(self) -> Path | None:
        """Wait for a new file, or for a retry to be due, and return the file; None at the end."""
        again = self._again_s
        rest_s = max(0.0, min(again.values()) - time.monotonic()) if again else None
        try:
            return self._waiting.get(timeout=rest_s)
        except queue.Empty:
            return min(again, key=again.__getitem__)

    def _try_again(self, path: Path) -> None:
        self._again_s[path] = time.monotonic() + AGAIN_S

    def _is_indexed(self, path: Path) -> bool:
        return all(index_path(path, kind).exists() for kind in self._kinds)

    def _index_file(self, path: Path) -> IndexedFile | None:
        try:
            is_small = path.stat().st_size < SMALL_BYTES
        except FileNotFoundError:
            return None
        if self._is_indexed(path):
            return None
        if not is_small or PARQUET in self._kinds:
            return self._index_apart(path)
        self._here = path
        try:
            return index_file(path, self._kinds, self._mode)
        finally:
            self._here = None

    def _index_apart(self, path: Path) -> IndexedFile | None:
        self._process = process = self._begin_process(path, output=subprocess.PIPE)
        told, complaint = process.communicate()
        self._process = None
        lines = told.splitlines()
        if not lines:
            if process.returncode:
                last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
                raise OSError(f"its process ended with status {process.returncode}: {last[:500]}")
            return None
        answer = read_json(lines[-1])
        if "error" in answer:
            raise OSError(answer["error"])
        return IndexedFile(path, answer["pages"], answer["problem"])

    def _leave_to_process(self, path: Path) -> subprocess.Popen[bytes] | None:
        try:
            return self._begin_process(path, "--left", output=subprocess.DEVNULL)
        except OSError as error:
            logger.warning("%(path)s is left without an index: %(error)s", {"path": path, "error": error})
            return None

    def _begin_process(self, path: Path, *options: str, output: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "bigcrawl.page_index", "--kinds", ",".join(self._kinds)]
        return subprocess.Popen(
            [*command, "--mode", f"{self._mode:o}", *options, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # also that of an egg
            start_new_session=True,
        )
