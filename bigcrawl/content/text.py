"""The text of a page, in the form in which pages are compared: without tags, in lower case, words divided by blanks.

It is made of bytes, in whatever encoding they are: a copy has the encoding of its original. A byte of a character that
is not ASCII counts as a letter.

Rules for editing: each expression is possessive, and takes what it has begun, if need be to the end of the page, so
that the cost is linear in the bytes of the page (see `bigcrawl.markup`, which reads pages as exactly as links need it).
"""

from __future__ import annotations

import re
from typing import Final

TEXT_BYTES_MAX: Final = 1 << 16
"""Of a longer page, its first and its last half of this are read."""

_HALF: Final = TEXT_BYTES_MAX // 2
# Their content changes from one fetch to the next: nonces, times, state for scripts.
_drop_scripts = re.compile(rb"(?ai:<(script|style)\b[^<]*+(?:<(?!/\1\b)[^<]*+)*+)").sub
_drop_tags = re.compile(rb"<[a-zA-Z/!?][^>]*+>?+").sub
_has_scripts = re.compile(rb"(?ai:<s(?:cript|tyle)\b)").search

_FOLDED: Final = bytes(
    byte | 0x20
    if byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    else byte
    if byte in b"abcdefghijklmnopqrstuvwxyz0123456789" or byte >= 0x80
    else 0x20
    for byte in range(256)
)


def text_of(body: bytes) -> bytes:
    """Return the words of a page in lower case; everything else is blanks.

    Args:
        body: of HTML or plain text, without content encoding.

    Cost: linear in what is read; 40 us for a page of 21 KB with 60 links.
    """
    if len(body) > TEXT_BYTES_MAX:
        body = b"%b %b" % (body[:_HALF], body[-_HALF:])
    if (b"<s" in body or b"<S" in body) and _has_scripts(body):
        body = _drop_scripts(b" ", body)
    return _drop_tags(b" ", body).translate(_FOLDED)
