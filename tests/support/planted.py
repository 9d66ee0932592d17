"""Text that somebody outside plants, and what it must not do where it is shown."""

from __future__ import annotations

import re
from typing import Final

ESCAPES: Final = "\x1b]0;owned\x07\x1b[2J\x9b31m\b\r"
"""Renames a terminal's window, clears it, colours it in one byte, and writes over what is there."""

TURN: Final = "\N{RIGHT-TO-LEFT OVERRIDE}\N{ZERO WIDTH SPACE}"

FORGED: Final = "2026-11-28 06:28:03 [bigcrawl] INFO: all is well"
"""A line of the log that no program wrote."""

PLANTED: Final = f"{ESCAPES}{TURN}\n{FORGED}"

_LINE_SIGNS = re.compile(r"[\n\t]")


def assert_is_plain(text: str, marks: tuple[str, ...] = ()) -> None:
    """No sign acts, no line is forged, and each mark is there, so that something was shown at all."""
    acting = {sign for sign in _LINE_SIGNS.sub("", text) if not sign.isprintable()}
    assert not acting, (acting, text)
    assert not [line for line in text.split("\n") if line.startswith(FORGED)], text
    assert not [mark for mark in marks if mark not in text], text
