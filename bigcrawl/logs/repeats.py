"""Logs a repeated problem once, and counts its repeats: a filter for log handlers, for bigcrawl's own lines.

Lines with the same logger, level and text are one problem; of other lines with the same template, the first `EACH_MAX`
in a minute pass. The number of suppressed lines is logged with the first line after the minute, and at the end.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SPAN_S = 60.0
EACH_MAX = 5  # different lines of one template in a span
TEMPLATES_MAX = 256  # the code has fewer
TEXT_MAX = 300  # characters of a line that are compared

COUNTS_REPEATS = "bigcrawl_counts_repeats"
"""An attribute of the lines that count suppressed ones."""


class _MessageTemplate:
    __slots__ = ("began_s", "held_back", "last", "level", "name", "texts")

    def __init__(self, record: logging.LogRecord, now_s: float) -> None:
        self.began_s = now_s
        self.name = record.name
        self.level = record.levelno
        self.texts: set[str] = set()
        self.held_back = 0
        self.last = ""

    def pass_or_count(self, text: str) -> bool:
        key = text[:TEXT_MAX]
        if key not in self.texts and len(self.texts) < EACH_MAX:
            self.texts.add(key)
            return True
        self.held_back += 1
        self.last = text
        return False

    def sum_up(self, now_s: float) -> None:
        if self.held_back:
            logging.getLogger(self.name).log(
                self.level,
                "%(count)d more lines like this one within %(seconds)d s: %(last)s",
                {"count": self.held_back, "seconds": max(1, round(now_s - self.began_s)), "last": self.last},
                extra={COUNTS_REPEATS: True},
            )


class RepeatFilter(logging.Filter):
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__("bigcrawl")
        self._clock = clock
        self._templates: dict[tuple[str, int, str], _MessageTemplate] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if hasattr(record, COUNTS_REPEATS):
            return True
        now_s = self._clock()
        self._sum_up(now_s - SPAN_S, now_s)
        if record.levelno < logging.WARNING or not super().filter(record):
            return True
        key = (record.name, record.levelno, str(record.msg))
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= TEMPLATES_MAX:
                self._sum_up(next(iter(self._templates.values())).began_s, now_s)
            template = self._templates[key] = _MessageTemplate(record, now_s)
        return template.pass_or_count(record.getMessage())

    def flush(self) -> None:
        now_s = self._clock()
        self._sum_up(now_s, now_s)

    def _sum_up(self, upto_s: float, now_s: float) -> None:
        while self._templates:
            key = next(iter(self._templates))
            if self._templates[key].began_s > upto_s:
                return
            self._templates.pop(key).sum_up(now_s)  # popped first, because the line that it logs comes here too
