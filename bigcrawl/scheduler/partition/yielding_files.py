"""Merges that give way to pages: a large file is written a portion at a time, with rests in between.

A merge of millions of keys takes a second of CPU, and on a node with one core to itself that is half of the core
while it lasts. Fetching is what the core is for, and the merge is in no haste: only steps of the node's own
partitions wait behind it. It hurries as soon as the node has too little to fetch, which a step could change.

Source: PolyBot §4.2, whose crawl fell to nothing for minutes while its structures were merged.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bigcrawl.drum.files import AnyPath

PORTION_S = 0.005  # of CPU, before a rest: most files are written in less
RESTS = 5  # so many times its portion: the thread that shares the core with it loses a twelfth
LOOK_S = 0.02  # whether there is haste


class UnhurriedFiles(DiskFiles):
    """The file system, for a thread that shares its core with the loop.

    Args:
        may_rest: asked between portions, in the thread that writes.
        note_sign: called when something is on the disk, or forced to it: the work gets on.
    """

    def __init__(self, may_rest: Callable[[], bool], note_sign: Callable[[], None] = lambda: None) -> None:
        self._may_rest = may_rest
        self._note_sign = note_sign

    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        super().write_new(path, self._with_rests(chunks))

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        super().write_at(path, offset, data, create=create)
        self._note_sign()

    def sync_file(self, path: AnyPath) -> None:
        super().sync_file(path)
        self._note_sign()

    def sync_directory(self, path: AnyPath) -> None:
        super().sync_directory(path)
        self._note_sign()

    def link(self, source: AnyPath, target: AnyPath) -> None:
        super().link(source, target)
        self._note_sign()

    def _with_rests(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks; making one is what takes long."""
        began_s = time.thread_time()
        for chunk in chunks:
            yield chunk
            self._note_sign()
            used_s = time.thread_time() - began_s
            if used_s >= PORTION_S:
                self._rest(RESTS * used_s)
                began_s = time.thread_time()

    def _rest(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while self._may_rest() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, LOOK_S))
