"""A node's record of its URLs in process, in a file that survives the node's death (steps 11 to 14).

A URL is in process from the moment Scrapy's engine gets its request until the engine is done with it: fetched, parsed,
its items piped. The file is the node's lock file, mapped into memory. A node that proves the death by the lock reads
there which of the URLs taken in Redis had been started, and on which of those the project's code worked. A clean stop
empties it.

    0    32 bytes  the line `MAGIC`, then zeros
    32   u64 each  a slot: 0, or 2^63 if the project's code is at work on it + (partition + 1) * 2^40 + sequence number;
                   in native byte order

The project's code is at work on the pages that the spider was given and is not done with, and before these on one:
the latest that arrived, which passes the downloader middlewares. The others that have arrived wait for their turn.
Whatever kills a node that has many of them is none of these.

Nothing is forced to disk. The kernel keeps what a dead process wrote; after a power failure the record counts as
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
"""Used if nothing can be learned about what a node had in process."""

UNRECORDED = -1
"""The slot of a URL in process that found no free slot; 0 means not in process."""

_HEADER_BYTES, _SLOT_BYTES = 32, 8
_FIRST = _HEADER_BYTES // _SLOT_BYTES
_AT_WORK = 1 << 63
_PARTITION_SHIFT = 40
_SEQ_MASK = (1 << _PARTITION_SHIFT) - 1


class InProcess:
    """The URLs in process on this node. Each call costs some 0.2 us."""

    def __init__(self, urls_max: int) -> None:
        # Twice as many: a URL that another node owns now may still be in process here.
        self._slots = 2 * urls_max
        self._free: list[int] = []
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._arrived: HeldUrl | None = None  # the latest, until the spider has it
        self._count = 0

    def __repr__(self) -> str:
        return f"<InProcess {self._count}>"

    def __len__(self) -> int:
        return self._count

    def open(self, fd: int) -> None:
        """Begin to record into a file. If it has no room or cannot be mapped, it stays empty and counts as unknown."""
        try:
            # Written, not only extended: a page that could not be allocated later would cause a SIGBUS.
            with os.fdopen(fd, "wb", closefd=False) as file:
                file.write(MAGIC.ljust(_HEADER_BYTES, b"\0") + bytes(self._slots * _SLOT_BYTES))
            self._map = mmap.mmap(fd, _HEADER_BYTES + self._slots * _SLOT_BYTES)
        except (OSError, ValueError) as error:
            logger.warning("the URLs in process on this node are not recorded: %(error)s", {"error": error})
            os.ftruncate(fd, 0)
            return
        self._view = memoryview(self._map).cast("Q")
        self._free = list(range(_FIRST, _FIRST + self._slots))

    def start(self, held: HeldUrl) -> None:
        """Record that the engine has the URL's request."""
        self._count += 1
        slot = self._free.pop() if self._view is not None and self._free else UNRECORDED
        held.enter_process(slot)
        if self._view is not None and slot > 0:
            self._view[slot] = (held.partition + 1) << _PARTITION_SHIFT | held.seq

    def note_answered(self, held: HeldUrl) -> None:
        """Record that the URL was answered or failed, and the project's code is at work on it until another one is."""
        if self._arrived is not None:
            self.note_parsed(self._arrived)
        self._arrived = held
        self._mark(held)

    def note_running(self, held: HeldUrl) -> None:
        """Record that the spider has the URL's page, and is at work on it whatever arrives meanwhile."""
        if self._arrived is held:
            self._arrived = None
        self._mark(held)

    def note_parsed(self, held: HeldUrl) -> None:
        """Record that the project's code has done its work on the URL, although the engine still has it."""
        if self._view is not None and held.slot > 0:
            self._view[held.slot] &= ~_AT_WORK

    def end(self, held: HeldUrl) -> bool:
        """Record that the engine is done with the URL. False if it was never in process."""
        if not held.slot:
            return False
        self._count -= 1
        if self._view is not None and held.slot > 0:
            self._view[held.slot] = 0
            self._free.append(held.slot)
        held.leave_process()
        return True

    def forget(self) -> None:
        """Clear the record because the node stops: whatever ends it now, no URL is to blame."""
        if self._view is None or self._map is None:
            return
        for slot in range(_FIRST, _FIRST + self._slots):
            self._view[slot] = 0
        self._view.release()
        self._view = None
        self._map.close()

    def _mark(self, held: HeldUrl) -> None:
        if self._view is not None and held.slot > 0:
            self._view[held.slot] |= _AT_WORK


def read_in_process(path: Path) -> dict[int, str] | None:
    """Return, by partition, what a lock file's node had in process, as `claim_partition` wants it; None: unknown."""
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
