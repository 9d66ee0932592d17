"""`--from urls FILE` and `--from cdx FILE`: plain lists of URLs, and indexes of web archives, gzipped or not.

A line of a list is a URL; empty lines and those that begin with # are skipped. A line of an index is CDXJ, as Common
Crawl and pywb write it, or has three to eleven fields of which the third is the URL (CDX):
    com,example)/ 20260102030405 {"url": "http://example.com/", "mime": "text/html", "status": "200"}
    com,example)/ 20260102030405 http://example.com/ text/html 200 SHA1 - - 1043 333 file.warc.gz
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.text_files.reading import lines_of
from bigcrawl_foreign.jobdir import JobDir
from bigcrawl_foreign.scrapy_redis import ScrapyRedis

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from bigcrawl.commands.moving.importing import ImportSource, RequestSender

LINE_CHARS_MAX: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b"


class UrlList:
    pauses = False

    def __init__(self, path: str, opts: argparse.Namespace) -> None:
        self._path = path
        self._priority = opts.priority
        self._callback = opts.callback

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._path}>"

    async def read_into(self, sender: RequestSender) -> list[str]:
        for number, line in enumerate(_lines_of(Path(self._path)), 1):
            where = f"{self._path}, line {number}"
            try:
                url = self._url_of(line)
            except ValueError as error:
                sender.record_skipped(where, str(error))
                continue
            if url:
                await sender.send_url(where, url, self._priority, self._callback)
        return []

    def _url_of(self, line: str) -> str:
        """Return the URL in a line; empty for a line to skip. Raise ValueError for a malformed line."""
        return "" if line.startswith("#") else line


class CdxFile(UrlList):
    def _url_of(self, line: str) -> str:
        if not line or line.startswith(("CDX ", "!", "#")):
            return ""
        begin = line.find(" {")
        if begin < 0:
            fields = line.split()
            if len(fields) < 3:
                raise ValueError("it is not a line of a CDX file")
            return fields[2]
        try:
            url = read_json(line[begin + 1 :]).get("url")
        except ValueError as error:
            raise ValueError(f"its JSON cannot be read: {error}") from None
        if not isinstance(url, str):
            raise ValueError("its JSON has no url")  # noqa: TRY004 - of the line
        return url


def _lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file without their ends; raise ConfigError if one exceeds `LINE_CHARS_MAX`."""
    number = 0
    try:
        with path.open("rb") as plain, _open_decompressed(plain) as file:
            for text in lines_of(file, LINE_CHARS_MAX):
                number += 1
                yield text
    except ValueError as error:
        raise ConfigError(f"{path}, line {number + 1}: {error}: it is not a URL") from None
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot read {path}, after line {number}: {error}") from error


@contextmanager
def _open_decompressed(plain: IO[bytes]) -> Iterator[IO[bytes]]:
    is_packed = plain.read(len(_GZIP)) == _GZIP
    plain.seek(0)
    if not is_packed:
        yield plain
        return
    with gzip.GzipFile(fileobj=plain) as file:
        yield cast("IO[bytes]", file)


SOURCES: Final[dict[str, Callable[[str, argparse.Namespace], ImportSource]]] = {
    "scrapy-redis": ScrapyRedis,
    "jobdir": JobDir,
    "urls": UrlList,
    "cdx": CdxFile,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spider", default="", help="the spider whose crawl it is; names keys, and a new crawl")
    parser.add_argument(
        "--queue-key", default="%(spider)s:requests", help="scrapy-redis' SCHEDULER_QUEUE_KEY, as by default"
    )
    parser.add_argument(
        "--dupefilter-key",
        default="%(spider)s:dupefilter",
        help="scrapy-redis' SCHEDULER_DUPEFILTER_KEY, as by default; '' if there is none",
    )
    parser.add_argument("--stack", action="store_true", help="the queue is a LifoQueue or SpiderStack")
    parser.add_argument("--priority", type=int, default=0, help="of the URLs of a list or index; higher is sooner")
    parser.add_argument("--callback", help="the spider's method for the URLs of a list or index; parse by default")
    parser.add_argument(
        "--request-class",
        action="append",
        default=[],
        metavar="CLASS",
        help="a class of requests of your own that the queue may hold; may be repeated",
    )
