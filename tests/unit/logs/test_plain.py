"""Nothing from outside acts where it is shown: no escape, no forged line."""

from __future__ import annotations

import ast
import io
import logging
import sys
from typing import TYPE_CHECKING

import pytest

from bigcrawl.logs.plain import PlainLines, make_plain, plain, plain_lines
from tests.support.imports import annex_sources, package_sources, parsed
from tests.support.planted import ESCAPES, FORGED, PLANTED, TURN, assert_is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(out: io.StringIO) -> Iterator[logging.Logger]:
    """A logger of its own whose only handler writes as Scrapy's does."""
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.INFO)
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(asctime)s [%(name)s] %(levelname)s: %(message)s"))
    make_plain(handler)
    make_plain(handler)
    logger.addHandler(handler)
    yield logger
    logger.removeHandler(handler)


def fail(text: str) -> None:
    """Raise an error from another one."""
    error = ValueError(text)
    error.__cause__ = KeyError(text)
    raise error


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("all is well, Ärger 日本 𝄞", "all is well, Ärger 日本 𝄞"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b\x85\N{RIGHT-TO-LEFT OVERRIDE}\N{LINE SEPARATOR}", "\\x9b\\x85\\u202e\\u2028"),
        ("\ud800\U000e0001", "\\ud800\\U000e0001"),
    ],
)
def test_text_is_one_line_of_printable_signs(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_lines_and_tabs_of_lines_stay() -> None:
    assert plain_lines("a\n\tb\x1b\r\nc") == "a\n\tb\\x1b\\r\nc"


@pytest.mark.parametrize("planted", [ESCAPES, TURN, PLANTED])
def test_message_cannot_act_or_forge_a_line(log: logging.Logger, out: io.StringIO, planted: str) -> None:
    """Whether it stands in the arguments, in an exception, or in what that was raised from."""
    log.info("Crawled <%(method)s %(url)s>", {"method": planted, "url": planted})
    try:
        fail(planted)
    except ValueError:
        log.exception("failed: %s", planted, stack_info=True)
    assert_is_plain(out.getvalue(), ("Crawled <", "ValueError: ", "KeyError: ", "Stack (most recent call last)"))


def test_traceback_and_lines_of_a_message_can_be_read(log: logging.Logger, out: io.StringIO) -> None:
    """Only the lines that begin at the edge are indented."""
    log.info("stats:\n{'a': 1,\n 'b': 2}")
    assert out.getvalue().endswith("INFO: stats:\n  {'a': 1,\n 'b': 2}\n")
    try:
        int("text")
    except ValueError:
        log.exception("failed")
    assert "failed\nTraceback (most recent call last):\n  File " in out.getvalue()
    assert out.getvalue().endswith("\n  ValueError: invalid literal for int() with base 10: 'text'\n")


def test_record_stays_as_it_is_for_other_handlers() -> None:
    record = logging.LogRecord("a", logging.INFO, "b", 1, "%s", ("\x1b",), None)
    assert PlainLines(logging.Formatter()).format(record) == "\\x1b"
    assert (record.getMessage(), record.args) == ("\x1b", ("\x1b",))


def test_colours_of_a_formatter_stay() -> None:
    """They are not from outside."""
    formatter = PlainLines(logging.Formatter("\x1b[32m%(levelname)s\x1b[0m %(message)s"))
    record = logging.LogRecord("a", logging.INFO, "b", 1, "\x1b[31m", None, None)
    assert formatter.format(record) == "\x1b[32mINFO\x1b[0m \\x1b[31m"


def test_line_is_written_whatever_the_exception(log: logging.Logger, out: io.StringIO) -> None:
    """Without one, too."""
    log.error("failed", exc_info=sys.exc_info())
    assert_is_plain(out.getvalue(), ("failed\nNoneType: None",))
    assert FORGED not in out.getvalue()


PRINTERS = {
    "__main__.py": "an error, made plain",
    "commands/running.py": "errors, made plain",
    "commands/inbox_sender.py": "a sentence of its own",
    "commands/looking/dashboard.py": "an address of its own",
    "commands/looking/top.py": "cells that are made plain",
    "commands/steering/delete.py": "a question, made plain",
    "extensions/progress.py": "the summary, made plain",
    "logs/plain.py": "what its callers have made plain",
    "main_job.py": "an error, made plain, and sentences of its own",
    "bigcrawl_sampling/__main__.py": "URLs and errors, made plain, and numbers",
}
"""All code that prints, and why no text from outside acts there."""


def test_every_printer_is_listed() -> None:
    """One more is asked what it prints. The simulated web shows no texts but its own."""
    calls = {
        path
        for path, source in (package_sources() | annex_sources()).items()
        if not path.startswith("bigcrawl_simweb/")
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "console.print", "sys.stderr.write")
    }
    assert calls == set(PRINTERS)
