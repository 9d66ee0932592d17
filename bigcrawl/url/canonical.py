"""The canonical URL: the string that is fetched, and from which key, host and PLD are computed.

It is the WHATWG serialisation of an http or https URL without its fragment: ASCII, with a path, without a default port.
The order of the query, the case of percent escapes, an empty query, doubled slashes, and the dot that ends an absolute
DNS name stay as written.

User and password are no part of it: they are secrets, and a page could make many URLs of one with them. If a user's own
URL has them, `refuse_credentials` refuses it (0203).

Changes here change the keys of existing crawls: raise CANONICAL_VERSION.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ada_url

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scan import join_plain
from bigcrawl.scan.plain import ORIGIN_ALONE, ORIGIN_PATH, ROOT, Base, match_plain, put_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CANONICAL_VERSION = 1

URL_MAX_BYTES = 8_192
"""The longest URL: common servers' limit; longer ones are almost always traps."""

_WEB = ("http://", "https://")

_WHY = {
    "scheme": "it must begin with http:// or https://",
    "empty-host": "it names no host",
    "syntax": "its host or port cannot be read",
    "too-long": "it is longer than a URL may be here",
    "credentials": "it has a user or password; take them out, and let Scrapy's HttpAuthMiddleware send them",
}

_HAS_WEB_SCHEME = re.compile(r"[\x00-\x20]*https?:", re.IGNORECASE).match
_HAS_NO_HOST = re.compile(r"[\x00-\x20]*https?:[/\\]*+(?:[^/\\?#]*@)?(?::\d*)?(?:[/\\?#\s]|$)", re.IGNORECASE).match

# Converting longer names to ASCII takes quadratic time.
_HOST_MAX, _LABEL_MAX = 253, 63
_find_host = re.compile(r"(?:[hH][tT][tT][pP][sS]?+:[/\\]*+|[/\\]{2,}+)([^/\\?#]*+)").match
_labels_of = re.compile("[.\u3002\uff0e\uff61]").split
# Anything that may be a user and password. Without a URL, the last @ ends them: a password may have a slash.
_SCHEME = r"^((?ai:\s*+https?:)|[^/\\?#@:]*+:(?=[/\\]))?+"
_mask_user = re.compile(rf"{_SCHEME}[/\\]*+[^/\\?#]*@").sub
_mask_all = re.compile(rf"{_SCHEME}[\s\S]*@").sub
_STRIPPED = "".join(map(chr, range(0x21)))
_without_breaks = re.compile(r"[\t\n\r]++").sub
_ORIGINS_REMEMBERED = 1 << 16


class UrlError(BigcrawlError, ValueError):
    """A string is not a crawlable URL. `reason` is scheme, syntax, empty-host, too-long or credentials.

    `url` and the message have no password.
    """

    def __init__(self, url: str, reason: str) -> None:
        url = masked(url, is_parsed=reason != "syntax")
        shown = url if len(url) <= 200 else f"{url[:200]}... ({len(url)} characters)"
        super().__init__(f"{shown!r} cannot be crawled: {_WHY[reason]}")
        self.url = url
        self.reason = reason


def canonicalize(url: str, url_max_bytes: int = URL_MAX_BYTES) -> str:
    canonical = _canonicalize_plain(url) or _parsed(url)
    if len(canonical) > url_max_bytes:
        raise UrlError(url, "too-long")
    return canonical


def _canonicalize_plain(url: str) -> str | None:
    plain = match_plain(url)
    if plain is None or plain.lastindex != ORIGIN_PATH or url[0] == "/":
        return None
    origin = _canonical_origin(plain[ORIGIN_ALONE])
    return origin and origin + plain[ORIGIN_PATH]


def _parsed(url: str) -> str:
    try:
        # Joining with an empty reference also drops the fragment.
        canonical = ada_url.join_url(url, "")
    except ValueError:
        raise UrlError(url, _refused_because(url)) from None
    if not canonical.startswith(_WEB):
        raise UrlError(url, "scheme")
    return _without_user(canonical) if "@" in canonical else canonical


def refuse_credentials(url: str) -> None:
    """Raise UrlError, with reason `credentials`, if a user gives a web URL that has a user or password."""
    if "@" not in url:
        return
    parsed = ""
    with suppress(ValueError):
        parsed = ada_url.join_url(url, "")
    if parsed.startswith(_WEB) and _without_user(parsed) != parsed:
        raise UrlError(url, "credentials")


def _without_user(url: str) -> str:
    """Return a parsed URL without user and password, in which an @ is escaped."""
    start = 7 if url[4] == ":" else 8
    end = url.find("@", start, url.index("/", start))
    return url if end < 0 else url[:start] + url[end + 1 :]


def masked(url: str, *, is_parsed: bool = False) -> str:
    """Return a URL, valid or not, without user and password, for display."""
    if "@" not in url or url.lower().startswith("mailto:"):
        return url
    return (_mask_user if is_parsed else _mask_all)(lambda found: f"{found[1] or ''}//***@", url)


def _refused_because(url: str) -> str:
    if not _HAS_WEB_SCHEME(url):
        return "scheme"
    return "empty-host" if _HAS_NO_HOST(url) else "syntax"


def join(base: str, reference: str) -> str | None:
    """Return the canonical URL of a reference on the page `base`, of any length; None if it cannot be crawled."""
    try:
        joined = ada_url.join_url(base, reference)
    except ValueError:
        return None
    if not joined.startswith(_WEB):
        return None
    if "#" in joined:
        joined = joined[: joined.index("#")]
    return _without_user(joined) if "@" in joined else joined


@dataclass(slots=True)
class LinkRoom:
    url_bytes_max: int = URL_MAX_BYTES
    bytes_left: int = 1 << 62
    parser_bytes_left: int = 1 << 62
    """What the general parser may read; it reads the whole base with each reference."""

    too_long: int = 0
    is_used_up: bool = False


class Joiner:
    """Like `join`, but several times faster for many references of one page."""

    __slots__ = ("_base", "parts")

    def __init__(self, base: str) -> None:
        self._base = base = canonicalize(base, url_max_bytes=max(len(base) * 12, URL_MAX_BYTES))
        path = base.partition("?")[0]
        self.parts = Base(base[: base.index("/", 8)], path[: path.rindex("/") + 1], path, _canonical_origin)

    def __repr__(self) -> str:
        return f"Joiner({self._base!r})"

    def __call__(self, reference: str) -> str | None:
        plain = match_plain(reference) or match_plain(reference.strip(_STRIPPED))
        return put_together(plain, self.parts) if plain else join(self._base, reference)

    def join_all(
        self, references: Iterable[str], respell: Callable[[str], str | None], room: LinkRoom | None = None
    ) -> list[str]:
        """Return the canonical URLs of references, in order, once each; `respell` spells those that are not plain."""
        room = room or LinkRoom()
        references = list(references)
        longest, room_left = room.url_bytes_max, room.bytes_left
        if len(self._base) <= longest:
            joined, left, all_fit = join_plain(references, self.parts, longest, room_left)
            if all_fit:  # as on most pages
                room.bytes_left = left
                each: dict[Any, None] = dict.fromkeys(joined)
                return list(each)
        else:
            joined = [None] * len(references)
        urls: dict[str, None] = {}
        for reference, url in zip(references, joined, strict=False):
            if room_left < 0:
                room.is_used_up = True
                break
            if url is None:
                url = self._other(reference, respell, room)  # noqa: PLW2901
                if room.parser_bytes_left < 0:
                    room.is_used_up = True
                    break
            if not url:
                continue
            room_left -= len(url)
            if len(url) > longest:
                room.too_long += 1
            else:
                urls[url] = None
        room.is_used_up = room.is_used_up or len(joined) < len(references)
        room.bytes_left = room_left
        return list(urls)

    def _other(self, reference: str, respell: Callable[[str], str | None], room: LinkRoom) -> str | None:
        longest = room.url_bytes_max
        is_long = len(reference) > longest or len(self._base) > longest  # else it is known not to be plain
        plain = match_plain(reference) if is_long else None
        if plain is not None and plain.lastindex == ROOT:
            return put_together(plain, self.parts)
        spelled = reference if plain is not None else respell(reference)
        if spelled is None or len(spelled) > longest:
            return spelled
        if len(self._base) > longest:
            return self._base  # the result would be about as long
        if _has_invalid_host(spelled):
            return None
        room.parser_bytes_left -= len(self._base) + len(spelled)
        return self(spelled)


def _has_invalid_host(reference: str) -> bool:
    """Return whether a reference has an invalid host name that would be slow to parse."""
    found = _find_host(_without_breaks("", reference).lstrip(_STRIPPED))
    if found is None or len(found[1]) <= _LABEL_MAX:
        return False
    host = found[1].rpartition("@")[2]
    return len(host) > _HOST_MAX or (not host.isascii() and max(map(len, _labels_of(host))) > _LABEL_MAX)


@lru_cache(_ORIGINS_REMEMBERED)
def _canonical_origin(written: str) -> str | None:
    try:
        return _parsed(written)[:-1]
    except UrlError:
        return None


def host_of(canonical: str) -> str:
    """Return the host of a canonical URL, the unit of queue and delay, without brackets or a final dot."""
    host = _host_and_port(canonical)
    if host[0] == "[":
        return host[1 : host.index("]")]
    host = host.partition(":")[0]
    return host[:-1] if host[-1] == "." and len(host) > 1 else host


def authority_of(canonical: str) -> str:
    """Return scheme, host and port of a canonical URL, such as `http://[::1]:8080`: the unit of robots rules."""
    return canonical[: canonical.index("/")] + "//" + _host_and_port(canonical)


def _host_and_port(canonical: str) -> str:
    start = 7 if canonical[4] == ":" else 8
    netloc = canonical[start : canonical.index("/", start)]
    # An earlier version queued URLs with user and password; an @ inside them is escaped.
    return netloc.rpartition("@")[2] if "@" in netloc else netloc
