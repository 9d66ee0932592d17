"""Where the text of new URLs goes: the queue Q of the paper, which every method appends p*b bytes a URL to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.drum_cost.urls import digest_of

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.urls import Texts
    from bigcrawl.drum.files import Files


class UniqueQueue:
    """A file of the URLs found new, written only, which also knows how many and which they are.

    Attributes:
        count: URLs appended.
        digest: sum of `digest_of` over them, 64 bits.
    """

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self._bytes = 0
        self.count = 0
        self.digest = 0

    def __repr__(self) -> str:
        return f"<UniqueQueue {self.count}>"

    def append(self, texts: Texts) -> None:
        """Append URLs, uint8 of shape (n, bytes a URL); none is no write."""
        if not len(texts):
            return
        self._files.write_at(self._path, self._bytes, texts.tobytes())
        self._bytes += texts.nbytes
        self.count += len(texts)
        self.digest = (self.digest + digest_of(texts)) % 2**64
