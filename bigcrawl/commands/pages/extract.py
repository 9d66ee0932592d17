"""`scrapy frontier warc extract URL`: get one stored page out."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, Final

from bigcrawl.commands.pages.files import directory_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, CorruptionError, TransientStoreError
from bigcrawl.page_index.cdxj import REVISIT, decoded
from bigcrawl.page_index.index_files import CDXJ, unindexed
from bigcrawl.page_index.lookup import captures
from bigcrawl.page_index.search_key import search_key
from bigcrawl.private_files import name_part
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import text_of
from bigcrawl.warc.extraction import Extracted, extract

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config
    from bigcrawl.page_index.cdxj import Capture

_NEW_SUFFIX: Final = ".new"
_STAMP_DIGITS: Final = 14


def extract_page(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show where a page is stored and its HTTP head; with `--to`, write its body, as the server sent it.

    An existing file is replaced only after the whole body was written beside it. Any failure leaves it unchanged.

    Raises:
        ConfigError: the URL is invalid, or no index has it.
        CorruptionError: the record is damaged, or its index belongs to another file.
        TransientStoreError: the file cannot be read, or the body cannot be written.
    """
    directory = directory_of(config)
    try:
        url = canonicalize(words[0])
    except UrlError as error:
        raise ConfigError(str(error)) from error
    found = _chosen(directory, url, opts.at, config.crawl.warc_store_url)
    is_copy = found.mime == REVISIT
    page = source = _extracted(directory, found, None if is_copy else opts.to)
    if is_copy:  # a copy of a copy
        found = _original(directory, page)
        source = _extracted(directory, found, opts.to)
    head = decoded(page.http_head or source.http_head)
    date = decoded(page.fields.get(b"warc-date", b""))
    data = {
        "url": found.url,
        "date": date,
        "file": str(_path_of(directory, found)),
        "offset": found.offset,
        "size": found.size,
        "head": head.splitlines(),
        "body_bytes": source.body_bytes,
        "written_to": str(opts.to) if opts.to else None,
    }
    lines = [
        f"{found.url}, fetched {date}",
        f"in {_path_of(directory, found)} at byte {found.offset}, {found.size} bytes",
        "",
        *head.splitlines(),
        "",
        f"a body of {source.body_bytes:,} bytes" + (f", written to {opts.to}" if opts.to else ": --to FILE writes it"),
    ]
    return Result(data, "\n".join(lines))


def _chosen(directory: Path, url: str, until: str, store_url: str | None) -> Capture:
    """Return the last capture until a time: of this very URL if there is one, else of one with the same search key."""
    if until and not (until.isdigit() and 4 <= len(until) <= 14):
        raise ConfigError(f"--at is {until!r}; it takes the digits of a time, as 2026, 20261125 or 20261125220512")
    damaged: list[Path] = []
    found = [capture for capture in captures(directory, url, damaged) if capture.stamp[: len(until)] <= until]
    if not found:
        missing = len(unindexed(directory, (CDXJ,)))
        hints = [f"{missing:,} files have no index"] if missing else []
        hints += [f"{len(damaged):,} indexes cannot be read, such as {damaged[0]}"] if damaged else []
        hint = f"; {' and '.join(hints)}, which scrapy frontier warc index makes" if hints else ""
        if store_url is not None:
            hint += f"; files in {store_url} are not searched"
        raise ConfigError(f"no index in {directory} has {url}{' until ' + until if until else ''}{hint}")
    same = [capture for capture in found if capture.url == url]
    return (same or found)[-1]


def _original(directory: Path, copy: Extracted) -> Capture:
    """Return the capture whose payload a revisit has not repeated."""
    url = text_of(copy.fields.get(b"warc-refers-to-target-uri", copy.fields.get(b"warc-target-uri", b"")).strip(b"<>"))
    digest = decoded(copy.fields.get(b"warc-payload-digest", b"")).removeprefix("sha1:")
    found = [one for one in captures(directory, url) if one.digest == digest and one.mime != REVISIT]
    if not found:
        raise ConfigError(f"it is a copy of {url}, which no index in {directory} has")
    date = "".join(filter(str.isdigit, decoded(copy.fields.get(b"warc-refers-to-date", b""))))
    return max(found, key=lambda one: one.stamp == date[:_STAMP_DIGITS])  # two bodies may share a SHA-1


def _extracted(directory: Path, capture: Capture, to: Path | None) -> Extracted:
    path = _path_of(directory, capture)
    try:
        with _in_place_of(to) as body:
            page = extract(path, capture.offset, body)
            stored = page.fields.get(b"warc-target-uri", b"").strip(b"<>")
            if search_key(stored) != search_key(capture.url.encode()):
                raise CorruptionError(path, capture.offset, capture.url, decoded(stored) or "a record without a URL")
            return page
    except OSError as error:
        if error.filename == str(path) or to is None:
            raise TransientStoreError(f"{path} cannot be read: {error.strerror}") from error
        raise TransientStoreError(f"{to} cannot be written: {error.strerror}") from error


@contextmanager
def _in_place_of(to: Path | None) -> Iterator[BinaryIO]:
    """Yield a file that takes the name of another once it is whole; what is no regular file is written itself."""
    if to is None or (to.exists() and not to.is_file()):
        with (to or Path(os.devnull)).open("wb") as file:
            yield file
        return
    target = to.resolve()  # a link stays one
    new = target.with_name(f"{target.name}.{name_part()}{_NEW_SUFFIX}")
    try:
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            new.chmod(target.stat().st_mode)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _path_of(directory: Path, capture: Capture) -> Path:
    """Return the file of a capture; an index of others may name a path, and files are beside their index."""
    return directory / PurePath(capture.filename).name
