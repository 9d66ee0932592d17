"""Content-Type headers and beginnings of bodies, and the media type that browsers find in them.

Each row has the values of the headers, the body, the right type and its source.
"""

from __future__ import annotations

from typing import NamedTuple

PAGE = b'<!doctype html><html><body><a href="/next">1</a></body></html>'
_LIST = "Fetch 3.1.1, extract a MIME type: the last value that can be parsed"
_PARSE = "MIME Sniffing 4.4, parse a MIME type"
_FAILS = "MIME Sniffing 4.4: failure, so the bytes count"
_UNKNOWN = "MIME Sniffing 5.1 and 7.1: an unknown type"
_SIGNATURE = "MIME Sniffing 6 and 7.1"
_TAG = "MIME Sniffing 7.1: a tag and a byte that ends it"
_OURS = "not in the standard: links were followed before"
HTML = "text/html"


class Row(NamedTuple):
    """An answer."""

    name: str
    headers: tuple[bytes, ...]
    body: bytes
    type: str
    source: str


def _told(name: str, *headers: bytes, type: str = HTML, source: str = _PARSE) -> Row:  # noqa: A002
    return Row(name, headers, PAGE, type, source)


def _untold(name: str, body: bytes, type: str = HTML, source: str = _TAG) -> Row:  # noqa: A002
    return Row(name, (), body, type, source)


TOLD = (
    _told("plain", b"text/html"),
    _told("capitals", b"Text/HTML; Charset=UTF-8"),
    _told("two semicolons", b"text/html;;charset=UTF-8"),
    _told("charset none", b"text/html; charset=none"),
    _told("empty charset", b'text/html; name="x; y.html"; charset='),
    _told("open quote", b'text/html; charset="utf-8'),
    _told("single quotes", b"text/html; charset='utf-8'"),
    _told("parameters", b'text/html;level=1 ; q="a;b"'),
    _told("blanks", b" text/html "),
    _told("blank before the semicolon", b"text/html ; charset=utf-8"),
    _told("xhtml", b"application/xhtml+xml", type="application/xhtml+xml"),
    _told("two headers", b"text/html", b"text/html; charset=utf-8", source=_LIST),
    _told("two types", b"text/plain", b"text/html", source=_LIST),
    _told("two types, html first", b"text/html", b"text/plain", type="text/plain", source=_LIST),
    _told("list", b"text/html, text/html; charset=utf-8", source=_LIST),
    _told("charset behind a comma", b"text/html,charset=utf-8", source=_LIST),
    _told("comma in quotes", b'text/html; a="b, text/plain"', source="Fetch 2.2.2, get, decode, and split"),
    _told("any type in the list", b"text/html, */*", source=_LIST),
    _told("junk in the list", b"text/html, junk", source=_LIST),
    _told("empty in the list", b"text/html,", source=_LIST),
    _told("no semicolon", b"text/html charset=utf-8", source=_FAILS),
    _told("colon", b"text/html: charset=utf-8", source=_FAILS),
    _told("no slash", b"text", source=_FAILS),
    _told("no subtype", b"text/", source=_FAILS),
    _told("three parts", b"text/html/x", source=_FAILS),
    _told("quoted type", b'"text/html"', source=_FAILS),
    _told("in brackets", b"<text/html>", source=_FAILS),
    _told("any type", b"*/*", source=_UNKNOWN),
    _told("unknown type", b"unknown/unknown", source=_UNKNOWN),
    _told("unknown application", b"application/unknown", source=_UNKNOWN),
    _told("empty", b"", source=_UNKNOWN),
    _told("text", b"text/plain", type="text/plain", source="MIME Sniffing 7: a type that is told is kept"),
    _told("binary", b"application/octet-stream", type="application/octet-stream", source="MIME Sniffing 7"),
    _told("made up", b"foo/bar+baz", type="foo/bar+baz"),
)

UNTOLD = (
    _untold("doctype", b"<!DOCTYPE html>\n<title>t</title>"),
    _untold("long doctype", b'<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN">'),
    _untold("head behind blanks", b" \r\n\t\x0c<head><title>t</title></head>"),
    _untold("html with attributes", b"<HTML lang=de>"),
    _untold("comment", b"<!-- c --><title>t</title>"),
    _untold("script", b"<script >"),
    _untold("iframe", b"<iframe src=x>"),
    _untold("heading", b"<h1>t</h1>"),
    _untold("division", b"<div class=x>"),
    _untold("font", b"<font size=1>"),
    _untold("table", b"<table>"),
    _untold("anchor", b'<A href="/x">'),
    _untold("style", b"<style>"),
    _untold("title", b"<title>t"),
    _untold("bold", b"<b>t"),
    _untold("body", b"<body bgcolor=x>"),
    _untold("break", b"<br>"),
    _untold("paragraph", b"<p>t"),
    _untold("tag that ends otherwise", b"<p\n>t", "text/plain"),
    _untold("longer name", b"<article>", "text/plain"),
    _untold("text before a tag", b"see <b>this</b>", "text/plain"),
    _untold("html further on", b"\xef\xbb\xbf<html>", source=_OURS),
    _untold("xhtml", b'<?xml version="1.0"?>\n<html xmlns="x">', source=_OURS),
    _untold("xml", b'\n<?xml version="1.0"?><rss>', "text/xml", _SIGNATURE),
    _untold("pdf", b"%PDF-1.4\n", "application/pdf", _SIGNATURE),
    _untold("postscript", b"%!PS-Adobe-3.0", "application/postscript", _SIGNATURE),
    _untold("png", b"\x89PNG\r\n\x1a\n\0", "image/png", _SIGNATURE),
    _untold("gif", b"GIF89a<p>", "image/gif", _SIGNATURE),
    _untold("jpeg", b"\xff\xd8\xff\xe0", "image/jpeg", _SIGNATURE),
    _untold("webp", b"RIFFabcdWEBPVP8 ", "image/webp", _SIGNATURE),
    _untold("ogg", b"OggS\0", "application/ogg", _SIGNATURE),
    _untold("zip", b"PK\x03\x04", "application/zip", _SIGNATURE),
    _untold("gzip", b"\x1f\x8b\x08\0", "application/x-gzip", _SIGNATURE),
    _untold("mark of UTF-16", b"\xff\xfea\0b\0", "text/plain", _SIGNATURE),
    _untold("text", b"User-agent: *", "text/plain", "MIME Sniffing 7.1: no binary data byte"),
    _untold("binary", b"abc\x01", "application/octet-stream", "MIME Sniffing 7.1: a binary data byte"),
    _untold("nothing", b"", "text/plain", "MIME Sniffing 7.1"),
)

ROWS = (*TOLD, *UNTOLD)
