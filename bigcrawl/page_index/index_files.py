"""Makes the indexes of sealed WARC files, each from one pass over its file.

Guarantees:
    An index with its name is complete, and describes the file of its name. Whoever rewrites a file removes it first.
    Nobody makes indexes of a file that somebody else is making them of, on this machine or over NFS.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

from bigcrawl.exceptions import CorruptionError
from bigcrawl.page_index import cdxj
from bigcrawl.page_index.cdxj import CdxjIndex
from bigcrawl.page_index.page_records import page_records
from bigcrawl.private_files import FILE_MODE
from bigcrawl.warc.files import WARC_SUFFIX, OsFiles, beside, locked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

NEW_SUFFIX: Final = ".new"
CDXJ: Final = "cdxj"
PARQUET: Final = "parquet"
SUFFIXES: Final = {CDXJ: cdxj.SUFFIX, PARQUET: ".parquet"}
"""The kinds of indexes, and how their names end."""


class Indexed(NamedTuple):
    """What became of one file.

    Attributes:
        path: the WARC file.
        pages: captures in its indexes.
        problem: what is damaged, if the file is; its indexes have what comes before. Empty if it is sound.
    """

    path: Path
    pages: int
    problem: str


class Index(Protocol):
    """An index that is being made."""

    def add(self, page: PageRecord) -> None:
        """Take a capture. Raises OSError if the disk refuses."""

    def write(self, file: BinaryIO) -> None:
        """Write all of it. Raises OSError."""

    def close(self) -> None:
        """Give up what it holds."""


def index_path(path: Path, kind: str = CDXJ) -> Path:
    """Return the name of a WARC file's index."""
    return beside(path, SUFFIXES[kind])


def unindexed(directory: Path, kinds: Sequence[str]) -> list[Path]:
    """Return the sealed files of a directory that lack an index of one of the kinds, by name."""
    names = {path.name for path in directory.iterdir()}
    sealed = sorted(name for name in names if name.endswith(WARC_SUFFIX))
    paths = [directory / name for name in sealed]
    return [path for path in paths if any(index_path(path, kind).name not in names for kind in kinds)]


def index_file(path: Path, kinds: Sequence[str], mode: int = FILE_MODE) -> Indexed | None:
    """Make indexes of a sealed file, in the place of those that are there. None if somebody else is making them.

    Args:
        path: of the file.
        kinds: keys of `SUFFIXES`.
        mode: permissions of the indexes.

    Raises:
        OSError: the file cannot be read, or the disk is full; no index has changed.

    Cost: 155 us and, for CDXJ, 270 bytes a page of 21 KB; 20 MB of memory, whatever the size of the file. For Parquet,
    15 us and 60 bytes more, and 200 MB of memory, most of which is pyarrow.
    """
    with locked(path) as is_ours, ExitStack() as stack:
        if not is_ours:
            return None
        indexes = {kind: stack.enter_context(closing(_begun(kind, path))) for kind in kinds}
        pages, problem = 0, ""
        try:
            for page in page_records(path):
                for index in indexes.values():
                    index.add(page)
                pages += 1
        except CorruptionError as error:
            problem = str(error)
        for kind, index in indexes.items():
            _put_in_place(index, index_path(path, kind), mode)
    return Indexed(path, pages, problem)


def _begun(kind: str, path: Path) -> Index:
    if kind == PARQUET:
        from bigcrawl.page_index.parquet import ParquetIndex  # an extra, and slow to import

        return ParquetIndex(path.parent, path.name)
    assert kind == CDXJ
    return CdxjIndex(path.parent, path.name)


def _put_in_place(index: Index, target: Path, mode: int) -> None:
    """Write an index under another name, force it to the medium, then give it its own."""
    new = target.with_name(target.name + NEW_SUFFIX)
    new.unlink(missing_ok=True)  # of a maker that died, perhaps with another mode
    files = OsFiles(mode)
    fd = files.create(new)
    try:
        with os.fdopen(fd, "wb") as file:
            index.write(file)
            file.flush()
            files.sync(fd)
        files.rename(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
