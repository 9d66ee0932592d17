"""Files whose large writes pause between parts, so that merges yield the CPU to fetching. Source: PolyBot §4.2."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bigcrawl.drum.files import AnyPath

PORTION_S = 0.005  # of CPU before a rest; most files take less
RESTS = 5  # a rest takes this many times its part, so the loop loses a twelfth of a core that it shares
LOOK_S = 0.02  # between two checks whether the merge may still rest


class ThrottledFiles(DiskFiles):
    """The file system, for a thread that shares its core with the loop; `may_rest` is called in that thread."""

    def __init__(self, may_rest: Callable[[], bool], record_sign: Callable[[], None] = lambda: None) -> None:
        self._may_rest = may_rest
        self._record_sign = record_sign

    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        super().write_new(path, self._with_rests(chunks))

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        super().write_at(path, offset, data, create=create)
        self._record_sign()

    def sync_file(self, path: AnyPath) -> None:
        super().sync_file(path)
        self._record_sign()

    def sync_directory(self, path: AnyPath) -> None:
        super().sync_directory(path)
        self._record_sign()

    def link(self, source: AnyPath, target: AnyPath) -> None:
        super().link(source, target)
        self._record_sign()

    def _with_rests(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        began_s = time.thread_time()
        for chunk in chunks:
            yield chunk
            self._record_sign()
            used_s = time.thread_time() - began_s
            if used_s >= PORTION_S:
                self._pause(RESTS * used_s)
                began_s = time.thread_time()

    def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while self._may_rest() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, LOOK_S))
