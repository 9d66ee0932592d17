"""Marks URLs shaped like a trap's, which alone proves nothing. Append new kinds: their bits are on disk."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bigcrawl.features.traps.settings import TrapConfig

KINDS: Final = ("long", "repeats", "deep", "session", "calendar", "parameters")
LONG, REPEATS, DEEP, SESSION, CALENDAR, PARAMETERS = (1 << at for at in range(len(KINDS)))

_SCHEME_CHARS: Final = len("https://")  # the path begins behind this, also in http:// and a host of one letter

# A quick search for these words spares most URLs the expressions below.
_OF_SESSIONS: Final = ("sess", "sid", "cftoken", "zenid", "/(")
_OF_CALENDARS: Final = ("alend", "genda", "event")
_OF_MONTHS: Final = ("date", "month", "year", "week", "monat", "jahr", "mois", "annee")

_has_session = re.compile(
    r"[?&;/](?:jsessionid|phpsessid|aspsessionid\w*|session_?id|sess_?id|sid|cftoken|oscsid|zenid)=[\w%.-]{6,}"
    r"|/\([a-z]\([\w-]{6,}\)\)"
).search
# A URL may have 8 KB, and a page 2 MB of URLs, so no part is read twice: only the first word before a year counts, and
# a parameter's name is searched for its word before it is read.
_has_month = re.compile(
    r"(?:^|\?)(?>[^?]*?(?:alend|genda|vents?\b))[^?]*?\d{4}"
    r"|[?&](?=[\w-]*(?:year|month|week|jahr|monat|mois|annee|date))[\w-]++=-?\d"
).search


class UrlShapes:
    def __init__(self, config: TrapConfig) -> None:
        self._url_bytes = config.url_bytes
        self._repeats = config.repeats
        self._segments = config.segments
        self._hops = config.hops
        self._parameters = config.parameters

    def traits(self, url: str, depth: int = 0) -> int:
        found = LONG if len(url) > self._url_bytes else 0
        if depth > self._hops:
            found |= DEEP
        rest = url[url.find("/", _SCHEME_CHARS) :]
        path, has_query, query = rest.partition("?")
        slashes = path.count("/")
        if slashes > self._segments:
            found |= DEEP
        if slashes >= self._repeats and self._is_repeated(path):
            found |= REPEATS
        if has_query and query.count("&") >= self._parameters - 1:
            found |= PARAMETERS
        rest = rest.lower()
        if (_contains_any(rest, _OF_CALENDARS) or (has_query and _contains_any(rest, _OF_MONTHS))) and _has_month(rest):
            found |= CALENDAR
        if (has_query or ";" in rest or "/(" in rest) and _contains_any(rest, _OF_SESSIONS) and _has_session(rest):
            found |= SESSION
        return found

    def _is_repeated(self, path: str) -> bool:
        segments = path.split("/")
        if len(segments) - len(set(segments)) < self._repeats - 1:
            return False
        return any(times >= self._repeats and segment for segment, times in Counter(segments).items())


def _contains_any(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # any() over a generator takes three times as long  # noqa: SIM110
        if word in text:
            return True
    return False


def kinds_of(traits: int) -> list[str]:
    return [name for at, name in enumerate(KINDS) if traits >> at & 1]
