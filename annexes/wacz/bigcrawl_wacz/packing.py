"""Packs WARC files into a WACZ file, in bounded memory.

Each WARC file is copied, then read for its index and its pages. The index of all files is sorted on disk, and written
in compressed blocks, with the first key of each in a second file: a reader looks up a URL with two requests.

Source: WACZ 1.1.1; the ZipNum sharded CDX of the Internet Archive, as cdxj-indexer writes it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from contextlib import ExitStack, closing
from itertools import groupby, islice
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.page_index.cdxj import cdxj_line
from bigcrawl.page_index.page_records import page_records
from bigcrawl.page_index.sorted_lines import SortedLines
from bigcrawl.private_files import whole_file
from bigcrawl.warc.files import OsFiles
from bigcrawl_wacz.archive import WaczArchive
from bigcrawl_wacz.pages import HEADER, is_page, page_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl_wacz.archive import Part

BLOCK_LINES: Final = 1_024
_INDEX: Final = "index.cdx.gz"


class Packed(NamedTuple):
    """What was packed: numbers of captures and pages, bytes of the file, and what was found damaged."""

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
    """Write blocks of different lines, and yield a line about each."""
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
