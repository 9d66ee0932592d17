"""`scrapy frontier add URL... | FILE... | -`: queue URLs by hand, or from a program.

A line of a file, or of standard input, is a URL, or a JSON object, of which only `url` is needed:

    {"url": "http://a.example/", "priority": 5, "depth": 0, "meta": {}, "callback": "parse_item", "cb_kwargs": {},
     "errback": "failed", "dont_filter": false}

Empty lines and those that begin with # are skipped. A known URL stays as it is, unless `dont_filter` is true.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, ContractError, RequestNotStorableError
from bigcrawl.given import whole_number
from bigcrawl.json_text import read_json
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.records.queued_url import UNCHECKED, traits_of
from bigcrawl.text_files.reading import lines_of
from bigcrawl.url.canonical import UrlError, masked
from bigcrawl.views.opened_crawl import OpenedCrawl, in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config

LINE_CHARS_MAX = 4 << 20
_BAD_SHOWN = 5
_OF_LINKS = ("priority", "meta", "callback", "errback", "cb_kwargs")
_OTHERS = ("url", "depth", "dont_filter")


class GivenLine(NamedTuple):
    where: str
    url: str
    fields: dict[str, Any]


class BadLine(NamedTuple):
    where: str
    reason: str


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--priority", type=int, default=0, help="of URLs without one of their own; higher is sooner")
    parser.add_argument("--callback", help="the spider's method for URLs without one of their own; parse by default")


def add(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Queue URLs, given one by one, in files, or as lines of standard input."""
    defaults = {"priority": getattr(opts, "priority", 0), "callback": getattr(opts, "callback", None)}
    sent, bad = in_crawl(config, _add_urls, words, defaults)
    shown = [f"not added: {where}: {reason}" for where, reason in bad[:_BAD_SHOWN]]
    shown += [f"and {len(bad) - _BAD_SHOWN:,} more"] if len(bad) > _BAD_SHOWN else []
    urls = "1 URL" if sent == 1 else f"{sent:,} URLs"
    text = "\n".join([f"sent to the inboxes: {urls}; those met before stay as they are", *shown])
    return Result({"sent": sent, "bad": [each._asdict() for each in bad]}, text, 1 if bad else 0)


async def _add_urls(crawl: OpenedCrawl, words: Sequence[str], defaults: dict[str, Any]) -> tuple[int, list[BadLine]]:
    sent, bad = 0, []
    sender = InboxSender(crawl, "by-hand")
    traits = traits_of(crawl.config)
    for given in _given_lines(words):
        if isinstance(given, BadLine):
            bad.append(given)
            continue
        try:
            place = crawl.place_of(given.url)
            fields = {**defaults, **given.fields}
            depth = whole_number(fields.get("depth", 0))
            links = Links([place.url], **{name: fields[name] for name in _OF_LINKS if name in fields})
            queued = links_encoder(links, depth, traits)(place.key, place.url)
        except (UrlError, ContractError, RequestNotStorableError, ValueError, TypeError) as error:
            bad.append(BadLine(given.where, str(error)))
            continue
        flags = queued.flags | (UNCHECKED if fields.get("dont_filter") is True else 0)
        await sender.add_url(place.partition, queued._replace(flags=flags))
        sent += 1
    await sender.flush()
    if sent:
        await crawl.unmark_finished()
    return sent, bad


def _given_lines(words: Sequence[str]) -> Iterator[GivenLine | BadLine]:
    for word in words:
        if word.startswith(("http://", "https://")):
            yield GivenLine(masked(word), word, {})
        else:
            with _lines_of(word) as file:
                yield from _read_file(word, file)


@contextmanager
def _lines_of(word: str) -> Iterator[IO[bytes]]:
    if word == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(word).open("rb") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"{masked(word)} is no http or https URL, and cannot be read as a file: {error}") from None


def _read_file(name: str, file: IO[bytes]) -> Iterator[GivenLine | BadLine]:
    number = 0
    try:
        for number, text in enumerate(lines_of(file, LINE_CHARS_MAX), 1):
            if text and not text.startswith("#"):
                yield _parse_line(f"{'line' if name == '-' else name + ', line'} {number}", text)
    except ValueError as error:
        where = f"{'line' if name == '-' else name + ', line'} {number + 1}"
        raise ConfigError(f"{where}: {error}: it is not a list of URLs") from None


def _parse_line(where: str, text: str) -> GivenLine | BadLine:
    if not text.startswith("{"):
        return GivenLine(where, text, {})
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
    return GivenLine(where, url, {name: value for name, value in fields.items() if name != "url"})
