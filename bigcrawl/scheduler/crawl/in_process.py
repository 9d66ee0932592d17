"""A node's record of its URLs in process, in a file that survives the node's death.

A URL is in process while Scrapy's engine has its request, including parsing and item pipelines. The record is the
node's lock file, mapped into memory. After a death, another node reads there which URLs had been started, and on which
the project's code was at work. A clean stop empties it.

    0    32 bytes  the line `MAGIC`, then zeros
    32   u64 each  a slot: 0, or 2^63 if the project's code is at work on it + (partition + 1) * 2^40 + sequence number;
                   in native byte order

The project's code is at work on unfinished pages in the spider and on the latest response, in the downloader
middlewares. Other responses wait, so they cannot have killed the node.

Nothing is forced to disk: the kernel keeps a dead process's writes, and after a power failure the record counts as
unknown.
"""

from __future__ import annotations

import logging
import mmap
import os
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

MAGIC = b"bigcrawl in process 1\n"
UNKNOWN = "*"

UNRECORDED = -1
"""The slot of a URL for which none was free."""

_HEADER_BYTES, _SLOT_BYTES = 32, 8
_FIRST = _HEADER_BYTES // _SLOT_BYTES
_AT_WORK = 1 << 63
_PARTITION_SHIFT = 40
_SEQ_MASK = (1 << _PARTITION_SHIFT) - 1


class InProcess:
    def __init__(self, urls_max: int) -> None:
        # Twice as many: a URL that another node owns now may still be in process here.
        self._slots = 2 * urls_max
        self._free: list[int] = []
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._arrived: HeldUrl | None = None  # the latest response, until the spider has it
        self.running: HeldUrl | None = None  # the page on which the spider works, if nothing has happened to it since
        self._slot_of: dict[HeldUrl, int] = {}

    def __repr__(self) -> str:
        return f"<InProcess {len(self._slot_of)}>"

    def __len__(self) -> int:
        return len(self._slot_of)

    def open(self, fd: int) -> None:
        """Start recording. If the file cannot be written or mapped, it stays empty, which means unknown."""
        try:
            # Written, not only extended: a page that could not be allocated later would cause a SIGBUS.
            with os.fdopen(fd, "wb", closefd=False) as file:
                file.write(MAGIC.ljust(_HEADER_BYTES, b"\0") + bytes(self._slots * _SLOT_BYTES))
            self._map = mmap.mmap(fd, _HEADER_BYTES + self._slots * _SLOT_BYTES)
        except (OSError, ValueError) as error:
            logger.warning("the URLs in flight on this node are not recorded: %(error)s", {"error": error})
            os.ftruncate(fd, 0)
            return
        self._view = memoryview(self._map).cast("Q")
        self._free = list(range(_FIRST, _FIRST + self._slots))

    def start(self, held: HeldUrl) -> None:
        slot = self._free.pop() if self._view is not None and self._free else UNRECORDED
        self._slot_of[held] = slot
        if self._view is not None and slot > 0:
            self._view[slot] = (held.partition + 1) << _PARTITION_SHIFT | held.fields.seq

    def record_answered(self, held: HeldUrl) -> None:
        if self._arrived is not None:
            self.record_parsed(self._arrived)
        self._arrived = held
        self.running = None
        self._mark(held)

    def record_running(self, held: HeldUrl) -> None:
        """Record that the spider is working on the URL's page, whatever else arrives."""
        if self._arrived is held:
            self._arrived = None
        self.running = held
        self._mark(held)

    def record_parsed(self, held: HeldUrl) -> None:
        """Record that the project's code has finished with the URL, although the engine still has it."""
        self.running = None
        if self._view is not None and (slot := self._slot_of.get(held, 0)) > 0:
            self._view[slot] &= ~_AT_WORK

    def end(self, held: HeldUrl) -> bool:
        """Free the URL's slot. Return False if the URL was never in process."""
        slot = self._slot_of.pop(held, 0)
        if not slot:
            return False
        if self._view is not None and slot > 0:
            self._view[slot] = 0
            self._free.append(slot)
        return True

    def forget(self) -> None:
        """Clear the record at a clean stop: no URL is to blame if the process dies later."""
        if self._view is None or self._map is None:
            return
        for slot in range(_FIRST, _FIRST + self._slots):
            self._view[slot] = 0
        self._view.release()
        self._view = None
        self._map.close()

    def _mark(self, held: HeldUrl) -> None:
        if self._view is not None and (slot := self._slot_of.get(held, 0)) > 0:
            self._view[slot] |= _AT_WORK


def read_in_process(path: Path) -> dict[int, str] | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if not data.startswith(MAGIC) or len(data) % _SLOT_BYTES:
        return None
    found: dict[int, str] = defaultdict(str)
    for value in filter(None, memoryview(data)[_HEADER_BYTES:].cast("Q")):
        partition = ((value & ~_AT_WORK) >> _PARTITION_SHIFT) - 1
        found[partition] += f" {value & _SEQ_MASK}{'a' if value & _AT_WORK else 'f'}"
    return found
