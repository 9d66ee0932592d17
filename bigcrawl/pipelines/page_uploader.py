"""Has the sealed WARC files of a node moved into a store, by processes of their own, one after another.

A process uploads what is in the directory, and ends. It may hang or be killed: what it has not moved, the next one
does. Nothing of the crawl waits for it. While the store is away, one line says so, and it is asked again after 10
seconds, and then less and less often, up to every five minutes.

| when | what is started |
|---|---|
| files of earlier runs are found, or a file has its indexes | a process, if none works; else another look after it |
| a process has failed | the next one, after a rest |
| the crawl ends | a last one, which also waits for indexes; it is left to finish, in a session of its own |
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from bigcrawl.page_store.uploads import Uploaded, waiting_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

REST_S, REST_S_MAX = 10.0, 300.0
LOOK_S: Final = 600.0  # after files that another process had locked and did not move
WAIT_AT_END_S: Final = 600.0
_REMEDY: Final = "the next start uploads them, or `scrapy frontier warc upload`"


class PageUploader:
    """Uploads files in the background.

    Args:
        directory: of the files.
        url: of the store.
        known: how names of indexes end.
        required: of these, the indexes that each file gets before it is uploaded.
        note: called in the uploader's thread for each file that was uploaded, and with None for each failure.

    Attributes:
        staying: names of files that cannot be uploaded until somebody mends them. Changed by the uploader's thread.
    """

    def __init__(
        self,
        directory: Path,
        url: str,
        known: Sequence[str],
        required: Sequence[str],
        note: Callable[[Uploaded | None], object],
    ) -> None:
        self._directory = directory
        self._url = url
        self._command = [sys.executable, "-m", "bigcrawl.page_store", str(directory), url]
        self._command += ["--known", ",".join(known), "--required", ",".join(required)]
        self._note = note
        self._wake = threading.Event()
        self._is_ending = threading.Event()
        self._is_last = False
        self._is_away = False
        self._told: set[str] = set()
        self.staying: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._left: subprocess.Popen[bytes] | None = None  # the last process, which nobody waits for
        self._thread = threading.Thread(target=self._run, name="warc-upload", daemon=True)

    def __repr__(self) -> str:
        return f"<PageUploader {self._url}{' away' if self._is_away else ''}>"

    def start(self) -> None:
        """Begin with what is in the directory."""
        self._wake.set()
        self._thread.start()

    def look(self) -> None:
        """Upload what is in the directory now. From any thread; raises nothing."""
        self._wake.set()

    def end(self, within_s: float) -> None:
        """Upload what is left, and wait at most so long; a process that is at work then is left to finish."""
        self._is_ending.set()
        self._wake.set()
        self._thread.join(within_s)
        if not self._thread.is_alive():
            self._tell_left()
            return
        process = self._process
        if not self._is_last:  # it may have begun before the last files were sealed
            with suppress(OSError):
                process = self._left = self._start(WAIT_AT_END_S, subprocess.DEVNULL, subprocess.DEVNULL)
        who = f"process {process.pid} goes on" if process else "none goes on"
        logger.info(
            "WARC files are left to be uploaded to %(url)s: %(who)s; if it is stopped, %(remedy)s",
            {"url": self._url, "who": who, "remedy": _REMEDY},
        )

    # In the thread.

    def _run(self) -> None:
        rest_s = REST_S
        while not self._is_ending.is_set():
            self._wake.wait(LOOK_S)
            self._wake.clear()
            if self._has_work() and not self._upload(0.0):
                self._is_ending.wait(rest_s)
                rest_s = min(2 * rest_s, REST_S_MAX)
                self._wake.set()
            else:
                rest_s = REST_S
        self._is_last = True
        if self._left is None and self._has_work():
            self._upload(WAIT_AT_END_S)

    def _has_work(self) -> bool:
        try:
            return bool(waiting_files(self._directory))
        except OSError:
            return False  # whoever writes there tells what is wrong

    def _upload(self, wait_s: float) -> bool:
        """Run a process to its end; False if the store failed."""
        try:
            status, error = self._done_by_process(wait_s)
        except (OSError, ValueError, TypeError) as problem:  # the process could not be started, or was cut off
            status, error = 1, repr(problem)
        finally:
            self._process = None
        if status:
            self._note(None)
            self._tell_away(error)
        elif self._is_away:
            self._is_away = False
            logger.info("%(url)s takes WARC files again", {"url": self._url})
        return not status

    def _done_by_process(self, wait_s: float) -> tuple[int, str]:
        """Return the status of a process, and why it failed."""
        error = ""
        with tempfile.TemporaryFile() as complaint:
            process = self._process = self._start(wait_s, subprocess.PIPE, complaint)
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    error = self._heed(json.loads(line)) or error
            status = process.wait()
            complaint.seek(0)
            last = complaint.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        return status, error or f"the process that uploads ended with status {status}: {last[:500]}"

    def _start(self, wait_s: float, stdout: int, stderr: IO[bytes] | int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._command, "--wait", f"{wait_s:g}"],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # of an egg too
            start_new_session=True,
        )

    def _heed(self, told: dict[str, object]) -> str:
        """Take a line of the process; return why the store failed, if it says so."""
        if "error" in told:
            return str(told["error"])
        done = Uploaded(**{**told, "path": self._directory / str(told["path"])})  # type: ignore[arg-type]
        if not done.problem:
            self.staying.discard(done.path.name)
            self._note(done)
            return ""
        self.staying.add(done.path.name)
        if done.problem not in self._told:
            self._told.add(done.problem)
            logger.error("%(problem)s", {"problem": done.problem})
        return ""

    def _tell_left(self) -> None:
        try:
            left = len(waiting_files(self._directory))
        except OSError:
            return
        if left:
            told = {"left": left, "directory": self._directory, "url": self._url, "remedy": _REMEDY}
            logger.warning("%(left)d WARC files in %(directory)s wait for %(url)s; %(remedy)s", told)

    def _tell_away(self, error: str) -> None:
        if self._is_away:
            return
        self._is_away = True
        logger.error(
            "WARC files are not uploaded to %(url)s: %(error)s; they wait in %(directory)s, and the store is asked "
            "again until it takes them",
            {"url": self._url, "error": error, "directory": self._directory},
        )
