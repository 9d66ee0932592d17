from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, Final

from bigcrawl.commands.pages.files import directory_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, CorruptionError, TransientStoreError
from bigcrawl.page_index.cdxj import REVISIT, decode_header, digest_of, stamp_of
from bigcrawl.page_index.index_files import CDXJ, unindexed_files
from bigcrawl.page_index.lookup import find_captures
from bigcrawl.page_index.search_key import search_key
from bigcrawl.private_files import whole_file
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import text_of
from bigcrawl.warc.extraction import ExtractedPage, extract_payload

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config
    from bigcrawl.page_index.cdxj import Capture

_NOT_MODIFIED: Final = 304


def extract_page(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show where a page is stored and its HTTP head; with `--to`, write its body, as the server sent it."""
    directory = directory_of(config)
    try:
        url = canonicalize(words[0])
    except UrlError as error:
        raise ConfigError(str(error)) from error
    found = _find_capture(directory, url, opts.at, config.crawl.warc_store_url)
    is_copy = found.mime == REVISIT
    page = source = _extract_capture(directory, found, None if is_copy else opts.to)
    if is_copy:  # a copy of a copy
        found = _find_original(directory, page)
        source = _extract_capture(directory, found, opts.to)
    head = decode_header(page.http_head or source.http_head)
    date = decode_header(page.fields.get(b"warc-date", b""))
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


def _find_capture(directory: Path, url: str, until: str, store_url: str | None) -> Capture:
    """Return the URL's last capture up to `until`; if it has none, that of a URL with the same search key."""
    if until and not (until.isdigit() and 4 <= len(until) <= 14):
        raise ConfigError(f"--at is {until!r}; it takes the digits of a time, as 2026, 20261125 or 20261125220512")
    damaged: list[Path] = []
    found = [capture for capture in find_captures(directory, url, damaged) if capture.stamp[: len(until)] <= until]
    if not found:
        missing = len(unindexed_files(directory, (CDXJ,)))
        hints = [f"{missing:,} files have no index"] if missing else []
        hints += [f"{len(damaged):,} indexes cannot be read, such as {damaged[0]}"] if damaged else []
        hint = f"; {' and '.join(hints)}, which scrapy frontier warc index makes" if hints else ""
        if store_url is not None:
            hint += f"; files in {store_url} are not searched"
        raise ConfigError(f"no index in {directory} has {url}{' until ' + until if until else ''}{hint}")
    same = [capture for capture in found if capture.url == url]
    return (same or found)[-1]


def _find_original(directory: Path, copy: ExtractedPage) -> Capture:
    url = text_of(copy.fields.get(b"warc-refers-to-target-uri", copy.fields.get(b"warc-target-uri", b"")).strip(b"<>"))
    digest = digest_of(copy.fields)
    date, own = (stamp_of(copy.fields.get(name, b"")) for name in (b"warc-refers-to-date", b"warc-date"))
    bodies = [one for one in find_captures(directory, url) if one.mime != REVISIT and one.status != _NOT_MODIFIED]
    found = [one for one in bodies if digest and one.digest == digest]
    if not found and not (digest and bodies and len(bodies[0].digest) == len(digest) and date):
        found = (
            [one for one in bodies if one.stamp == date] if date else [one for one in bodies if one.stamp <= own][-1:]
        )
    if not found:
        raise ConfigError(f"it is a copy of {url}, which no index in {directory} has")
    return max(found, key=lambda one: one.stamp == date)  # two bodies may share a SHA-1


def _extract_capture(directory: Path, capture: Capture, to: Path | None) -> ExtractedPage:
    path = _path_of(directory, capture)
    try:
        with _replacing_file(to) as body:
            page = extract_payload(path, capture.offset, body)
            stored = page.fields.get(b"warc-target-uri", b"").strip(b"<>")
            if search_key(stored) != search_key(capture.url.encode()):
                raise CorruptionError(
                    path, capture.offset, capture.url, decode_header(stored) or "a record without a URL"
                )
            return page
    except OSError as error:
        if error.filename == str(path) or to is None:
            raise TransientStoreError(f"{path} cannot be read: {error.strerror}") from error
        raise TransientStoreError(f"{to} cannot be written: {error.strerror}") from error


@contextmanager
def _replacing_file(to: Path | None) -> Iterator[BinaryIO]:
    """Yield a file that replaces `to` once complete; if `to` is a device or pipe, yield `to` itself."""
    if to is None or (to.exists() and not to.is_file()):
        with (to or Path(os.devnull)).open("wb") as file:
            yield file
        return
    target = to.resolve()  # replaces the target of a link, not the link
    with whole_file(target, 0o666) as file:
        yield file
        if target.exists():
            os.fchmod(file.fileno(), target.stat().st_mode)


def _path_of(directory: Path, capture: Capture) -> Path:
    """Return the path of a capture's file, which is beside its index, whatever path the index names."""
    return directory / PurePath(capture.filename).name
