"""Finds the base of a directory listing that a server sends under a URL without the final slash (Nexplorer §3.3.1).

The listing's relative links lead below the directory; browsers join them with the one above, and find nothing.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD_CHARS: Final = 1_024
_BEGINS: Final = ("<title", "<TITLE", "<Title")
# What precedes the path in the titles of common servers' listings; the last alternative is that of IIS, after its name.
_match_title = re.compile(
    r"<title[^>]{0,200}+>\s{0,200}+(?:(?:index of|contents of|directory(?: listing)?(?: for| of|:)?"
    r"|(?:file )?listing(?: for| of| directory)?):?|[^\s/<]{1,253}+ -)\s+([^<]{1,1024}+)",
    re.IGNORECASE,
).match
_match_path = re.compile(r"\[?(?:https?://[^/\s]+)?([^\]]*+)\]?\s*").fullmatch


def listing_base(url: str, text: str, references: Iterable[str]) -> str | None:
    """Return the URL of the directory that a page lists, if its own URL lacks the slash and `references` its name."""
    for begin in _BEGINS:
        if (at := text.find(begin, 0, _HEAD_CHARS)) >= 0:
            break
    title = _match_title(text, at) if at >= 0 else None
    listed = _match_path(unescape(title[1])) if title else None
    if listed is None:
        return None
    path = url.partition("#")[0].partition("?")[0]
    own = unquote(path.split("/", 3)[-1]) if path.count("/") > 2 else ""
    name = listed[1].strip().strip("/")
    if path.endswith("/") or not own or own not in (name, unquote(name)):
        return None
    last = path.rpartition("/")[2]
    if any(reference.startswith((f"{last}/", f"./{last}/")) for reference in references):
        return None
    return f"{path}/"
