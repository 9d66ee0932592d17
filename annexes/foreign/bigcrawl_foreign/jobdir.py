"""`--from jobdir DIR`: the queues and `requests.seen` of a stopped Scrapy crawl.

Queues are files of queuelib below `requests.queue`, one for each priority, perhaps in a folder for each host. The
format is recognised by the content:
    file       LIFO: u32 number of entries, then each entry and its u32 size; read from the end
    folder     FIFO: `q00000` and so on, u32 size and entry each; `info.json` has the position of the first
    SQLite     a table `queue`, by its ids

`requests.seen` has a u16 size and a fingerprint each, since Scrapy 2.19; before, a line of 40 hexadecimal digits each.
All numbers are big-endian. Nothing is changed.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.commands.moving.importing import ENTRY_BYTES_MAX
from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.url.scrapy_fingerprint import SCRAPY
from bigcrawl_foreign.fingerprint_set import PRINTS_MAX, FetchedPrints
from bigcrawl_foreign.pickled_requests import StoredQueue

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import numpy.typing as npt

    from bigcrawl.commands.moving.importing import RequestSender

_SIZE: Final = struct.Struct(">I")
_SQLITE: Final = b"SQLite format 3\0"
_BINARY_SEEN: Final = b"\x00\x14"  # twenty bytes follow
_SEEN_BYTES_AT_ONCE: Final = 22 * 41 * 1_000
_DAMAGED: Final = -1
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


class JobDir:
    pauses = True  # fetched pages must be known before links lead to them

    def __init__(self, path: str, opts: argparse.Namespace) -> None:
        self._path = Path(path)
        self._queue, self._seen = self._path / "requests.queue", self._path / "requests.seen"
        if not self._queue.is_dir() and not self._seen.is_file():
            raise ConfigError(f"{path} is not a JOBDIR: it has neither requests.queue nor requests.seen")

    def __repr__(self) -> str:
        return f"<JobDir {self._path}>"

    async def read_into(self, sender: RequestSender) -> list[str]:
        try:
            fetched = FetchedPrints(_read_seen(self._seen))
            with StoredQueue("jobdir", sender, fetched) as queue:
                for path in _queues_below(self._queue):
                    for number, entry in enumerate(_entries_of(path), 1):
                        where = f"{path.relative_to(self._path)}, request {number}"
                        if entry == _DAMAGED:
                            sender.record_skipped(where, "the file is damaged here; the rest of it is left out")
                        else:
                            await queue.send_entry(where, entry)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"cannot read {self._path}: {error}") from error
        await sender.flush()
        sender.notes.extend(await fetched.store_prints(sender, str(self._seen), SCRAPY, f"move {self._seen.name} away"))
        return []


def _read_seen(path: Path) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of all complete fingerprints, as numbers, ascending."""
    if not path.is_file():
        return np.empty(0, np.uint64)
    size, parts = path.stat().st_size, [np.empty(0, np.uint64)]
    if size // 22 > PRINTS_MAX:
        raise ConfigError(f"{path} has {size:,} bytes: at most {PRINTS_MAX:,} fingerprints can be imported")
    try:
        with path.open("rb") as file:
            while data := file.read(_SEEN_BYTES_AT_ONCE):
                parts.append(np.frombuffer(_first_bytes(data), dtype=">u8").astype(np.uint64))
    except ValueError:
        raise ConfigError(
            f"{path} has no SHA-1 fingerprints of Scrapy: move the file away to import without fingerprints"
        ) from None
    return np.unique(np.concatenate(parts))


def _first_bytes(data: bytes) -> bytes:
    """Return the first eight bytes of each complete fingerprint; raise ValueError for other data."""
    is_binary = data.startswith(_BINARY_SEEN)
    row = 22 if is_binary else 41
    rows = np.frombuffer(data[: len(data) // row * row], np.uint8).reshape(-1, row)
    if not (rows[:, :2] == [0, 20] if is_binary else rows[:, 40:] == ord("\n")).all():
        raise ValueError("it has rows that are not fingerprints")
    return rows[:, 2:10].tobytes() if is_binary else bytes.fromhex(rows[:, :16].tobytes().decode("ascii"))


def _queues_below(top: Path) -> Iterator[Path]:
    """Yield the queues of a folder by priority, the most urgent first."""
    for path in sorted(top.iterdir() if top.is_dir() else (), key=_priority_key):
        if path.is_symlink():
            continue
        if path.is_dir() and not any(path.glob("q[0-9]*")):
            yield from _queues_below(path)
        elif path.name != "active.json" and (path.is_dir() or path.is_file()):  # neither pipe nor device
            yield path


def _priority_key(path: Path) -> tuple[int, str]:
    name = path.name.removesuffix("s")  # start requests have separate queues
    return (int(name), path.name) if _NUMBER.fullmatch(name) else (0, path.name)


def _entries_of(path: Path) -> Iterator[bytes | int]:
    """Yield the entries of a queue in order; instead of a large one its size, and -1 for a damaged rest."""
    if path.is_dir():
        yield from _read_fifo(path)
        return
    with path.open("rb") as file:
        is_sqlite = file.read(len(_SQLITE)) == _SQLITE
    yield from _read_sqlite(path) if is_sqlite else _read_lifo(path)


def _read_lifo(path: Path) -> Iterator[bytes | int]:
    with path.open("rb") as file:
        at = file.seek(0, 2)
        while at > _SIZE.size:
            file.seek(at - _SIZE.size)
            [size] = _SIZE.unpack(file.read(_SIZE.size))
            at -= _SIZE.size + size
            if at < _SIZE.size:
                yield _DAMAGED
                return
            file.seek(at)
            yield file.read(size) if size <= ENTRY_BYTES_MAX else size


def _read_fifo(path: Path) -> Iterator[bytes | int]:
    number, offset = _first_waiting(path / "info.json")
    for chunk in sorted(path.glob("q[0-9]*")):
        if not _NUMBER.fullmatch(chunk.name[1:]) or not chunk.is_file() or int(chunk.name[1:]) < number:
            continue
        with chunk.open("rb") as file:
            file.seek(offset if int(chunk.name[1:]) == number else 0)
            while head := file.read(_SIZE.size):
                size = _SIZE.unpack(head)[0] if len(head) == _SIZE.size else 0
                if size > ENTRY_BYTES_MAX:
                    file.seek(size, 1)
                    yield size
                    continue
                data = file.read(size)
                if not size or len(data) < size:
                    yield _DAMAGED
                    return
                yield data


def _first_waiting(info: Path) -> tuple[int, int]:
    """Return chunk and offset of the first waiting entry; of the very first entry if the crawl was not closed."""
    try:
        number, _, offset = read_json(info.read_bytes()[:4_096])["tail"]
        return int(number), max(0, int(offset))
    except (FileNotFoundError, ValueError, TypeError, LookupError, ArithmeticError):
        return 0, 0


def _read_sqlite(path: Path) -> Iterator[bytes | int]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        made = database.execute("SELECT type, sql FROM sqlite_master WHERE name = 'queue'").fetchone()
        if made is None or made[0] != "table" or "GENERATED" in (sql := str(made[1]).upper()) or " AS " in sql:
            yield _DAMAGED  # a view or a computed column may be of any length
            return
        rows = "SELECT CASE WHEN length(item) <= ? THEN item END, length(item) FROM queue ORDER BY id"
        for item, size in database.execute(rows, (ENTRY_BYTES_MAX,)):
            yield bytes(item) if isinstance(item, bytes) else int(size or 0)
