"""The file of `scrapy frontier export`: JSON lines, compressed by Zstandard if its name ends in `.zst`.

    {"bigcrawl": "export", "format": 1, "crawl": ..., "record": {...}}        the first line
    {"rules": "blacklist", "fields": {...}}                                   what was set by hand; also `speed`
    {"url": ..., "host": ..., "priority": 0, "partition": 3, "key": ..., "flags": 0, "body": ...}
    {"table": "seen", "partition": 3, "keys": ..., "values": ...}             rows of a partition's table
    {"edges": ..., "partition": 3}, {"forgotten": ..., "partition": 3}        what its inbox holds besides URLs,
                                                                              also "revisits", "votes" and "contents"
    {"end": {"lines": 123}}                                                   the last line; a cut file has none

The URLs of a partition come before its rows. Bytes are in base64. Keys are u64, little-endian.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.private_files import name_part, opener
from bigcrawl.scheduler.partition.fold.imported_rows import RowsFormatError, TableRows, pack_rows, unpack_rows
from bigcrawl.scheduler.records.body import address_or_none, look_at_body
from bigcrawl.scheduler.records.inbox_entry import CONTENTS, EDGES, FORGOTTEN, REVISITS, ROWS, VOTES
from bigcrawl.scheduler.records.queued_url import (
    UNRUNNABLE,
    BatchFormatError,
    QueuedUrl,
    decode_sound_batch,
    encode_batch,
)
from bigcrawl.url.canonical import canonicalize, host_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT: Final = 1
LINE_BYTES_MAX: Final = 8 << 20  # a request of 4 MB, in base64
WIRE: Final = {
    "edges": EDGES,
    "forgotten": FORGOTTEN,
    "rows": ROWS,
    "revisits": REVISITS,
    "votes": VOTES,
    "contents": CONTENTS,
}
"""What an inbox holds besides URLs and ends: its name in a line, and in an inbox entry."""

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"

Line = dict[str, Any]


class LineWriter:
    """Writes lines, and at last their number."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.lines = 0

    def __repr__(self) -> str:
        return f"<LineWriter lines={self.lines}>"

    def write(self, line: Line) -> None:
        """Write one line."""
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.lines += 1


@contextmanager
def written(path: Path) -> Iterator[LineWriter]:
    """Open a new export, whose last line says that it is whole. See `new_file`."""
    with new_file(path) as writer:
        yield writer
        writer.write({"end": {"lines": writer.lines}})


@contextmanager
def new_file(path: Path) -> Iterator[LineWriter]:
    """Open a new file for its owner alone. It gets its name when it is whole; after an error nothing is left.

    Raises:
        ConfigError: there is a file of this name, or it cannot be written.
    """
    if path.exists():
        raise ConfigError(f"{path} is there: choose another name, or delete it")
    part = path.with_name(f"{path.name}.{name_part()}.part")
    try:
        with open(part, "wb", opener=opener) as plain:
            with _compressed(path, plain) as file:
                yield LineWriter(file)
            plain.flush()
            os.fsync(plain.fileno())
        part.rename(path)
    except OSError as error:
        remedy = "name a file in a directory that exists and has room"
        raise ConfigError(f"cannot write {path}: {error.strerror or error}; {remedy}") from error
    finally:
        part.unlink(missing_ok=True)


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file but the last, which says that the file is whole.

    Raises:
        ConfigError: it cannot be read, is no export of this version, is damaged, or ends too soon. Lines before that
            were yielded.
    """
    count, is_whole = 0, False
    try:
        with path.open("rb") as plain, _decompressed(plain) as file:
            while not is_whole and (raw := file.readline(LINE_BYTES_MAX + 1)):
                line = _parsed(path, count, raw)
                if not count:
                    _check_header(path, line)
                is_whole = bool(count) and "end" in line
                if not is_whole:
                    yield line
                count += 1
    except ConfigError:
        raise
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot read {path}: {why}; name a file that `scrapy frontier export` has written"
        ) from error
    except Exception as error:  # Zstandard's own errors are of the module that is there
        if not type(error).__module__.endswith("zstd"):
            raise
        raise ConfigError(f"{path} is damaged: {error}") from error
    if not is_whole:
        raise ConfigError(f"{path} ends too soon, after {count:,} lines: it was cut off; export again")
    if line != {"end": {"lines": count - 1}}:
        raise ConfigError(f"{path} has {count - 1:,} lines before its end, and was written with others; export again")


def exported_crawl(path: Path) -> str:
    """Return the name of the crawl in a file.

    Raises:
        ConfigError: as `read_lines`.
    """
    return str(next(read_lines(path)).get("crawl", ""))


def url_line(url: QueuedUrl, partition: int) -> Line:
    """Return the line of a URL. If its request is damaged, it has no address, and is flagged as unrunnable."""
    address = address_or_none(url.body)[0]
    return {
        "url": address,
        "host": url.host,
        "priority": url.priority,
        "partition": partition,
        "key": f"{url.key:016x}",
        "flags": url.flags if address else url.flags | UNRUNNABLE,
        "body": _text(url.body),
    }


def url_of(line: Line) -> QueuedUrl:
    """Return the URL of a line.

    Raises:
        ValueError, TypeError, KeyError: it is damaged.
    """
    written = QueuedUrl(int(line["key"], 16), line["host"], line["priority"], line["flags"], data_of(line, "body"))
    try:
        [url] = decode_sound_batch(encode_batch([written]))
    except (BatchFormatError, OverflowError) as error:
        raise ValueError(str(error)) from error
    is_whole = not url.flags & UNRUNNABLE
    if is_whole and host_of(canonicalize(look_at_body(url.body).url, LINE_BYTES_MAX)) != url.host:
        raise ValueError(f"its request is to another host than {url.host}")
    return url


def rows_line(rows: TableRows, partition: int) -> Line:
    """Return the line of some rows of a table."""
    values = {} if rows.values is None else {"values": _text(rows.values.tobytes())}
    return {"table": rows.table, "partition": partition, "keys": _text(rows.keys.tobytes()), **values}


def packed_rows_of(line: Line) -> bytes:
    """Return the rows of a line as bytes for the inbox.

    Raises:
        ValueError, TypeError, KeyError: they are damaged.
    """
    packed = pack_rows(line["table"], data_of(line, "keys"), data_of(line, "values") if "values" in line else b"")
    try:
        unpack_rows(packed)
    except RowsFormatError as error:
        raise ValueError(str(error)) from error
    return packed


def data_line(name: str, data: bytes, partition: int) -> Line:
    """Return a line with bytes for a partition."""
    return {name: _text(data), "partition": partition}


def data_of(line: Line, name: str) -> bytes:
    """Return the bytes in a field of a line.

    Raises:
        ValueError, TypeError, KeyError: they are damaged.
    """
    return base64.b64decode(line[name], validate=True)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _parsed(path: Path, count: int, raw: bytes) -> Line:
    try:
        line = read_json(raw) if len(raw) <= LINE_BYTES_MAX else None
    except ValueError:
        line = None
    if not isinstance(line, dict):
        raise ConfigError(f"{path}: line {count + 1} is not a JSON object: the file is damaged, or not an export")
    return line


def _check_header(path: Path, line: Line) -> None:
    if line.get("bigcrawl") != "export" or not isinstance(line.get("record"), dict):
        raise ConfigError(f"{path} is no file of `scrapy frontier export`; `scrapy frontier add` takes URLs")
    if line.get("format") != FORMAT:
        raise ConfigError(
            f"{path} has format {line.get('format')}, and this version reads {FORMAT}: import it with the version that "
            f"wrote it"
        )


@contextmanager
def _compressed(path: Path, plain: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.suffix != ".zst":
        yield plain
        return
    with _zstd().open(plain, "wb") as file:
        yield file


@contextmanager
def _decompressed(plain: IO[bytes]) -> Iterator[IO[bytes]]:
    magic = plain.read(len(_ZSTD_MAGIC))
    plain.seek(0)
    if magic != _ZSTD_MAGIC:
        yield plain
        return
    with _zstd().open(plain, "rb") as file:
        yield file


def _zstd() -> Any:
    """The module for Zstandard: Python's own from 3.14 on.

    Raises:
        ConfigError: no such module is installed.
    """
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ConfigError("files that end in .zst need Zstandard: pip install 'bigcrawl[zstd]', or choose another name")
