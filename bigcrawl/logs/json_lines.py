"""`LOG_FORMAT = "json"`: one JSON object per line, from all loggers, by a handler that replaces Scrapy's."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bigcrawl.logs.installed import INSTALLED

if TYPE_CHECKING:
    from collections.abc import Mapping


class JsonLines(logging.Formatter):
    """Formats a record as one line.

    Fields: `time` in ISO 8601 with zone and ms; `level`; `logger`; `message`; `crawl`, `spider` and `node` once they
    are known; `exc`, a traceback. In a process with several crawls, a line has only its own `spider`, if any.
    """

    def __init__(self, *, short_names: bool = False) -> None:
        """With `short_names`, all of Scrapy's loggers have its name (LOG_SHORT_NAMES)."""
        super().__init__()
        self._short_names = short_names
        self._crawl: dict[str, str] = {}
        self._several = False

    def record_crawl(self, crawl: str, spider: str, node: str) -> None:
        now = {"crawl": crawl, "spider": spider, "node": node}
        self._several = self._several or (bool(self._crawl) and self._crawl != now)
        self._crawl = now

    def format(self, record: logging.LogRecord) -> str:
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


def install_handler(settings: Mapping[str, Any]) -> logging.Handler:
    """Install the handler that the settings LOG_* describe. Raises OSError if LOG_FILE cannot be written."""
    handler: logging.Handler
    if name := settings.get("LOG_FILE"):
        mode = "a" if _is_true(settings.get("LOG_FILE_APPEND", True)) else "w"
        handler = logging.FileHandler(name, mode, settings.get("LOG_ENCODING") or "utf-8")
    elif _is_true(settings.get("LOG_ENABLED", True)):
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.NullHandler()
    handler.setLevel(settings.get("LOG_LEVEL") or "DEBUG")
    lines = JsonLines(short_names=_is_true(settings.get("LOG_SHORT_NAMES", False)))
    handler.setFormatter(lines)
    INSTALLED.install(handler, lines.record_crawl)
    return handler


def _is_true(value: object) -> bool:
    return value not in (None, False, 0, "", "0", "False", "false")
