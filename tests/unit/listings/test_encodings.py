"""The encoding of a list: mark, header, declaration, content."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import NamedTuple

import pytest

from bigcrawl.links.detection import detected
from bigcrawl.listings import sitemaps
from bigcrawl.listings.encodings import EncodingHints

MIR = "\u043c\u0438\u0440"
CAFE = "caf\u00e9"


class Row(NamedTuple):
    name: str
    written: bytes  # the text in its bytes
    text: str
    source: str
    declared: str = ""
    told: bytes = b""


_HEADER = "RFC 7303, section 3.2: the parameter of the header is authoritative"
_MARK = "RFC 7303, section 3.3: the mark comes first"
_CONTENT = "nothing is declared: by content, as for pages"
_KNOWN = "Encoding Standard, section 4: labels"

ROWS = (
    Row("nothing", CAFE.encode(), CAFE, "XML 1.0, 4.3.3: UTF-8"),
    Row("header", MIR.encode("cp1251"), MIR, _HEADER, told=b"application/xml; charset=windows-1251"),
    Row("header and declaration", MIR.encode("cp1251"), MIR, _HEADER, "koi8-r", b"text/xml; charset=windows-1251"),
    Row("header of UTF-8", CAFE.encode(), CAFE, _HEADER, "latin1", b"text/xml; charset=utf-8"),
    Row("header that is wrong", CAFE.encode(), CAFE, "bytes and declaration", "utf-8", b"text/xml; charset=latin1"),
    Row("declaration that is wrong", MIR.encode("cp1251"), MIR, _HEADER, "utf-8", b"text/xml; charset=cp1251"),
    Row("header of nothing known", MIR.encode("cp1251"), MIR, _KNOWN, "cp1251", b"text/xml; charset=klingon"),
    Row("header of no charset", MIR.encode("koi8-r"), MIR, "XML 1.0, 4.3.3", "koi8-r", b"text/xml"),
    Row("header in quotes", MIR.encode("koi8-r"), MIR, "RFC 9110, 5.6.6", told=b'text/xml; charset="koi8-r"'),
    Row("mark and header", BOM_UTF8 + CAFE.encode(), CAFE, _MARK, told=b"text/xml; charset=latin1"),
    Row("header of UTF-16", CAFE.encode(), CAFE, "ASCII is not UTF-16", told=b"text/xml; charset=utf-16"),
    Row("content, Cyrillic", (MIR * 9).encode("cp1251"), MIR * 9, _CONTENT),
    Row("content, Latin", CAFE.encode("cp1252"), CAFE, _CONTENT),
    Row("content, Shift_JIS", ("\u65e5\u672c\u8a9e" * 9).encode("shift_jis"), "\u65e5\u672c\u8a9e" * 9, _CONTENT),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_encoding_is_that_which_speaks_loudest(row: Row) -> None:
    """For a sitemap; feeds ask the same function."""
    head = f"<?xml version='1.0' encoding='{row.declared}'?>".encode() if row.declared else b""
    mark, written = (BOM_UTF8, row.written[3:]) if row.written.startswith(BOM_UTF8) else (b"", row.written)
    body = mark + head + b"<urlset><url><loc>/" + written + b"</loc></url></urlset>"
    hints = EncodingHints(row.told, lambda begin: detected(begin, ""))
    assert sitemaps.is_index(body, hints) is False
    assert [entry.location for found in sitemaps.sitemap_entries(body, 9, hints) for entry in found] == ["/" + row.text]
