"""Reads answers as a correct crawler does: content codings, and charsets as the WHATWG standard has them."""

from __future__ import annotations

import gzip
import re
import zlib
from typing import TYPE_CHECKING

import ada_url
import brotli  # type: ignore[import-untyped]
from backports import zstd

from tests.annexes.simweb.support import links_in, without_fragment

if TYPE_CHECKING:
    from bigcrawl_simweb.basics.answer import Answer

MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
# Labels that Python reads otherwise than the standard says, or not at all.
LABELS = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "klingon": "cp1252",
    "iso-8859-9": "cp1254",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "gb2312": "gb18030",
    "utf-16": "utf-8",
}


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error:
        return zlib.decompress(data, -15)


CODINGS = {
    "gzip": gzip.decompress,
    "x-gzip": gzip.decompress,
    "deflate": _inflated,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
    "identity": bytes,
}


def entity(answer: Answer) -> bytes:
    """The body without its content codings, the last of which comes off first."""
    body = answer.body
    codings = dict(answer.headers).get("Content-Encoding", "identity")
    for coding in reversed(codings.split(", ")):
        body = CODINGS[coding](body)
    return body


def text_of(answer: Answer) -> str:
    """The page's letters: a byte order mark decides, then the header, then a meta element."""
    body = entity(answer)
    for mark, codec in MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec)
    told = re.search(r"charset=([\w-]+)", dict(answer.headers).get("Content-Type", ""), re.IGNORECASE)
    meant = re.search(rb"charset=\"?([\w-]+)", body[:1024])
    label = told[1].lower() if told else meant[1].decode().lower() if meant else "iso-8859-1"
    return body.decode(LABELS.get(label, label), "replace")


def leads_in(url: str, answer: Answer) -> set[str]:
    """Canonical URLs, without fragments, of what an answer leads to; http alone."""
    headers = dict(answer.headers)
    if "Location" in headers:
        try:
            found = {without_fragment(ada_url.join_url(url, headers["Location"]))}
        except ValueError:
            return set()
        return {link for link in found if link.startswith("http:")}
    kind = headers.get("Content-Type", "text/html").lower()
    if (
        answer.status not in (200, 203)
        or not kind.startswith(("text/html", "application/xhtml+xml"))
        or not answer.body
    ):
        return set()
    return links_in(url, text_of(answer).encode())
