"""Reads what a refresh says, in `<meta http-equiv="refresh" content="0; url=/next">` or a header, as browsers do.

Source: HTML standard, "shared declarative refresh steps".
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK = r"[\t\n\f\r ]*+"
# A number of seconds, followed by a ; or , or a blank.
_after_seconds = re.compile(
    rf"{_BLANK}([0-9]*+)(?:(?<=[0-9])|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]){_BLANK}[;,]?+{_BLANK}"
).match
_after_url = re.compile(rf"[uU][rR][lL]{_BLANK}={_BLANK}").match


SECONDS_DIGITS_MAX = 9


class Refresh(NamedTuple):
    """After how many seconds, and the reference to what; empty: to the page itself."""

    seconds: int
    target: str


def refresh_in(content: str) -> Refresh:
    """Return what a refresh says, with its reference as written.

    `url=` may be missing, and so may the quotes around the reference, or the second one.
    """
    seconds = _after_seconds(content)
    if seconds is None:
        return Refresh(0, "")
    delay_s = int(seconds[1][:SECONDS_DIGITS_MAX] or 0)
    target = content[seconds.end() :]
    url = _after_url(target)
    if url is not None:
        target = target[url.end() :]
    quote = target[:1]
    return Refresh(delay_s, target[1:].partition(quote)[0] if quote in {"'", '"'} else target)
