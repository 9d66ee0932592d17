"""The search key of a URL in a CDXJ file: SURT, the sort-friendly URI reordering transform.

``https://www.Example.com:443/A/?b=2&a=1`` has the key ``com,example)/a?a=1&b=2``. Replay computes the same key, so the
rules are exactly those of the Wayback Machine; tests compare them with the package ``surt``. Exceptions: a host is
never looked up in DNS, URLs that are escaped more than `_ROUNDS` times stay escaped, and only the last
`_SESSIONS_LOOKED_AT` sessions of a path are considered.
"""

from __future__ import annotations

import re
from contextlib import suppress
from socket import inet_aton, inet_ntoa
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

# Most URLs: nothing to unescape, no user, port, dot segment or doubled slash.
_match_plain = re.compile(
    rb"https?://([a-z][a-z0-9-]*+(?:\.[a-z0-9-]++)*+)"
    rb"(/(?:[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9_.~!$&'()*+,;=:@-]*+/?+)*+)"
    rb"(?:\?([A-Za-z0-9_.~!$&'()*+,;=:@/?-]*+))?+"
).fullmatch
_split = re.compile(
    rb"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL
).fullmatch
_has_scheme = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*:").match
_repeated_scheme = re.compile(rb"(https?://)+")
_www = re.compile(rb"www\d*\.").match
_nested_escape = re.compile(rb"%(?:25)+")
_match_address = re.compile(rb"[0-9]{1,20}|(?:[1-9][0-9]{0,10}|0[0-7]{0,11})(?:\.[0-9]{1,11}){1,3}").fullmatch
_HOST_BYTES_MAX: Final = 1024  # converting a longer one would take quadratic time
_SAFE: Final = rb"""!"$&'()*+,-./:;<=>?@[\]^_`{|}~"""
_ROUNDS: Final = 64  # genuine URLs need two
_DEFAULT_PORTS: Final = {b"http": b"80", b"https": b"443"}
# A directory that is a session of ASP.NET.
_PATH_SESSIONS: Final = tuple(
    re.compile(pattern).finditer
    for pattern in (
        rb"(?<=/)\((?:[a-z]\([0-9a-z]{24}\))++\)/",
        rb"(?<=/)\([0-9a-z]{24}\)/",
    )
)
_is_page = re.compile(rb"[^?]+\.aspx").match
_SESSIONS_LOOKED_AT: Final = 64  # each may cost a pass over the rest of the path
# A quick test for a session, and the query split at one.
_has_session = re.compile(rb"sid=|sessionid|cfid=", re.IGNORECASE).search
_QUERY_SESSIONS: Final = tuple(
    re.compile(rb"(.*)(?:" + pattern + rb")(?:&(.*))?", re.IGNORECASE)
    for pattern in (
        rb"jsessionid=[0-9a-zA-Z]{32}",
        rb"phpsessid=[0-9a-zA-Z]{32}",
        rb"sid=[0-9a-zA-Z]{32}",
        rb"aspsessionid[a-zA-Z]{8}=[a-zA-Z]{24}",
        rb"cfid=(?:(?!cfid=[^&])[^&])++&cftoken=[^&]++",  # stops at the next one: linear
    )
)


def search_key(url: bytes) -> bytes:
    """Return the key, ASCII and never empty, of a URL of any bytes. Takes at most 50 ms for 64 KiB."""
    plain = _match_plain(url)
    if plain is None:
        return _general_key(url)
    host, path, query = plain.groups()
    return _reverse_labels(host) + b")" + _folded_path(path) + _folded_query(query)


def _general_key(url: bytes) -> bytes:
    url = re.sub(rb"[\n\r\t]", b"", url.strip())
    if not url:
        return b"-"
    if not _has_scheme(url):
        url = b"http://" + url
    repeated = _repeated_scheme.match(url)
    if repeated is not None:
        url = repeated[1] + url[repeated.end() :]
    parts = _split(url)
    assert parts is not None
    scheme, authority, path, query = (part or b"" for part in parts.groups())
    host, port = _host_and_port(authority)
    if scheme.startswith(b"http") and not host and path:
        host, _, path = path.lstrip(b"/").partition(b"/")  # http:////example.com/
        path = b"/" + path
    host = _cleaned_host(host)
    path = _unescape_fully(path)
    if host:
        path = _without_dots(path)
    path = _folded_path(quote_from_bytes(path, safe=_SAFE).encode())
    query = quote_from_bytes(_unescape_fully(query), safe=_SAFE).encode()
    front = _reverse_labels(host) if host else scheme + b":"
    if host:
        front += (b":" + port if port and port != _DEFAULT_PORTS.get(scheme.lower()) else b"") + b")"
    folded = _folded_query(query)
    return front + (path or (b"/" if folded else b"")) + folded


def _host_and_port(authority: bytes) -> tuple[bytes, bytes]:
    host = authority.rpartition(b"@")[2]
    host, port = (host, b"") if host.endswith(b"]") else _split_port(host)
    return host.strip(b"[]").lower(), port.lstrip(b"0")


def _split_port(host: bytes) -> tuple[bytes, bytes]:
    name, colon, port = host.rpartition(b":")
    if not colon:
        return host, b""
    return (name, port) if port.isdigit() else (name if not port else host, b"")


def _cleaned_host(host: bytes) -> bytes:
    host = _unescape_fully(host)
    if not host.isascii() and len(host) <= _HOST_BYTES_MAX:
        with suppress(ValueError):
            host = host.decode("utf-8", "ignore").encode("idna")
    host = host.replace(b"..", b".").strip(b".")
    return _canonical_address(host) or quote_from_bytes(host.lower(), safe=_SAFE).encode().lower()


def _canonical_address(host: bytes) -> bytes:
    if not _match_address(host):
        return b""
    if host.isdigit():
        return inet_ntoa((int(host) & 0xFFFFFFFF).to_bytes(4, "big")).encode()
    try:
        return inet_ntoa(inet_aton(host.decode())).encode()
    except OSError:
        return b""


def _unescape_fully(text: bytes) -> bytes:
    if b"%" not in text:
        return text
    for _ in range(_ROUNDS):
        # Undo repeated escapes of a percent sign in one step.
        plain = unquote_to_bytes(_nested_escape.sub(b"%25", text))
        if plain == text:
            break
        text = plain
    return text


def _without_dots(path: bytes) -> bytes:
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b"..":
            if kept:
                kept.pop()
            else:
                kept.append(segment)
        elif segment != b".":
            kept.append(segment)
    if not kept:
        return b"/"
    return b"/" + b"".join([segment + b"/" for segment in kept[:-1] if segment]) + kept[-1]


def _folded_path(path: bytes) -> bytes:
    path = path.lower()
    if b".aspx" in path:
        for sessions in _PATH_SESSIONS:
            for found in reversed(list(sessions(path))[-_SESSIONS_LOOKED_AT:]):
                if _is_page(path, found.end()):
                    path = path[: found.start()] + path[found.end() :]
                    break
    return path[:-1] if len(path) > 1 and path.endswith(b"/") else path


def _folded_query(query: bytes | None) -> bytes:
    if not query:
        return b""
    if _has_session(query):
        for pattern in _QUERY_SESSIONS:
            found = pattern.fullmatch(query)
            if found:
                query = found[1] + (found[2] or b"")
    query = query.lower()
    if b"&" in query:
        # Lists sort a name without a value before the same name with one.
        pairs = sorted([argument.split(b"=", 1) for argument in query.split(b"&")])
        query = b"&".join([b"=".join(pair) for pair in pairs])
    return b"?" + query if query else b""


def _reverse_labels(host: bytes) -> bytes:
    www = _www(host)
    if www:
        host = host[www.end() :]
    return b",".join(host.split(b".")[::-1])
