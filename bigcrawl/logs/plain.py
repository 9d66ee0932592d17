r"""Shows text from outside safely: in lines of the log, results of commands, errors, and the report.

Servers, Redis, files and clients of a port can put anything into a text: escapes that rename a terminal's window or
hide printed text, line ends that forge a line, signs that turn the direction of writing. Unprintable signs are shown as
Python spells them: ``\x1b``. All text passes here once, where it leaves the program.
"""

from __future__ import annotations

import logging
import os
import re
import sys

_LINE_BEGUN = re.compile(r"\n(?=\S)")
_CREDENTIALS = re.compile(r"(?<=//)[^/\s?#@]*@")
_CUT_AUTHORITY = re.compile(r"(?<=//)[^/\s?#@]*$")
_READ_MAX = 4_096


def plain(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def plain_lines(text: str) -> str:
    """Return a text that keeps its line ends and tabs, but no other unprintable characters."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(plain, line.split("\t"))) for line in text.split("\n"))


def excerpt_of(text: str, most: int) -> str:
    """Return the beginning of a text as one plain line of at most `most` characters, without credentials in URLs."""
    begun = _CREDENTIALS.sub("", text[:_READ_MAX])
    if len(text) > _READ_MAX:
        begun = _CUT_AUTHORITY.sub("", begun)
    shown = plain(" ".join(begun[: 2 * most].split()))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def print_text(text: str, end: str = "\n") -> None:
    """Print a text to a reader that may stop reading, such as `head`."""
    try:
        print(text, end=end, flush=True)  # noqa: T201 - for commands
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end


class PlainLines(logging.Formatter):
    """Formats as another formatter does, but as plain text; further lines are indented, so none looks like a record."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines. The record stays unchanged for other handlers."""
        message = record.getMessage()
        if record.exc_info or record.exc_text or record.stack_info or not message.isprintable():
            trace = record.exc_text or (self._formatter.formatException(record.exc_info) if record.exc_info else "")
            texts = {"exc_text": _indent_lines(trace), "stack_info": _indent_lines(record.stack_info or "")}
            plain_ones = {"msg": _indent_lines(message), "args": None, "exc_info": None, **texts}
            record = logging.makeLogRecord({**record.__dict__, **plain_ones})
        return self._formatter.format(record)


def make_plain(handler: logging.Handler | None) -> None:
    """Make a handler write plain lines, unless it does so already, or writes JSON, which escapes everything."""
    formatter = handler.formatter if handler is not None else None
    if handler is not None and formatter is not None and not isinstance(formatter, PlainLines):
        handler.setFormatter(PlainLines(formatter))


def _indent_lines(text: str) -> str:
    return _LINE_BEGUN.sub("\n  ", plain_lines(text))
