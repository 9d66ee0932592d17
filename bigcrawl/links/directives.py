"""A page's directives to robots, besides robots.txt: `X-Robots-Tag` headers and robots meta elements.

    X-Robots-Tag: noindex, nofollow              to all robots
    X-Robots-Tag: otherbot: nofollow, noarchive  to this robot only
    <meta name="robots" content="none">          to all robots; `none` means noindex and nofollow
    <meta name="examplebot" content="nofollow">  to the robot with this product token

Directives to all robots and to our own robot add up. Words that allow (`all`) or limit display (`max-snippet:20`) are
ignored.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NOFOLLOW: Final = "nofollow"
WORDS: Final = frozenset({"noindex", NOFOLLOW, "noarchive", "nosnippet", "noimageindex", "notranslate"})

_EVERY_ROBOT: Final = "robots"
_NONE: Final = ("noindex", NOFOLLOW)
_WITH_VALUE: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_split = re.compile(r"[\s,;]+").split
_is_token = re.compile(r"[a-z0-9_-]+").fullmatch


def is_directive(content: str) -> bool:
    return any(True for _ in _words(content))


def directives_for(agent: str, headers: Iterable[bytes], metas: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the directives in `WORDS` that a page addresses to `agent`, a product token in lower case.

    `headers` are the values of all X-Robots-Tag headers; `metas` are (name, content) of meta elements of any name.
    """
    found = set(_in_headers(agent, tuple(headers))) if headers else set()
    for name, content in metas:
        if name.strip().lower() in (_EVERY_ROBOT, agent):
            found.update(_words(content))
    return frozenset(found)


@lru_cache(256)  # most sites send the same header with every page
def _in_headers(agent: str, headers: tuple[bytes, ...]) -> frozenset[str]:
    found: set[str] = set()
    for header in headers:
        whom = _EVERY_ROBOT
        for part in header.decode("latin-1").lower().split(","):
            name, colon, rest = part.partition(":")
            name = name.strip()
            if colon and name in _WITH_VALUE:
                continue
            is_scope = bool(colon and _is_token(name))
            whom = name if is_scope else whom
            if whom in (_EVERY_ROBOT, agent):
                found.update(_words(rest if is_scope else part))
    return frozenset(found)


def _words(text: str) -> Iterator[str]:
    for word in _split(text.lower()):
        if word in WORDS:
            yield word
        elif word == "none":
            yield from _NONE
