"""`scrapy frontier add URL... | FILE... | -`: queue URLs by hand, or from a program.

A line of a file, or of standard input, is a URL, or a JSON object:

    {"url": "http://a.example/", "priority": 5, "depth": 0, "meta": {}, "callback": "parse_item", "cb_kwargs": {},
     "errback": "failed", "dont_filter": false}

Only the URL is needed. Empty lines and those that begin with # are skipped. A URL that was met before stays as it is,
unless `dont_filter` is true.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, ContractError, RequestNotStorableError
from bigcrawl.given import whole_number
from bigcrawl.json_text import read_json
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.scheduler.records.queued_url import UNCHECKED
from bigcrawl.url.canonical import UrlError
from bigcrawl.url.shape import Shapes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config

LINE_BYTES_MAX = 4 << 20
_BAD_SHOWN = 5
_OF_LINKS = ("priority", "meta", "callback", "errback", "cb_kwargs")
_OTHERS = ("url", "depth", "dont_filter")


class Given(NamedTuple):
    """A URL to add, and where it was given."""

    where: str
    url: str
    fields: dict[str, Any]


class BadLine(NamedTuple):
    """A line that is not added, and why."""

    where: str
    reason: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for URLs that are given as words or as plain lines."""
    parser.add_argument("--priority", type=int, default=0, help="of URLs that do not say theirs; higher is sooner")
    parser.add_argument("--callback", help="the spider's method for URLs that do not say theirs; parse by default")


def add(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Queue URLs, given one by one, in files, or as lines of standard input.

    A line that is no URL is left out and told, and makes the exit status 1; the others are queued.

    Raises:
        ConfigError: the crawl does not exist, or a file cannot be read; what came before it may be queued.
        TransientStoreError: Redis does not answer; some or all may be queued. The call may be repeated.
    """
    defaults = {"priority": getattr(opts, "priority", 0), "callback": getattr(opts, "callback", None)}
    with server_of(config) as server:
        sent, bad = asyncio.run(_add(config, server, words, defaults))
    shown = [f"not added: {where}: {reason}" for where, reason in bad[:_BAD_SHOWN]]
    shown += [f"and {len(bad) - _BAD_SHOWN:,} more"] if len(bad) > _BAD_SHOWN else []
    urls = "1 URL" if sent == 1 else f"{sent:,} URLs"
    text = "\n".join([f"sent to the inboxes: {urls}; those met before stay as they are", *shown])
    return Result({"sent": sent, "bad": [each._asdict() for each in bad]}, text, 1 if bad else 0)


async def _add(
    config: Config, server: str, words: Sequence[str], defaults: dict[str, Any]
) -> tuple[int, list[BadLine]]:
    sent, bad = 0, []
    async with opened(config, server) as crawl:
        sender = InboxSender(crawl, "by-hand")
        marks = Shapes(config.traps).marks if config.traps.share else None
        for given in _given(words):
            if isinstance(given, BadLine):
                bad.append(given)
                continue
            try:
                place = crawl.place_of(given.url)
                fields = {**defaults, **given.fields}
                depth = whole_number(fields.get("depth", 0))
                links = Links([place.url], **{name: fields[name] for name in _OF_LINKS if name in fields})
                queued = links_encoder(links, depth, marks)(place.key, place.url)
            except (UrlError, ContractError, RequestNotStorableError, ValueError, TypeError) as error:
                bad.append(BadLine(given.where, str(error)))
                continue
            flags = queued.flags | (UNCHECKED if fields.get("dont_filter") is True else 0)
            await sender.add(place.partition, queued._replace(flags=flags))
            sent += 1
        await sender.flush()
        if sent:
            await FinishCheck(crawl.client, config.crawl.name, crawl.partitions).take_back()
    return sent, bad


def _given(words: Sequence[str]) -> Iterator[Given | BadLine]:
    for word in words:
        if word.startswith(("http://", "https://")):
            yield Given(word, word, {})
        else:
            with _lines_of(word) as file:
                yield from _read(word, file)


@contextmanager
def _lines_of(word: str) -> Iterator[IO[bytes]]:
    if word == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(word).open("rb") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"{word} is no http or https URL, and cannot be read as a file: {error}") from None


def _read(name: str, file: IO[bytes]) -> Iterator[Given | BadLine]:
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        where = f"{'line' if name == '-' else name + ', line'} {number}"
        if len(line) > LINE_BYTES_MAX:
            raise ConfigError(f"{where} has more than {LINE_BYTES_MAX:,} bytes: it is no list of URLs")
        text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if text and not text.startswith("#"):
            yield _parsed(where, text)


def _parsed(where: str, text: str) -> Given | BadLine:
    if not text.startswith("{"):
        return Given(where, text, {})
    try:
        fields = read_json(text)
    except ValueError as error:
        return BadLine(where, f"it is no JSON object: {error}")
    url = fields.get("url")
    if not isinstance(url, str):
        return BadLine(where, "it has no url")
    if unknown := sorted(set(fields) - {*_OF_LINKS, *_OTHERS}):
        return BadLine(where, f"unknown: {', '.join(unknown)}; it may have {', '.join((*_OTHERS, *_OF_LINKS))}")
    for name in ("callback", "errback"):
        if not isinstance(fields.get(name, ""), str):
            return BadLine(where, f"{name} must be the name of a method")
    return Given(where, url, {name: value for name, value in fields.items() if name != "url"})
