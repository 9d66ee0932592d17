"""`scrapy frontier warc extract URL`: get one stored page out."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, cast

from bigcrawl.commands.pages.files import directory_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.cdxj import REVISIT, decoded
from bigcrawl.page_index.index_files import CDXJ, unindexed
from bigcrawl.page_index.lookup import captures
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.warc.extraction import Extracted, extract

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.page_index.cdxj import Capture

_COPIES_FOLLOWED = 1  # a revisit refers to a record that is none


def extract_page(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show where a page is stored and its HTTP head; with `--to`, write its body, as the server sent it.

    Raises:
        ConfigError: the URL is none, or no index has it.
        CorruptionError: the record is damaged, or its index is of another file.
        TransientStoreError: the file cannot be read, or the body not be written.
    """
    directory = directory_of(config)
    try:
        url = canonicalize(words[0])
    except UrlError as error:
        raise ConfigError(str(error)) from error
    found = _chosen(directory, url, opts.at, config.crawl.warc_store_url)
    page = _extracted(directory, found, opts.to)
    source = page
    for _ in range(_COPIES_FOLLOWED):
        if found.mime == REVISIT:
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
    found = [capture for capture in captures(directory, url) if capture.stamp[: len(until)] <= until]
    if not found:
        missing = len(unindexed(directory, (CDXJ,)))
        hint = f"; {missing:,} files have no index, which scrapy frontier warc index makes" if missing else ""
        if store_url is not None:
            hint += f"; files in {store_url} are not looked at"
        raise ConfigError(f"no index in {directory} has {url}{' until ' + until if until else ''}{hint}")
    same = [capture for capture in found if capture.url == url]
    return (same or found)[-1]


def _original(directory: Path, copy: Extracted) -> Capture:
    """Return the capture whose payload a revisit has not repeated."""
    url = decoded(copy.fields.get(b"warc-refers-to-target-uri", copy.fields.get(b"warc-target-uri", b"")))
    digest = decoded(copy.fields.get(b"warc-payload-digest", b"")).removeprefix("sha1:")
    found = [one for one in captures(directory, url) if one.digest == digest and one.mime != REVISIT]
    if not found:
        raise ConfigError(f"it is a copy of {url}, which no index in {directory} has")
    return found[-1]


def _extracted(directory: Path, capture: Capture, to: Path | None) -> Extracted:
    path = _path_of(directory, capture)
    try:
        with (to or Path(os.devnull)).open("wb") as body:
            return extract(path, capture.offset, cast("BinaryIO", body))
    except OSError as error:
        what = f"{to} cannot be written" if to is not None and error.filename == str(to) else f"{path} cannot be read"
        raise TransientStoreError(f"{what}: {error.strerror}") from error


def _path_of(directory: Path, capture: Capture) -> Path:
    """Return the file of a capture; an index of others may name a path, and files are beside their index."""
    return directory / PurePath(capture.filename).name
