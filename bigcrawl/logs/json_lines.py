"""`LOG_FORMAT = "json"`: one JSON object a line, for Scrapy's, Twisted's and bigcrawl's own lines, from the first on.

Scrapy makes its root handler before it knows a crawl, from settings that must be a format of `logging`. So the add-on
installs this handler when Scrapy reads the settings, with what they say of file, level and names, and switches Scrapy's
own off by LOG_INSTALL_ROOT_HANDLER.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = "json"
"""The value of LOG_FORMAT that asks for it."""


class JsonLines(logging.Formatter):
    """Formats a record as one line.

    Fields: `time` in ISO 8601 with zone and ms; `level`; `logger`; `message`; `crawl`, `spider` and `node` once they
    are known; `exc`, a traceback. A process that runs several crawls names none but the spider of a record with one.
    """

    def __init__(self, *, short_names: bool = False) -> None:
        """With `short_names`, all of Scrapy's loggers have its name, as LOG_SHORT_NAMES asks."""
        super().__init__()
        self._short_names = short_names
        self._crawl: dict[str, str] = {}
        self._several = False

    def __repr__(self) -> str:
        return f"<JsonLines {self._crawl}>"

    def note_crawl(self, crawl: str, spider: str, node: str) -> None:
        """Name the process' crawl in all lines from now on."""
        now = {"crawl": crawl, "spider": spider, "node": node}
        self._several = self._several or (bool(self._crawl) and self._crawl != now)
        self._crawl = now

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. What cannot be written in UTF-8 is escaped."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": "scrapy" if self._short_names and record.name.startswith("scrapy.") else record.name,
            "message": record.getMessage(),
        }
        if not self._several:
            line |= self._crawl
        spider = getattr(record, "spider", None)
        if spider is not None:
            line["spider"] = getattr(spider, "name", str(spider))
        if record.exc_info:
            line["exc"] = record.exc_text or self.formatException(record.exc_info)
        elif record.exc_text:
            line["exc"] = record.exc_text
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line)


class _Handlers:
    """The process' handler of this kind; at most one."""

    def __init__(self) -> None:
        self.handler: logging.Handler | None = None
        self.lines = JsonLines()

    def install(self, handler: logging.Handler, lines: JsonLines) -> None:
        self.remove()
        self.lines = lines
        handler.setFormatter(lines)
        logging.root.setLevel(logging.NOTSET)
        logging.root.addHandler(handler)
        self.handler = handler

    def remove(self) -> None:
        handler, self.handler = self.handler, None
        if handler is not None:
            logging.root.removeHandler(handler)
            handler.close()


_HANDLERS = _Handlers()


def install(settings: Mapping[str, Any]) -> logging.Handler:
    """Install the handler that Scrapy's settings LOG_* describe, in place of an earlier one. Return it.

    Raises:
        OSError: LOG_FILE cannot be written.
    """
    handler: logging.Handler
    if name := settings.get("LOG_FILE"):
        mode = "a" if _is_true(settings.get("LOG_FILE_APPEND", True)) else "w"
        handler = logging.FileHandler(name, mode, settings.get("LOG_ENCODING") or "utf-8")
    elif _is_true(settings.get("LOG_ENABLED", True)):
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.NullHandler()
    handler.setLevel(settings.get("LOG_LEVEL") or "DEBUG")
    _HANDLERS.install(handler, JsonLines(short_names=_is_true(settings.get("LOG_SHORT_NAMES", False))))
    return handler


def installed() -> logging.Handler | None:
    """Return the handler, if there is one."""
    return _HANDLERS.handler


def note_crawl(crawl: str, spider: str, node: str) -> None:
    """Name the crawl in all lines from now on; see `JsonLines`."""
    _HANDLERS.lines.note_crawl(crawl, spider, node)


def set_level(level: str | int) -> None:
    """Follow a LOG_LEVEL that only the spider's own settings have."""
    if _HANDLERS.handler is not None:
        _HANDLERS.handler.setLevel(level)


def _is_true(value: object) -> bool:
    """As Scrapy reads a switch."""
    return value not in (None, False, 0, "", "0", "False", "false")
