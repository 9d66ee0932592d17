"""A problem that repeats is logged once, and counted: a filter of the log's handlers, for bigcrawl's own lines.

Two lines are the same problem if their logger, level and text are the same. Of lines that have only their template in
common, such as one that names a host or a number of tries, the first `EACH_MAX` in a minute are told. What was held
back is told as a number, once the minute is over and anything else is logged, and at the end. Lines below WARNING pass.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SPAN_S = 60.0
EACH_MAX = 5  # different lines of one template in a span
TEMPLATES_MAX = 256  # remembered at a time; the code has fewer
TEXT_MAX = 300  # characters of a line that are compared

_COUNTS = "bigcrawl_counts_repeats"


class _Template:
    """What was told and held back of one template since `began_s`."""

    __slots__ = ("began_s", "held_back", "last", "level", "name", "texts")

    def __init__(self, record: logging.LogRecord, now_s: float) -> None:
        self.began_s = now_s
        self.name = record.name
        self.level = record.levelno
        self.texts: set[str] = set()
        self.held_back = 0
        self.last = ""

    def tells(self, text: str) -> bool:
        """Whether a line is told; if not, it is counted."""
        key = text[:TEXT_MAX]
        if key not in self.texts and len(self.texts) < EACH_MAX:
            self.texts.add(key)
            return True
        self.held_back += 1
        self.last = text
        return False

    def sum_up(self, now_s: float) -> None:
        """Log how many lines were held back, if any."""
        if self.held_back:
            logging.getLogger(self.name).log(
                self.level,
                "%(count)d more lines like this one within %(seconds)d s: %(last)s",
                {"count": self.held_back, "seconds": max(1, round(now_s - self.began_s)), "last": self.last},
                extra={_COUNTS: True},
            )


class Repeats(logging.Filter):
    """Holds back what repeats, of loggers named `bigcrawl` and below.

    Memory: `TEMPLATES_MAX` templates with a few lines each. Cost: none for lines below WARNING but a look at the clock.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__("bigcrawl")
        self._clock = clock
        self._templates: dict[tuple[str, int, str], _Template] = {}

    def __repr__(self) -> str:
        return f"<Repeats templates={len(self._templates)}>"

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written now."""
        if hasattr(record, _COUNTS):
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
            template = self._templates[key] = _Template(record, now_s)
        return template.tells(record.getMessage())

    def flush(self) -> None:
        """Tell what was held back, and forget everything."""
        now_s = self._clock()
        self._sum_up(now_s, now_s)

    def _sum_up(self, upto_s: float, now_s: float) -> None:
        """End the spans that began by then, the oldest first."""
        while self._templates:
            key = next(iter(self._templates))
            if self._templates[key].began_s > upto_s:
                return
            self._templates.pop(key).sum_up(now_s)  # taken out before it logs, which comes back here
