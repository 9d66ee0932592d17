"""The canonical URL: the string that is fetched, and from which key, host and PLD are computed.

It is the WHATWG serialisation of an http or https URL without its fragment; the order of the query is kept. It is
therefore ASCII. Its host is lower-case (an A-label, or an IP literal in its shortest form: `0x7f.1` is `127.0.0.1`). It
always has a path and never has a default port.

Some parts are kept as written, because the string is what will be sent: user and password, the case of percent escapes,
an empty query (`/a?`), doubled slashes, and the dot that ends an absolute DNS name (`example.com.`). The last two give
further URLs of the same host: `host_of` drops that dot, so that both spellings share one queue and one delay.

Changes here change the keys of existing crawls: raise CANONICAL_VERSION with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import ada_url

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CANONICAL_VERSION = 1
"""Part of the crawl record; a node with another version does not start."""

URL_MAX_BYTES = 8_192
"""What common servers accept as a request line; longer URLs are almost always traps."""

_WEB = ("http://", "https://")

_WHY = {
    "scheme": "it must begin with http:// or https://",
    "empty-host": "it names no host",
    "syntax": "its host or port cannot be read",
    "too-long": "it is longer than a URL may be here",
}

_HAS_WEB_SCHEME = re.compile(r"[\x00-\x20]*https?:", re.IGNORECASE).match
_HAS_NO_HOST = re.compile(r"[\x00-\x20]*https?:[/\\]*+(?:[^/\\?#]*@)?(?::\d*)?(?:[/\\?#\s]|$)", re.IGNORECASE).match

# References that every WHATWG parser leaves unchanged: dot segments only at the start, nothing that needs an escape.
# They can be joined as strings, which saves most of the time that the general parser takes for a page's links. A
# segment may not begin with % either: %2e is a dot. Repetitions are possessive, so that a mismatch fails at once.
_SEGMENT = r"[A-Za-z0-9_~!$&'()*+,;=@-][A-Za-z0-9_.~!$%&'()*+,;=@:-]*+"
_FIRST_SEGMENT = r"[A-Za-z0-9_~!$&'()*+,;=@-][A-Za-z0-9_.~!$%&'()*+,;=@-]*+"  # a colon would end a scheme
_QUERY = r"\?[A-Za-z0-9_.~!$&()*+,;=:@/?%\[\]|-]*+"
_FROM_ROOT = rf"/(?:{_SEGMENT}/?+)*+(?:{_QUERY})?+"
_FROM_DIRECTORY = rf"{_FIRST_SEGMENT}(?:/(?:{_SEGMENT}/?+)*+)?+(?:{_QUERY})?+"
# DNS knows no name longer than 253 characters. The limit is lower because most names in the cache should be short.
_ORIGIN = r"(?:[hH][tT][tT][pP][sS]?+:)?+//[A-Za-z0-9.:-]{1,100}+"
_match_plain = re.compile(
    rf"(?:({_FROM_ROOT})|({_ORIGIN})({_FROM_ROOT})?+|({_FROM_DIRECTORY})"
    rf"|((?:\.\.?+/)++)((?:{_FROM_DIRECTORY}|{_QUERY})?+)|({_QUERY}))(?:#[\s\S]*+)?+"
).fullmatch
# Groups of that pattern, by the last one that took part in a match.
_ROOT, _ORIGIN_ALONE, _ORIGIN_PATH, _DIRECTORY, _DOTS_PATH = 1, 2, 3, 4, 6
# Converting a label to ASCII takes quadratic time, so names and labels too long for DNS are not converted.
_HOST_MAX, _LABEL_MAX = 253, 63
_find_host = re.compile(r"(?:[hH][tT][tT][pP][sS]?+:[/\\]*+|[/\\]{2,}+)([^/\\?#]*+)").match
_labels_of = re.compile("[.\u3002\uff0e\uff61]").split
_STRIPPED = "".join(map(chr, range(0x21)))
_without_breaks = re.compile(r"[\t\n\r]++").sub
_ORIGINS_REMEMBERED = 1 << 16


class UrlError(BigcrawlError, ValueError):
    """A string is not a URL that can be crawled. `reason` is scheme, syntax, empty-host or too-long."""

    def __init__(self, url: str, reason: str) -> None:
        shown = url if len(url) <= 200 else f"{url[:200]}... ({len(url)} characters)"
        super().__init__(f"{shown!r} cannot be crawled: {_WHY[reason]}")
        self.url = url
        self.reason = reason


def canonicalize(url: str, url_max_bytes: int = URL_MAX_BYTES) -> str:
    """Return the canonical form of an absolute URL; idempotent.

    Args:
        url: any string. Surrounding white space, and tabs and line ends inside, are ignored.
        url_max_bytes: the longest canonical URL that is accepted.

    Raises:
        UrlError: with reason `scheme`, `syntax`, `empty-host` or `too-long`.

    Cost: 0.8 us for a plain URL of a host that was met before, 3 us for another.
    """
    canonical = _of_plain(url) or _parsed(url)
    if len(canonical) > url_max_bytes:
        raise UrlError(url, "too-long")
    return canonical


def _of_plain(url: str) -> str | None:
    """Return the canonical form of a URL whose path and query stay as they are; None for all others."""
    plain = _match_plain(url)
    if plain is None or plain.lastindex != _ORIGIN_PATH or url[0] == "/":
        return None
    origin = _canonical_origin(plain[_ORIGIN_ALONE])
    return origin and origin + plain[_ORIGIN_PATH]


def _parsed(url: str) -> str:
    """Return the canonical form of any URL, by the general parser."""
    try:
        # Joining with an empty reference parses the URL and drops its fragment in one call.
        canonical = ada_url.join_url(url, "")
    except ValueError:
        raise UrlError(url, _refused_because(url)) from None
    if not canonical.startswith(_WEB):
        raise UrlError(url, "scheme")
    return canonical


def _refused_because(url: str) -> str:
    if not _HAS_WEB_SCHEME(url):
        return "scheme"
    return "empty-host" if _HAS_NO_HOST(url) else "syntax"


def join(base: str, reference: str) -> str | None:
    """Return the canonical URL of a reference on the page `base`, or None if it cannot be crawled.

    None covers other schemes and hosts that cannot be read. The length is not checked: the caller compares `len(url)`
    with the setting, and counts.

    Cost: one call into ada, 2 µs. For many references of one page use `Joiner`.
    """
    try:
        joined = ada_url.join_url(base, reference)
    except ValueError:
        return None
    if not joined.startswith(_WEB):
        return None
    if "#" in joined:
        return joined[: joined.index("#")]
    return joined


@dataclass(slots=True)
class LinkRoom:
    """How many bytes a page's URLs may have, together and each. Counts what was left out."""

    url_bytes_max: int = URL_MAX_BYTES
    bytes_left: int = 1 << 62
    parser_bytes_left: int = 1 << 62
    """What the general parser may still read; it reads the whole base again with each reference."""

    too_long: int = 0
    is_used_up: bool = False


class Joiner:
    """Joins the references of one page with its base URL; gives the same results as `join`, but faster.

    Cost: 0.4 µs for a plain path such as `/a/b.html?c=d`, 0.7 to 1.3 µs if a host, `../` or blanks precede it,
    otherwise that of `join`.
    """

    __slots__ = ("_base", "_directory", "_origin", "_path")

    def __init__(self, base: str) -> None:
        """Set the base URL, canonical or not.

        Raises:
            UrlError: the base is not an http or https URL.
        """
        self._base = canonicalize(base, url_max_bytes=max(len(base) * 12, URL_MAX_BYTES))
        self._origin = self._base[: self._base.index("/", 8)]
        self._path = self._base.partition("?")[0]
        self._directory = self._path[: self._path.rindex("/") + 1]

    def __repr__(self) -> str:
        return f"Joiner({self._base!r})"

    def __call__(self, reference: str) -> str | None:
        """Return the canonical URL, or None as `join` does."""
        plain = _match_plain(reference) or _match_plain(reference.strip(_STRIPPED))
        return self._put_together(plain) if plain else join(self._base, reference)

    def join_all(
        self, references: Iterable[str], respell: Callable[[str], str | None], room: LinkRoom | None = None
    ) -> list[str]:
        """Return the canonical URLs of many references, in order and without repeats, skipping invalid ones.

        Args:
            references: as written on the page.
            respell: called with a reference that is not plain, for instance with blanks around it or non-ASCII
                characters. Returns what to join in its place, or None to skip it.
            room: for the URLs; counts what is left out.
        """
        room = room or LinkRoom()
        longest, room_left = room.url_bytes_max, room.bytes_left
        origin = self._origin
        urls: dict[str, None] = {}
        for reference in references:
            if room_left < 0:
                room.is_used_up = True
                break
            plain = _match_plain(reference)
            if plain is not None and plain.lastindex == _ROOT:  # most are
                url: str | None = origin + plain[_ROOT]
            else:
                url = self._other(reference, plain, respell, room)
                if room.parser_bytes_left < 0:
                    room.is_used_up = True
                    break
            if url is None:
                continue
            room_left -= len(url)
            if len(url) > longest:
                room.too_long += 1
            else:
                urls[url] = None
        room.bytes_left = room_left
        return list(urls)

    def _other(
        self, reference: str, plain: re.Match[str] | None, respell: Callable[[str], str | None], room: LinkRoom
    ) -> str | None:
        """Return the URL of a reference that does not start at the root. Skips joining what can only be too long."""
        longest = room.url_bytes_max
        if plain is not None and len(reference) <= longest and len(self._base) <= longest:
            return self._put_together(plain)
        spelled = reference if plain is not None else respell(reference)
        if spelled is None or len(spelled) > longest:
            return spelled
        if len(self._base) > longest:
            return self._base  # the result would be about as long
        if _is_no_name(spelled):
            return None
        room.parser_bytes_left -= len(self._base) + len(spelled)
        return self(spelled)

    def _put_together(self, plain: re.Match[str]) -> str | None:
        """Return the URL of a reference that `_match_plain` has matched; None if its host is invalid."""
        kind = plain.lastindex
        if kind == _ROOT:
            return self._origin + plain[_ROOT]
        if kind == _DIRECTORY:
            return self._directory + plain[_DIRECTORY]
        if kind in (_ORIGIN_ALONE, _ORIGIN_PATH):
            written = plain[_ORIGIN_ALONE]
            origin = _canonical_origin(self._base[: self._base.index("/")] + written if written[0] == "/" else written)
            return origin and origin + (plain[_ORIGIN_PATH] or "/")
        if kind == _DOTS_PATH:
            return self._above(plain[_DOTS_PATH - 1].count("../")) + plain[_DOTS_PATH]
        return self._path + plain[kind or 0]

    def _above(self, levels: int) -> str:
        """Return the directory that many levels up, at most the root."""
        directory, root_bytes = self._directory, len(self._origin) + 1
        for _ in range(levels):
            if len(directory) == root_bytes:
                break
            directory = directory[: directory.rindex("/", 0, -1) + 1]
        return directory


def _is_no_name(reference: str) -> bool:
    """Whether a reference has a host that cannot be a name and would be costly to parse."""
    found = _find_host(_without_breaks("", reference).lstrip(_STRIPPED))
    if found is None or len(found[1]) <= _LABEL_MAX:
        return False
    host = found[1].rpartition("@")[2]
    return len(host) > _HOST_MAX or (not host.isascii() and max(map(len, _labels_of(host))) > _LABEL_MAX)


@lru_cache(_ORIGINS_REMEMBERED)
def _canonical_origin(written: str) -> str | None:
    """Return scheme, host and port as in a canonical URL, or None if the host is invalid."""
    try:
        return _parsed(written)[:-1]
    except UrlError:
        return None


def host_of(canonical: str) -> str:
    """Return the host of a canonical URL: the unit of queue and delay.

    An IPv6 literal has no brackets. User, password and port are left out, and so is the single dot that may end a DNS
    name.
    """
    host = _host_and_port(canonical)
    if host[0] == "[":
        return host[1 : host.index("]")]
    host = host.partition(":")[0]
    return host[:-1] if host[-1] == "." and len(host) > 1 else host


def authority_of(canonical: str) -> str:
    """Return scheme, host and port of a canonical URL: the unit of robots rules.

    For example `https://example.com` or `http://[::1]:8080`: with the port only if it is not the scheme's default,
    without user and password, and without a final slash. A dot that ends the name stays, since this is the server that
    will be asked.
    """
    return canonical[: canonical.index("/")] + "//" + _host_and_port(canonical)


def _host_and_port(canonical: str) -> str:
    start = 7 if canonical[4] == ":" else 8
    netloc = canonical[start : canonical.index("/", start)]
    # In a canonical URL, an @ inside user or password is escaped.
    return netloc.rpartition("@")[2] if "@" in netloc else netloc
