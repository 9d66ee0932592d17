"""Answers whose length, packing, framing or first line is odd, and the body that browsers read of them.

Each row has the bytes that the server sends, whether it then closes the connection, the right status and body, and
their source. The body is a page and a robots.txt at once.
"""

from __future__ import annotations

import gzip
import zlib
from typing import NamedTuple

import brotli  # type: ignore[import-untyped]
from backports import zstd

HTML = (
    b"<html><body>\nUser-agent: *\nDisallow: /no\n\n"
    + b"<p>some text of a page</p>" * 20
    + b'<a href="/next">next</a></body></html>'
)
_CODED = b"Content-Encoding: gzip\r\n"
_OK = b"HTTP/1.1 200 OK\r\n"
_GZIP = gzip.compress(HTML)


class Row(NamedTuple):
    """An answer."""

    name: str
    sent: bytes
    source: str
    body: bytes = HTML
    status: int = 200
    closes: bool = True


def _told(length: bytes, body: bytes = HTML, more: bytes = b"") -> bytes:
    return _OK + more + b"Content-Length:" + length + b"\r\n\r\n" + body


def _packed(name: bytes, body: bytes, *, length: int | None = None, head: bytes = _OK) -> bytes:
    told = len(body) if length is None else length
    return head + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (name, told, body)


def _chunked(coding: bytes, *chunks: bytes, end: bytes = b"0\r\n\r\n", more: bytes = b"") -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return _OK + more + b"Transfer-Encoding: " + coding + b"\r\n\r\n" + framed + end


def _framed(chunks: bytes) -> bytes:
    return _chunked(b"chunked", end=chunks)


def _line(line: bytes, end: bytes = b"\r\n") -> bytes:
    return line + end + b"Content-Type: text/html" + end + b"Content-Length: %d" % len(HTML) + end + end + HTML


_FETCH_LENGTH = "Fetch 3.1, extract a length: a value that is no number is none; RFC 9112 6.3: until the end"
_GZIP_LENGTH = "RFC 1952: the end and checksum are in the stream; Chromium, ShouldFixMismatchedContentLength"
_PLAIN = "Chromium, GzipSourceStream::ShouldFallbackToPlain; Firefox shows the text"
_STATUS = "RFC 9112 4; Chromium, HttpResponseHeaders::ParseStatusLine"
_SLOP = "RFC 9112 2.2; Chromium, HttpUtil::LocateStartOfStatusLine"
_LINES = "RFC 9112 2.2: a line feed alone ends a line"
_CODING = "RFC 9112 6.1 and 7.2: the last coding frames, the others are undone behind it"
_CHUNKS = "RFC 9112 7.1: extensions and blanks are ignored"
_LAST_CHUNK = "RFC 9112 8: a body is incomplete if the zero-sized chunk has not been received"
_N = len(HTML)

LENGTHS = (
    Row("empty length", _told(b""), _FETCH_LENGTH),
    Row("blank length", _told(b" \t "), _FETCH_LENGTH),
    Row("length with NUL", _told(b" %d\0" % _N), f"{_FETCH_LENGTH}; heritrix3#449"),
    Row("length with NUL before", _told(b"\0%d" % _N), _FETCH_LENGTH),
    Row("length in words", _told(b" many"), _FETCH_LENGTH),
    Row("length and a unit", _told(b" %d bytes" % _N), _FETCH_LENGTH),
    Row("negative length", _told(b" -1"), _FETCH_LENGTH),
    Row("length with a sign", _told(b" +%d" % _N), _FETCH_LENGTH),
    Row("hexadecimal length", _told(b" 0x10"), _FETCH_LENGTH),
    Row("fraction", _told(b" 1.5"), _FETCH_LENGTH),
    Row("length beyond numbers", _told(b" " + b"9" * 5000), f"{_FETCH_LENGTH}; what does not come is lost"),
    Row("list of one length", _told(b" %d, %d" % (_N, _N)), "RFC 9110 8.6: equal values are one", closes=False),
    Row("list of lengths", _told(b" 4, %d" % _N), "Fetch 3.1: values that differ; Heritrix reads on"),
    Row("other length twice", _told(b" 4", more=b"Content-Length: %d\r\n" % _N), "Fetch 3.1: values that differ"),
    Row("length with a comment", _told(b" %d (about)" % _N), _FETCH_LENGTH),
    Row("length twice, one empty", _told(b"", more=b"Content-Length: %d\r\n" % _N), _FETCH_LENGTH),
)  # fmt: skip

PACKINGS = (
    Row("gzip with the length of the text", _packed(b"gzip", _GZIP, length=_N), _GZIP_LENGTH),
    Row("gzip with any length", _packed(b"gzip", _GZIP, length=10 * _N), _GZIP_LENGTH),
    Row("x-gzip with the length of the text", _packed(b"x-gzip", _GZIP, length=_N), _GZIP_LENGTH),
    Row("deflate with the length of the text", _packed(b"deflate", zlib.compress(HTML), length=_N), _GZIP_LENGTH),
    Row("raw deflate with that length", _packed(b"deflate", zlib.compress(HTML, wbits=-15), length=_N), _GZIP_LENGTH),
    Row("br with the length of the text", _packed(b"br", brotli.compress(HTML), length=_N), _GZIP_LENGTH),
    Row("zstd with the length of the text", _packed(b"zstd", zstd.compress(HTML), length=_N), _GZIP_LENGTH),
    Row("gzip twice", _packed(b"gzip, gzip", gzip.compress(_GZIP), length=_N), _GZIP_LENGTH),
    Row("gzip without the last chunk", _chunked(b"chunked", _GZIP, end=b"", more=_CODED), _GZIP_LENGTH),
    Row("gzip of two members", _packed(b"gzip", gzip.compress(HTML[:50]) + gzip.compress(HTML[50:])), "RFC 1952 2.2"),
    Row("gzip and zeros behind it", _packed(b"gzip", _GZIP + bytes(64)), "RFC 1952; gzip pads with zeros"),
    Row("gzip and junk behind it", _packed(b"gzip", _GZIP + b"\n<!-- cached -->"), "Chromium ignores what follows"),
    Row("gzip by name alone", _packed(b"gzip", HTML), _PLAIN),
    Row("x-gzip by name alone", _packed(b"x-gzip", HTML), _PLAIN),
    Row("deflate by name alone", _packed(b"deflate", HTML), _PLAIN),
    Row("br by name alone", _packed(b"br", HTML), _PLAIN),
    Row("zstd by name alone", _packed(b"zstd", HTML), _PLAIN),
    Row("gzip by name twice, packed once", _packed(b"gzip, gzip", _GZIP), _PLAIN),
    Row("gzip by two headers, packed once", _packed(b"gzip", _GZIP, head=_OK + b"Content-Encoding: gzip\r\n"), _PLAIN),
    Row("identity", _packed(b"identity", HTML), "RFC 9110 8.4.1: reserved, no change"),
    Row("none and utf-8", _packed(b"none, UTF-8", HTML), "Chromium: an unknown coding leaves the body as it is"),
    Row("empty coding", _packed(b"", HTML), "RFC 9110 5.6.1: empty elements of a list are none"),
    Row("empty elements", _packed(b", gzip ,", _GZIP), "RFC 9110 5.6.1"),
    Row("capitals", _packed(b"GZip", _GZIP), "RFC 9110 8.4.1: case-insensitive"),
    Row("gzip with a parameter", _packed(b"gzip;q=1.0", _GZIP), "RFC 9110 8.4.1: a token; lenient, by its first bytes"),
    Row("gzip in quotes", _packed(b'"gzip"', _GZIP), "lenient, by its first bytes"),
    Row("type of gzip", _packed(b"application/gzip", _GZIP), "lenient, by its first bytes"),
    Row("coding that is no name", _packed(b"\xff", HTML), "Chromium: an unknown coding leaves the body as it is"),
    Row("gzip without checksum", _packed(b"gzip", _GZIP[:-8]), "Chromium ignores what follows"),
    Row("gzip as deflate", _packed(b"deflate", _GZIP), "Firefox, nsHTTPCompressConv: by its first bytes"),
    Row("deflate as gzip", _packed(b"gzip", zlib.compress(HTML)), "libcurl and Firefox: by its first bytes"),
)  # fmt: skip

FRAMINGS = (
    Row("gzip, chunked", _chunked(b"gzip, chunked", _GZIP[:40], _GZIP[40:]), _CODING, closes=False),
    Row("deflate, chunked", _chunked(b"deflate, chunked", zlib.compress(HTML)), _CODING, closes=False),
    Row("gzip and chunked in two lines", _chunked(b"gzip\r\nTransfer-Encoding: chunked", _GZIP), _CODING),
    Row("gzip alone", _OK + b"Transfer-Encoding: gzip\r\n\r\n" + _GZIP, _CODING),
    Row("identity transfer", _OK + b"Transfer-Encoding: identity\r\n\r\n" + HTML, "RFC 2616 3.6.2"),
    Row("chunked twice by name", _chunked(b"chunked, chunked", HTML), "Chromium: one chunked"),
    Row("quoted chunked", _chunked(b"Chunked ;q=1", HTML), "RFC 9112 7: parameters"),
    Row("unknown transfer coding", _OK + b"Transfer-Encoding: none\r\n\r\n" + HTML, "Chromium: no chunked is no chunk"),
    Row("chunk sizes with blanks", _framed(b"%x \t\r\n%b\r\n0 \r\n\r\n" % (_N, HTML)), _CHUNKS),
    Row("chunk sizes with zeros", _framed(b"%020x\r\n%b\r\n00\r\n\r\n" % (_N, HTML)), _CHUNKS),
    Row("chunk extensions", _framed(b'%x;a="b;c"\r\n%b\r\n0\r\n\r\n' % (_N, HTML)), _CHUNKS),
    Row("chunks with line feeds", _framed(b"%x\n%b\n0\n\n" % (_N, HTML)), _LINES),
    Row("last chunk without its blank line", _framed(b"%x\r\n%b\r\n0\r\n" % (_N, HTML)), _LAST_CHUNK),
    Row("last chunk without its line end", _framed(b"%x\r\n%b\r\n0" % (_N, HTML)), _LAST_CHUNK),
    Row("trailers", _framed(b"%x\r\n%b\r\n0\r\nX-One: 1\r\nno colon\r\n\r\n" % (_N, HTML)), "RFC 9112 7.1.2"),
    Row("length and chunked", _chunked(b"chunked", HTML, more=b"Content-Length: 9\r\n"), "RFC 9112 6.3", closes=False),
)  # fmt: skip

HEADS = (
    Row("no reason", _line(b"HTTP/1.1 200"), _STATUS),
    Row("blanks in the status line", _line(b"HTTP/1.1   200   OK"), _STATUS),
    Row("tabs in the status line", _line(b"HTTP/1.1\t200\tOK"), _STATUS),
    Row("reason next to the status", _line(b"HTTP/1.1 200OK"), _STATUS),
    Row("small letters", _line(b"http/1.1 200 ok"), _STATUS),
    Row("no version", _line(b"HTTP 200 OK"), _STATUS),
    Row("other version", _line(b"HTTP/1.2 200 OK"), _STATUS),
    Row("later version", _line(b"HTTP/2.0 200 OK"), _STATUS),
    Row("half a version", _line(b"HTTP/1 200 OK"), _STATUS),
    Row("ICY", _line(b"ICY 200 OK"), "Firefox, nsHttpTransaction::ParseLineSegment; SHOUTcast"),
    Row("no status", _line(b"HTTP/1.1 OK"), "Chromium: 200 is assumed"),
    Row("status with a fraction", _line(b"HTTP/1.1 404.0 Not Found"), _STATUS, status=404),
    Row("status beyond 599", _line(b"HTTP/1.1 999 Denied"), "RFC 9110 15: any three digits", status=999),
    Row("Latin-1 in the reason", _line(b"HTTP/1.1 404 Nicht gef\xfcnden"), "RFC 9112 4: obs-text", status=404),
    Row("NUL in the reason", _line(b"HTTP/1.1 200 O\0K"), _STATUS),
    Row("line ends before", b"\r\n\r\n" + _line(b"HTTP/1.1 200 OK"), _SLOP),
    Row("junk before", b"\xef\xbb\xbf" + _line(b"HTTP/1.1 200 OK"), _SLOP),
    Row("line feeds alone", _line(b"HTTP/1.1 200 OK", b"\n"), _LINES),
    Row("header without a colon", _line(b"HTTP/1.1 200 OK\r\nno colon here"), "Chromium and Firefox skip it"),
    Row("blank before the colon", _line(b"HTTP/1.1 200 OK\r\nX-Blank : 1"), "RFC 9112 5.1: removed from an answer"),
    Row("header without a name", _line(b"HTTP/1.1 200 OK\r\n: value"), "Chromium skips it"),
    Row("header with NUL", _line(b"HTTP/1.1 200 OK\r\nX-Nul: a\0b"), "RFC 9110 5.5: NUL becomes a blank"),
    Row("NUL in a name", _line(b"HTTP/1.1 200 OK\r\nX-N\0ul: a"), "Firefox skips it"),
    Row("first line folded", _line(b"HTTP/1.1 200 OK\r\n X-Fold: 1"), "RFC 9112 2.2: such a line is ignored"),
    Row("carriage returns inside", _line(b"HTTP/1.1 200 OK\r\nX-Cr: a\rb"), "RFC 9112 2.2: a bare CR becomes a blank"),
    Row("no head", HTML, "HTTP/0.9; Firefox on every port that is the default"),
    Row("doubled head", _OK + b"Content-Type: text/html\r\n" + _line(b"HTTP/1.1 200 OK"), "RFC 9112 5"),
)  # fmt: skip

ROWS = (*LENGTHS, *PACKINGS, *FRAMINGS, *HEADS)
