"""A disk that is full or hangs, for a node that runs as a process of its own.

The node is started with `-s EXTENSIONS={"tests.support.faults.disk.FaultyDisk": 0}` and the setting FAULTY_DISK: a
file that says what the disk does now. No file: it works. What it says of pages holds for the state of forms too.
"""

from __future__ import annotations

import errno
import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured

from bigcrawl.drum.files import DiskFiles
from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler

FULL, HANGING, PAGES_FULL, PAGES_HANGING = "full", "hanging", "pages full", "pages hanging"
POLL_S = 0.02
# What needs room, or waits for the medium.
_STATE = ("write_new", "write_at", "link", "make_directory", "sync_file", "sync_directory", "replace")
_PAGES = ("create", "write", "sync")
_NEEDS_ROOM = frozenset({"write_new", "write_at", "link", "make_directory", "create", "write"})
_WAITS = frozenset({*_STATE, "sync"})


class FaultyDisk:
    """Puts itself between this process and its files."""

    def __init__(self, word: Path) -> None:
        self._word = word
        for name in _STATE:
            setattr(DiskFiles, name, self._between(name, getattr(DiskFiles, name), FULL, HANGING))
        for name in _PAGES:
            setattr(OsFiles, name, self._between(name, getattr(OsFiles, name), PAGES_FULL, PAGES_HANGING))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        word = crawler.settings.get("FAULTY_DISK")
        if not word:
            raise NotConfigured("no FAULTY_DISK")
        return cls(Path(word))

    def _between(self, name: str, act: Callable[..., Any], full: str, hanging: str) -> Callable[..., Any]:
        @functools.wraps(act)
        def met(files: object, *words: Any, **more: Any) -> Any:
            said = self._said()
            while said == hanging and name in _WAITS:
                time.sleep(POLL_S)
                said = self._said()
            if said == full and name in _NEEDS_ROOM:
                raise OSError(errno.ENOSPC, "No space left on device", str(words[0]))
            return act(files, *words, **more)

        return met

    def _said(self) -> str:
        try:
            return self._word.read_text()
        except FileNotFoundError:
            return ""


def say(word: Path, what: str) -> None:
    """Let the disk be so from now on; the empty string: well."""
    if not what:
        word.unlink(missing_ok=True)
        return
    fresh = word.with_suffix(".new")
    fresh.write_text(what)
    fresh.replace(word)
