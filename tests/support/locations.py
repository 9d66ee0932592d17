"""Locations as servers send them, and the URLs that browsers go to; all readers of headers are held to this table.

Each row has the URL of the answer, the bytes of the header, the right URL (None: none that can be crawled) and its
source: a section of the WHATWG URL Standard, if it names no other.
"""

from __future__ import annotations

from typing import NamedTuple

PAGE = "http://h.example/dir/page?old=1"


class Row(NamedTuple):
    """A redirect."""

    name: str
    value: bytes
    url: str | None
    source: str
    base: str = PAGE


_ORIGIN = "http://h.example"
_ESCAPED = "Fetch 4.4 location URL: bytes; Chromium, EscapeNonASCII in HttpResponseHeaders::IsRedirect"
_SEGMENTS = "4.4 path state: empty segments are segments"
_PATH_SET = "1.3 path percent-encode set"
_QUERY_SET = "1.3 special-query percent-encode set"
_DOTS = "4.4 path state: single-dot and double-dot segments"
_SPECIAL = "4.4 special relative or authority state: a backslash is a slash"
_TRIMMED = "4.4 basic URL parser, steps 1 to 3"
_RELATIVE = "4.4 relative state"
_SLASHES = "4.4 special authority slashes state"
_HOST = "3.5 host parser: percent-decode, UTF-8, domain to ASCII"
_ARCHIVE = f"{_ORIGIN}/web/http://x.test/a//b/page"

ROWS = (
    Row("below double slash", b"next?x=1", f"{_ORIGIN}/web/http://x.test/a//b/next?x=1", _SEGMENTS, _ARCHIVE),
    Row("above double slash", b"../up", f"{_ORIGIN}/web/http://x.test/a//up", _SEGMENTS, _ARCHIVE),
    Row("double slashes", b"dir//sub//end", f"{_ORIGIN}/dir/dir//sub//end", _SEGMENTS),
    Row("slashes at the end", b"/a///", f"{_ORIGIN}/a///", _SEGMENTS),
    Row("bar and brackets in a query", b"/p?a=x|y[1]", f"{_ORIGIN}/p?a=x|y[1]", _QUERY_SET),
    Row("bar and brackets in a path", b"/p|[1]", f"{_ORIGIN}/p|[1]", _PATH_SET),
    Row("caret and braces", b"/a^b{c}?a^b{c}", f"{_ORIGIN}/a%5Eb%7Bc%7D?a^b{{c}}", f"{_PATH_SET}, but not in a query"),
    Row("backtick", b"/a`b?a`b", f"{_ORIGIN}/a%60b?a`b", _PATH_SET),
    Row("quotes", b"/a'b\"c?a'b\"c", f"{_ORIGIN}/a'b%22c?a%27b%22c", _QUERY_SET),
    Row("UTF-8 in a path", "/fa/خبر".encode(), f"{_ORIGIN}/fa/%D8%AE%D8%A8%D8%B1", _ESCAPED),
    Row("UTF-8 in a query", "/?q=größe".encode(), f"{_ORIGIN}/?q=gr%C3%B6%C3%9Fe", _ESCAPED),
    Row("Latin-1 in a path", b"/caf\xe9", f"{_ORIGIN}/caf%E9", _ESCAPED),
    Row("Latin-1 in a query", b"?caf\xe9", f"{_ORIGIN}/dir/page?caf%E9", _ESCAPED),
    Row("UTF-8 and Latin-1", b"/\xc3\xa9\xe9", f"{_ORIGIN}/%C3%A9%E9", _ESCAPED),
    Row("Shift_JIS", b"/\x83\x5c\x83", f"{_ORIGIN}/%83/%83", f"{_ESCAPED}; {_SPECIAL}"),
    Row("surrogate in UTF-8", b"/\xed\xa0\x80", f"{_ORIGIN}/%ED%A0%80", _ESCAPED),
    Row("UTF-8 in a host", "http://bücher.example/".encode(), "http://xn--bcher-kva.example/", _HOST),
    Row("escapes in a host", b"http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/", _HOST),
    Row("Latin-1 in a host", b"http://b\xfccher.example/", None, _HOST),
    Row("escapes as written", b"/%7Ea%c3%zz%", f"{_ORIGIN}/%7Ea%c3%zz%", "4.4 path state: a lone % is kept"),
    Row("backslash", b"\\c", f"{_ORIGIN}/c", _SPECIAL),
    Row("backslashes in a path", b"a\\b\\..\\c", f"{_ORIGIN}/dir/a/c", _SPECIAL),
    Row("backslashes before a host", b"\\\\o.example\\a", "http://o.example/a", _SPECIAL),
    Row("backslash in a query", b"/a?b\\c", f"{_ORIGIN}/a?b\\c", _QUERY_SET),
    Row("scheme-relative", b"//o.example", "http://o.example/", _RELATIVE),
    Row("too many slashes", b"///o.example/a", "http://o.example/a", "4.4 special authority ignore slashes state"),
    Row("scheme without slashes", b"http:next", f"{_ORIGIN}/dir/next", "4.4 special relative or authority state"),
    Row("other scheme without slashes", b"https:o.example", "https://o.example/", _SLASHES),
    Row("one slash behind the scheme", b"https:/o.example/a", "https://o.example/a", _SLASHES),
    Row("capitals", b"HTTP://O.Example:80/A", "http://o.example/A", "3.5 host parser; 4.4 port state"),
    Row("blanks around", b" \t/a ", f"{_ORIGIN}/a", _TRIMMED),
    Row("tab inside", b"/a\tb", f"{_ORIGIN}/ab", _TRIMMED),
    Row("blanks inside", b"/a b?c d", f"{_ORIGIN}/a%20b?c%20d", _PATH_SET),
    Row("dots", b"./a/../../../b/.", f"{_ORIGIN}/b/", _DOTS),
    Row("escaped dots", b"x/%2e%2E/b", f"{_ORIGIN}/dir/b", _DOTS),
    Row("query alone", b"?new", f"{_ORIGIN}/dir/page?new", _RELATIVE),
    Row("empty query", b"/a?", f"{_ORIGIN}/a?", "4.5 URL serializer: a query that is not null"),
    Row("fragment", b"/a?b#c?d", f"{_ORIGIN}/a?b", "4.4 fragment state; 4.5 without it"),
    Row("colon first", b"::", f"{_ORIGIN}/dir/::", "4.4 no scheme state"),
    Row("colon in a segment", b"./a:b", f"{_ORIGIN}/dir/a:b", _RELATIVE),
    Row("semicolons", b";a=1;b/..;c", f"{_ORIGIN}/dir/;a=1;b/..;c", "4.4 path state: ..;c is no double-dot segment"),
    Row("hexadecimal address", b"http://0x7f.1/", "http://127.0.0.1/", "3.5 IPv4 parser"),
    Row("other schemes", b"mailto:me@h.example", None, "is no web address"),
    Row("broken IPv6 address", b"http://[::1/", None, "3.5 host parser"),
    Row("blank in a host", b"http://a b/", None, "3.5 forbidden host code point"),
    Row("port too large", b"http://h.example:99999/", None, "4.4 port state"),
)  # fmt: skip
