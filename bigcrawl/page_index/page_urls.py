from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.page_index.cdxj import read_line
from bigcrawl.page_index.index_files import CDXJ, PARQUET, SUFFIXES
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

WANTED_MAX: Final = 2_000_000
"""Keys whose URLs are looked for, some 200 MB; the others keep their keys alone."""


def urls_of(directory: Path | None, wanted: Iterable[int], key_of: Callable[[str], int]) -> dict[int, str]:
    """Return the URLs of those keys that an index has; of a CDXJ, whose lines have no key, as those of GETs."""
    left = {key for key, _ in zip(wanted, range(WANTED_MAX), strict=False)}
    found: dict[int, str] = {}
    if directory is None or not directory.is_dir():
        return found
    for key, url in _indexed(directory, key_of):
        if key in left:
            found[key] = url
            left.remove(key)
            if not left:
                break
    return found


def _indexed(directory: Path, key_of: Callable[[str], int]) -> Iterator[tuple[int, str]]:
    lists = sorted(directory.glob(f"*{SUFFIXES[CDXJ]}"))
    for path in lists:
        with path.open("rb") as file:
            for line in file:
                with suppress(ValueError, LookupError):  # a damaged line, or what is no URL
                    url = read_line(line).url
                    yield key_of(canonicalize(url)), url
    tables = {path.name.removesuffix(SUFFIXES[PARQUET]): path for path in directory.glob(f"*{SUFFIXES[PARQUET]}")}
    for name in sorted(tables.keys() - {path.name.removesuffix(SUFFIXES[CDXJ]) for path in lists}):
        yield from _in_table(tables[name])


def _in_table(path: Path) -> Iterator[tuple[int, str]]:
    try:
        from pyarrow import parquet
    except ImportError:
        return
    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches(columns=["key", "url"]):
            keys, urls = (batch.column(name).to_pylist() for name in ("key", "url"))
            yield from ((int(key, 16), url) for key, url in zip(keys, urls, strict=True) if key)
