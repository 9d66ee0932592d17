"""Packs WARC files into a WACZ file, in bounded memory.

Each WARC file is copied, then read for its index and its pages. The index of all files is sorted on disk, and written
in compressed blocks, with the first key of each in a second file: a reader looks up a URL with two requests.

Source: WACZ 1.1.1; the ZipNum sharded CDX of the Internet Archive, as cdxj-indexer writes it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from bigcrawl import __version__
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.links import page_title
from bigcrawl.media_types import HTML
from bigcrawl.middlewares.compression import unpacked_by
from bigcrawl.page_index.cdxj import cdxj_line
from bigcrawl.page_index.page_records import page_records
from bigcrawl.page_index.sorted_lines import SortedLines
from bigcrawl.private_files import whole_file
from bigcrawl.warc.extraction import extract_payload
from bigcrawl.warc.files import OsFiles
from bigcrawl.warc.heads import head_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

BLOCK_LINES: Final = 1_024
_INDEX: Final = "index.cdx.gz"


class Packed(NamedTuple):
    """The result of packing: numbers of captures and pages, bytes of the file, and any damage found."""

    captures: int
    pages: int
    size: int
    problems: list[str]


def pack(paths: Sequence[Path], target: Path, title: str, mode: int) -> Packed:
    """Write a WACZ file of WARC files, which replaces `target` once it is whole.

    Raises:
        TransientStoreError: another process has rewritten one of the files meanwhile.
        OSError: a file cannot be read, or the new one not written.
    """
    with ExitStack() as stack:
        file = stack.enter_context(whole_file(target, mode))
        lines = stack.enter_context(closing(SortedLines(target.parent)))
        pages = stack.enter_context(tempfile.TemporaryFile(dir=target.parent))
        archive = stack.enter_context(closing(WaczArchive(file)))
        captures, problems, listed = 0, [], 0
        for path in paths:
            with path.open("rb") as warc:
                with archive.part(f"archive/{path.name}") as part:
                    part.copy(warc)
                try:
                    for capture in page_records(path):
                        captures += 1
                        lines.add(cdxj_line(capture, path.name))
                        if is_page(capture):
                            listed += 1
                            pages.write(page_line(path, capture))
                except CorruptionError as error:
                    problems.append(str(error))
                if not OsFiles().is_at(warc.fileno(), path):
                    raise TransientStoreError(f"{path} was rewritten meanwhile, as `warc compact` does: call again")
        _write_index(archive, lines, target.parent)
        with archive.part("pages/pages.jsonl") as part:
            part.write(HEADER)
            part.copy(_from_start(pages))
        archive.describe(title)
    return Packed(captures, listed, target.stat().st_size, problems)


def _write_index(archive: WaczArchive, lines: Iterable[bytes], directory: Path) -> None:
    with tempfile.TemporaryFile(dir=directory) as heads:
        with archive.part(f"indexes/{_INDEX}") as part:
            heads.write(b"!meta 0 %b\n" % json.dumps({"format": "cdxj-gzip-1.0", "filename": _INDEX}).encode())
            heads.writelines(_blocks(lines, part))
        with archive.part("indexes/index.idx") as part:
            part.copy(_from_start(heads))


def _blocks(lines: Iterable[bytes], part: Part) -> Iterator[bytes]:
    """Write blocks of distinct lines, and yield a line about each block."""
    different = (line for line, _ in groupby(lines))
    while block := list(islice(different, BLOCK_LINES)):
        packed = gzip.compress(b"".join(block), mtime=0)
        digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
        about = {"offset": part.size, "length": len(packed), "digest": digest, "filename": _INDEX}
        part.write(packed)
        yield b"%b %b\n" % (b" ".join(block[0].split(b" ", 2)[:2]), json.dumps(about).encode())


def _from_start(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    return file


WACZ_VERSION: Final = "1.1.1"
_PIECE_BYTES: Final = 1 << 20
_replace_others = re.compile(r"[^a-z0-9.]").sub  # in names of the Data Package standard


class Part:
    """A part that is being written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._sha256.update(data)
        self.size += len(data)

    def copy(self, file: BinaryIO) -> None:
        while piece := file.read(_PIECE_BYTES):
            self.write(piece)

    @property
    def hash(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"


class WaczArchive:
    """A WACZ file: write its parts one after another, call `describe`, then `close`.

    Source: WACZ 1.1.1, 4 and 5 (datapackage.json, datapackage-digest.json); all parts are stored as they are.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._zip = ZipFile(file, "w", ZIP_STORED, allowZip64=True)
        self._now = time.gmtime()
        self._resources: list[dict[str, Any]] = []

    @contextmanager
    def part(self, path: str) -> Iterator[Part]:
        info = ZipInfo(path, self._now[:6])
        with self._zip.open(info, "w", force_zip64=True) as file:
            part = Part(file)  # type: ignore[arg-type]
            yield part
        name = f"{len(self._resources)}-{_replace_others('-', path.rpartition('/')[2].lower())}"
        self._resources.append({"name": name, "path": path, "hash": part.hash, "bytes": part.size})

    def describe(self, title: str) -> None:
        """Write the description of the parts, and its hash."""
        package = {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "software": f"bigcrawl/{__version__}",
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", self._now),
            "title": title,
            "resources": list(self._resources),
        }
        with self.part("datapackage.json") as part:
            part.write(json.dumps(package, indent=2).encode())
        digest = {"path": "datapackage.json", "hash": part.hash}
        with self.part("datapackage-digest.json") as part:
            part.write(json.dumps(digest, indent=2).encode())

    def close(self) -> None:
        self._zip.close()


BODY_BYTES_MAX: Final = 1 << 20
"""How much of a page is read for its title, packed and unpacked."""
HEADER: Final = b'{"format": "json-pages-1.0", "id": "pages", "title": "Pages"}\n'
_OK: Final = 200
_EMBED: Final = b"E"  # a step of Heritrix's path from a seed


class _Page(NamedTuple):
    url: str
    body: bytes
    headers: dict[str, bytes]


class _Begin(BytesIO):
    """Keeps the beginning of what is written."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        super().write(data[: BODY_BYTES_MAX - self.tell()])
        return len(data)


def is_page(capture: PageRecord) -> bool:
    """Return whether a capture is an HTML page with status 200: not robots.txt, nor part of another page."""
    if capture.status != _OK or capture.media_type not in HTML or capture.kind not in (b"response", b"revisit"):
        return False
    return _EMBED not in capture.notes.get(b"hopsfromseed", b"") and not _url_of(capture).endswith("/robots.txt")


def page_line(path: Path, capture: PageRecord) -> bytes:
    """Return a page's line in pages.jsonl; a copy that is stored by reference has no title."""
    record_id, date = (capture.fields.get(name, b"").decode("latin-1") for name in (b"warc-record-id", b"warc-date"))
    line = {"id": record_id.strip("<>").removeprefix("urn:uuid:"), "url": _url_of(capture), "ts": date}
    title = _title_of(path, capture) if capture.kind == b"response" else ""
    return json.dumps(line | ({"title": title} if title else {})).encode() + b"\n"


def _url_of(capture: PageRecord) -> str:
    return capture.fields[b"warc-target-uri"].strip(b"<>").decode("utf-8", "replace")


def _title_of(path: Path, capture: PageRecord) -> str:
    begin = _Begin()
    try:
        head = head_fields(extract_payload(path, capture.offset, begin).http_head)
        body = begin.getvalue()
        for encoding in reversed(head.get(b"content-encoding", b"").lower().replace(b",", b" ").split()[:4]):
            body, _ = unpacked_by(encoding, body, BODY_BYTES_MAX)
    except CorruptionError:
        return ""
    except Exception:  # noqa: BLE001 - codecs raise any exception, and such a page is longer, or shows no title either
        return ""
    return page_title(_Page(_url_of(capture), body, {"Content-Type": head.get(b"content-type", b"")}))
