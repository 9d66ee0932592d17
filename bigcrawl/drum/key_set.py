"""A set of keys on disk that can be queried key by key: one bucket, without offers.

    MANIFEST       the runs (`bigcrawl.drum.drum_manifest`): a DRUM of one bucket without offers
    b000/run-<n>   runs (`bigcrawl.drum.bucket`)
    new-<n>        keys added after run n was written: records (`bigcrawl.drum.log_records`) of u64 keys

A crash loses fewer than `LOG_KEYS` keys, a power cut at most the keys added since the last run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.drum.bucket import Kind
from bigcrawl.drum.files import DiskFiles, Files, store_errors
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.drum.log_records import encode_record, read_records
from bigcrawl.drum.repository import Repository
from bigcrawl.drum.run import RunReader

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.exceptions import CorruptionError

# How many new keys become a run: they take 8 MB as a Python set, and 60 ms to write.
RUN_KEYS: Final = 1 << 16

# How many new keys are logged together: about as many as Scrapy keeps in the file buffer of requests.seen.
LOG_KEYS: Final = 256

# How many keys found in runs to remember, so that links that are on every page cost no look-up.
_KNOWN_MAX = 1 << 16

# After so many look-ups, readers are replaced, because a reader grows with each block that it verifies.
_LOOKUPS_A_READER = 20_000


class KeySet:
    """A set of 64-bit keys in 30 MB. A look-up costs 0.3 µs in memory and 6 µs per run; 10^8 keys have 15 runs."""

    def __init__(self, directory: Path, files: Files | None = None, run_keys: int = RUN_KEYS) -> None:
        self._files = DiskFiles() if files is None else files
        self._run_keys = run_keys
        # Every new key goes into a run; there is no memtable.
        self._repository = Repository(directory, self._files, Kind("run", fresh_max=0), 1)
        with store_errors(directory):
            state, self._log = self._repository.open(keep=_is_log)
            self._state = state
            self._bucket = self._repository.bucket(0, state.buckets[0])
            self._new: set[int] = set()
            self._size = 0
            self._read_log()
        self._unwritten: list[int] = []
        self._known: set[int] = set()
        self._readers: list[RunReader] = []
        self._lookups_left = 0

    def __len__(self) -> int:
        return len(self._bucket) + len(self._new)

    @property
    def is_due(self) -> bool:
        return len(self._unwritten) >= LOG_KEYS or len(self._new) >= self._run_keys

    def add(self, key: int) -> bool:
        """Add a key in memory, and return whether it was present."""
        if key in self._new or key in self._known:
            return True
        if self._find_in_runs(key):
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known.add(key)
            return True
        self._new.add(key)
        self._unwritten.append(key)
        return False

    def write(self, *, everything: bool = False) -> None:
        """Log new keys or write a run, if there are enough or `everything` is set. May be repeated after an error."""
        with store_errors(self._repository.directory):
            if len(self._new) >= self._run_keys:
                self._write_run()
            elif self._unwritten and (everything or len(self._unwritten) >= LOG_KEYS):
                data = encode_record(np.array(self._unwritten, dtype=KEY_TYPE).tobytes())
                self._files.write_at(self._log_path(), self._size, data)
                self._size += len(data)
                self._unwritten.clear()

    def close(self) -> None:
        self.write(everything=True)
        with store_errors(self._repository.directory):
            if self._size:
                self._files.sync_file(self._log_path())
                self._files.sync_directory(self._repository.directory)

    def verify(self) -> list[CorruptionError]:
        return self._bucket.verify()

    def _check(self) -> None:
        assert set(self._unwritten) <= self._new, "unwritten keys are new"
        assert not self._new & self._known, "new keys are in no run"
        self._bucket._check()

    def _find_in_runs(self, key: int) -> bool:
        runs = self._bucket.state.runs
        if not runs:
            return False
        with store_errors(self._repository.directory):
            if not self._lookups_left:
                path = self._repository.bucket_path(0)
                self._readers = [RunReader(self._files, path, run) for run in reversed(runs)]
                self._lookups_left = _LOOKUPS_A_READER
            self._lookups_left -= 1
            wanted = np.array([key], dtype=KEY_TYPE)
            return any(reader.find(wanted)[0][0] for reader in self._readers)

    def _write_run(self) -> None:
        result = self._bucket.check_update(np.fromiter(self._new, dtype=KEY_TYPE, count=len(self._new)))
        self._repository.sync_runs([(0, result.written)])
        state = self._state._replace(buckets=(result.state_after,))
        old_log = self._log_path()
        self._log.begin(state)
        self._state = state
        self._bucket.commit(result)
        self._known, self._new, self._unwritten, self._size = self._new, set(), [], 0
        self._readers, self._lookups_left = [], 0
        self._log.sync_name()
        self._repository.remove_runs([(0, result.obsolete)])
        self._files.unlink(old_log)

    def _log_path(self) -> Path:
        runs = self._bucket.state.runs
        return self._repository.directory / f"{_LOG_PREFIX}{runs[-1].name.rpartition('-')[2] if runs else 0}"

    def _read_log(self) -> None:
        path = self._log_path()
        if self._files.exists(path):
            for end, body in read_records(path, self._files.read(path), 0):
                self._new.update(np.frombuffer(body, dtype=KEY_TYPE).tolist())
                self._size = end
            if self._files.size(path) > self._size:
                self._files.truncate(path, self._size)
        for name in self._files.list_directory(self._repository.directory):
            if _is_log(name) and name != path.name:
                self._files.unlink(self._repository.directory / name)


_LOG_PREFIX = "new-"


def _is_log(name: str) -> bool:
    return name.startswith(_LOG_PREFIX)
