"""Reads the target of a `<meta http-equiv="refresh" content="0; url=/next">`, as browsers do.

Source: HTML standard, "shared declarative refresh steps".
"""

from __future__ import annotations

import re

_BLANK = r"[\t\n\f\r ]*+"
# A number of seconds, whose value is ignored. It must be followed by a ; or , or a blank.
_after_seconds = re.compile(rf"{_BLANK}(?:[0-9]|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]){_BLANK}[;,]?+{_BLANK}").match
_after_url = re.compile(rf"[uU][rR][lL]{_BLANK}={_BLANK}").match


def refresh_target(content: str) -> str:
    """Return the reference in the `content` of a refresh, as written; empty if there is none.

    `url=` may be missing, and so may the quotes around the reference, or the second one. Whatever the delay, the target
    counts as a link to another page.
    """
    seconds = _after_seconds(content)
    if seconds is None:
        return ""
    target = content[seconds.end() :]
    url = _after_url(target)
    if url is not None:
        target = target[url.end() :]
    quote = target[:1]
    return target[1:].partition(quote)[0] if quote in {"'", '"'} else target
