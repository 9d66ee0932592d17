from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final, NamedTuple

from bigcrawl.logs.plain import excerpt_of
from bigcrawl.logs.repeats import COUNTS_REPEATS

ROWS_MAX: Final = 40
TEXT_MAX: Final = 300


class LogRow(NamedTuple):
    """The last line of a template, and how many lines it had; times are Unix seconds."""

    first_s: float
    last_s: float
    level: str
    logger: str
    text: str
    lines: int


class LogTail(logging.Handler):
    """Keeps one row per logger, level and template, so that many lines of one kind do not displace others."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._rows: OrderedDict[tuple[str, str, str], LogRow] = OrderedDict()
        self.warnings = 0
        self.errors = 0

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, COUNTS_REPEATS):
            return
        if record.levelno >= logging.ERROR:
            self.errors += 1
        else:
            self.warnings += 1
        try:
            self._remember(record)
        except Exception:  # noqa: BLE001 - of an object that has no text; the log's own handler says so
            self.handleError(record)

    def _remember(self, record: logging.LogRecord) -> None:
        key = (record.name, record.levelname, str(record.msg)[:TEXT_MAX])
        before = self._rows.get(key)
        first_s, lines = (before.first_s, before.lines) if before is not None else (record.created, 0)
        row = LogRow(first_s, record.created, record.levelname, record.name, _text_of(record), lines + 1)
        self._rows[key] = row
        self._rows.move_to_end(key)
        if len(self._rows) > ROWS_MAX:
            self._rows.popitem(last=False)

    def rows(self) -> list[LogRow]:
        """Return the rows, latest first."""
        self.acquire()  # other threads log, too
        try:
            return list(self._rows.values())[::-1]
        finally:
            self.release()


def _text_of(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
    except Exception:  # noqa: BLE001 - of arguments that do not fit; the log's own handler says so
        text = str(record.msg)
    return excerpt_of(text, TEXT_MAX)
