from __future__ import annotations

import re
from typing import NamedTuple

_BLANK = r"[\t\n\f\r ]*+"
_after_seconds = re.compile(
    rf"{_BLANK}([0-9]*+)(?:(?<=[0-9])|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]){_BLANK}[;,]?+{_BLANK}"
).match
_after_url = re.compile(rf"[uU][rR][lL]{_BLANK}={_BLANK}").match


SECONDS_DIGITS_MAX = 9


class Refresh(NamedTuple):
    """A parsed refresh; an empty target means the page itself."""

    seconds: int
    target: str


def refresh_in(content: str) -> Refresh:
    """Return a refresh with its reference as written; `url=` and the quotes may be missing."""
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
