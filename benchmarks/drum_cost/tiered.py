"""bigcrawl's `Bucket` where the paper's DRUM has a sorted file of hashes: what tiered runs and short keys change alone.

Manifests count too: each merge appends what a manifest's log would, the fresh keys it added and the runs it wrote.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, Kind

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.urls import Mask
    from bigcrawl.drum.bucket import CheckResult
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray

# What a log says of a run: number, keys, first, last, length; and at the head of a record length and checksum.
_RUN_RECORD: Final = struct.Struct("<QQQQQ")
_RECORD_HEAD: Final = struct.Struct("<II")


class TieredRuns:
    """A `Bucket` in a directory of its own, with a log for a manifest; takes the place of a `HashFile`."""

    def __init__(self, files: Files, directory: Path, fresh_max: int) -> None:
        files.make_directory(directory)
        self._files = files
        self._directory = directory
        self._bucket = Bucket(directory, Kind("run", fresh_max=fresh_max), EMPTY_BUCKET, files)
        self._log_bytes = 0

    def __len__(self) -> int:
        return len(self._bucket)

    def check_update(self, keys: KeyArray) -> Mask:
        """Return which of the strictly ascending keys are new, and add them."""
        result = self._bucket.check_update(keys)
        self._append_to_log(result)
        self._bucket.commit(result)
        for run in result.obsolete:
            self._files.unlink(self._directory / run.name)
        return result.new

    def _append_to_log(self, result: CheckResult) -> None:
        # A new run holds the keys that were added; else they are fresh, and only the log has them.
        fresh_bytes = 0 if result.written else result.added.nbytes
        record = bytes(_RECORD_HEAD.size + len(result.written) * _RUN_RECORD.size + fresh_bytes)
        self._files.write_at(self._directory / "manifest", self._log_bytes, record)
        self._log_bytes += len(record)
