"""The file of `scrapy frontier export`: JSON lines, compressed by Zstandard if its name ends in `.zst`.

    {"bigcrawl": "export", "format": 1, "crawl": ..., "record": {...}}        the first line
    {"rules": "blacklist", "fields": {...}}                                   rules set by hand; also `speed`
    {"url": ..., "host": ..., "priority": 0, "partition": 3, "key": ..., "flags": 0, "body": ...}
    {"table": "seen", "partition": 3, "keys": ..., "values": ...}             rows of a partition's table
    {"edges": ..., "partition": 3}, {"forgotten": ..., "partition": 3}        further data of its inbox; also
                                                                              "revisits", "votes" and "contents"
    {"end": {"lines": 123}}                                                   the last line; a cut file has none

The URLs of a partition come before its rows. Bytes are in base64. Keys are u64, little-endian.
"""

from __future__ import annotations

import base64
import importlib
import json
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.private_files import whole_file
from bigcrawl.scheduler.partition.fold.imported_rows import RowsFormatError, TableRows, pack_rows, unpack_rows
from bigcrawl.scheduler.records.body import address_or_none, look_at_body
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
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"

Line = dict[str, Any]


class LineWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.lines = 0

    def write(self, line: Line) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.lines += 1


@contextmanager
def new_export(path: Path) -> Iterator[LineWriter]:
    """Open a new export, as `new_file` does; a last line marks it as complete."""
    with new_file(path) as writer:
        yield writer
        writer.write({"end": {"lines": writer.lines}})


@contextmanager
def new_file(path: Path) -> Iterator[LineWriter]:
    """Open a new file that only its owner may read. It gets its name once it is complete; an error leaves no file."""
    if path.exists():
        raise ConfigError(f"{path} exists already: choose another name, or delete it")
    try:
        with whole_file(path) as plain, _open_compressed_to_write(path, plain) as file:
            yield LineWriter(file)
    except OSError as error:
        remedy = "name a file in a directory that exists and has room"
        raise ConfigError(f"cannot write {path}: {error.strerror or error}; {remedy}") from error


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file except the last, which marks it as complete; raise ConfigError at a damaged one."""
    count, is_whole = 0, False
    try:
        with path.open("rb") as plain, _open_compressed_to_read(plain) as file:
            while not is_whole and (raw := file.readline(LINE_BYTES_MAX + 1)):
                line = _parse_line(path, count, raw)
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
    except Exception as error:  # the installed Zstandard module determines the class of its errors
        if not type(error).__module__.endswith("zstd"):
            raise
        raise ConfigError(f"{path} is damaged: {error}") from error
    if not is_whole:
        raise ConfigError(f"{path} is incomplete, it ends after {count:,} lines: export again")
    if line != {"end": {"lines": count - 1}}:
        raise ConfigError(f"{path} has {count - 1:,} lines, but its last line says another number: export again")


def exported_crawl(path: Path) -> str:
    """Return the name of the crawl that a file was exported from. Raises as `read_lines`."""
    return str(next(read_lines(path)).get("crawl", ""))


def url_line(url: QueuedUrl, partition: int) -> Line:
    """Return the line of a URL. If its request is damaged, the line has no URL, and a flag for unrunnable."""
    address = address_or_none(url.body)[0]
    return {
        "url": address,
        "host": url.host,
        "priority": url.priority,
        "partition": partition,
        "key": f"{url.key:016x}",
        "flags": url.flags if address else url.flags | UNRUNNABLE,
        "body": _base64_text(url.body),
    }


def url_of(line: Line) -> QueuedUrl:
    written = QueuedUrl(int(line["key"], 16), line["host"], line["priority"], line["flags"], data_of(line, "body"))
    try:
        [url] = decode_sound_batch(encode_batch([written]))
    except (BatchFormatError, OverflowError) as error:
        raise ValueError(str(error)) from error
    is_whole = not url.flags & UNRUNNABLE
    if is_whole and host_of(canonicalize(look_at_body(url.body).url, LINE_BYTES_MAX)) != url.host:
        raise ValueError(f"its request has another host than {url.host}")
    return url


def rows_line(rows: TableRows, partition: int) -> Line:
    values = {} if rows.values is None else {"values": _base64_text(rows.values.tobytes())}
    return {"table": rows.table, "partition": partition, "keys": _base64_text(rows.keys.tobytes()), **values}


def packed_rows_of(line: Line) -> bytes:
    packed = pack_rows(line["table"], data_of(line, "keys"), data_of(line, "values") if "values" in line else b"")
    try:
        unpack_rows(packed)
    except RowsFormatError as error:
        raise ValueError(str(error)) from error
    return packed


def data_line(name: str, data: bytes, partition: int) -> Line:
    return {name: _base64_text(data), "partition": partition}


def data_of(line: Line, name: str) -> bytes:
    return base64.b64decode(line[name], validate=True)


def _base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _parse_line(path: Path, count: int, raw: bytes) -> Line:
    try:
        line = read_json(raw) if len(raw) <= LINE_BYTES_MAX else None
    except ValueError:
        line = None
    if not isinstance(line, dict):
        raise ConfigError(f"{path}: line {count + 1} is not a JSON object: the file is damaged, or not an export")
    return line


def _check_header(path: Path, line: Line) -> None:
    if line.get("bigcrawl") != "export" or not isinstance(line.get("record"), dict):
        raise ConfigError(f"{path} was not written by `scrapy frontier export`; `scrapy frontier add` takes URLs")
    if line.get("format") != FORMAT:
        raise ConfigError(
            f"{path} has format {line.get('format')}, and this version reads {FORMAT}: import it with the version that "
            f"wrote it"
        )


@contextmanager
def _open_compressed_to_write(path: Path, plain: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.suffix != ".zst":
        yield plain
        return
    with _import_zstd().open(plain, "wb") as file:
        yield file


@contextmanager
def _open_compressed_to_read(plain: IO[bytes]) -> Iterator[IO[bytes]]:
    magic = plain.read(len(_ZSTD_MAGIC))
    plain.seek(0)
    if magic != _ZSTD_MAGIC:
        yield plain
        return
    with _import_zstd().open(plain, "rb") as file:
        yield file


def _import_zstd() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ConfigError("files that end in .zst need Zstandard: pip install 'bigcrawl[zstd]', or choose another name")
