from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

from bigcrawl.exceptions import CorruptionError
from bigcrawl.page_index import cdxj
from bigcrawl.page_index.cdxj import CdxjIndex
from bigcrawl.page_index.page_records import page_records
from bigcrawl.private_files import FILE_MODE
from bigcrawl.warc.files import WARC_SUFFIX, OsFiles, companion_path, locked_file, written_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord
    from bigcrawl.warc.files import Files

CDXJ: Final = "cdxj"
PARQUET: Final = "parquet"
SUFFIXES: Final = {CDXJ: cdxj.SUFFIX, PARQUET: ".parquet"}


class IndexedFile(NamedTuple):
    path: Path
    pages: int
    problem: str


class PageIndex(Protocol):
    def add(self, page: PageRecord) -> None: ...

    def write(self, file: BinaryIO) -> None: ...

    def close(self) -> None: ...


def index_path(path: Path, kind: str = CDXJ) -> Path:
    return companion_path(path, SUFFIXES[kind])


def unindexed_files(directory: Path, kinds: Sequence[str]) -> list[Path]:
    names = {path.name for path in directory.iterdir()}
    sealed = sorted(name for name in names if name.endswith(WARC_SUFFIX))
    paths = [directory / name for name in sealed]
    return [path for path in paths if any(index_path(path, kind).name not in names for kind in kinds)]


def remove_indexes(path: Path, files: Files | None = None) -> None:
    found = [index for kind in SUFFIXES if (index := index_path(path, kind)).exists()]
    for index in found:
        (files or OsFiles()).remove(index)
    if found:
        (files or OsFiles()).sync_directory(path.parent)


def index_file(
    path: Path, kinds: Sequence[str], mode: int = FILE_MODE, files: Files | None = None
) -> IndexedFile | None:
    """Make the indexes of a sealed file; None if another process does. After an OSError, none has changed."""
    with locked_file(path) as is_ours, ExitStack() as stack:
        if not is_ours:
            return None
        indexes = {kind: stack.enter_context(closing(_new_index(kind, path))) for kind in kinds}
        pages, problem = 0, ""
        try:
            for page in page_records(path):
                for index in indexes.values():
                    index.add(page)
                pages += 1
        except CorruptionError as error:
            problem = str(error)
        for kind, index in indexes.items():
            with written_whole(index_path(path, kind), files or OsFiles(mode)) as file:
                index.write(file)
    return IndexedFile(path, pages, problem)


def is_current(path: Path) -> bool:
    with closing(CdxjIndex(path.parent, path.name)) as index, index_path(path).open("rb") as file:
        with suppress(CorruptionError):  # the index ends there too
            for page in page_records(path):
                index.add(page)
        return all(file.read(len(line)) == line for line in index.lines()) and not file.read(1)


def _new_index(kind: str, path: Path) -> PageIndex:
    if kind == PARQUET:
        from bigcrawl.page_index.parquet import ParquetIndex  # an extra

        return ParquetIndex(path.parent, path.name)
    assert kind == CDXJ
    return CdxjIndex(path.parent, path.name)
