"""What the queues read and write, counted where they ask the file system."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from bigcrawl.drum.files import AnyPath

_SEGMENT = re.compile(r"(queue|failed|arrived|park)-.*")


class CountingFiles(DiskFiles):
    """The real file system; counts bytes of segments by kind: ("read" or "written", name before the first dash)."""

    def __init__(self) -> None:
        self.bytes: Counter[tuple[str, str]] = Counter()

    def read(self, path: AnyPath, offset: int = 0, size: int | None = None) -> bytes:
        data = super().read(path, offset, size)
        self._count("read", path, len(data))
        return data

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        self._count("written", path, len(data))
        super().write_at(path, offset, data, create=create)

    def total(self, verb: str, *kinds: str) -> int:
        """Return the bytes read, or written, of some kinds of queues; of all by default."""
        return sum(count for (v, kind), count in self.bytes.items() if v == verb and (not kinds or kind in kinds))

    def _count(self, verb: str, path: AnyPath, count: int) -> None:
        match = _SEGMENT.fullmatch(Path(path).name)
        if match:
            self.bytes[verb, match[1]] += count
