"""Exhibits of `Feature.CHARSETS`: pages in other charsets, declared in every place, or wrongly.

If the charset can be determined, the proof's name begins with unescaped letters of that charset, so a crawler that
decodes them wrongly requests a missing page. If declarations differ, the byte order mark wins over the header, and the
header over the meta element (HTML standard, "encoding sniffing algorithm").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.exhibits.exhibit import Exhibit, ExhibitContext

if TYPE_CHECKING:
    from collections.abc import Callable

_BARE: Final = "text/html"
_META: Final = '<meta charset="{}">'
_EQUIVALENT: Final = '<meta http-equiv="Content-Type" content="text/html; charset={}">'
# For letters of the filler that a charset lacks: character references.
_UNKNOWN: Final = "xmlcharrefreplace"


def _answer_encoded(
    codec: str, content_type: str, *, head: str = "", mark: bytes = b""
) -> Callable[[ExhibitContext], Answer]:
    """Encode a page with `codec`; `head` has its meta elements, and `mark` its byte order mark."""

    def answer(stand: ExhibitContext) -> Answer:
        # Parsers look for a meta element in the first 1,024 bytes.
        text = stand.html(f'<a href="{stand.raw_onward}">onward</a>\n', head)
        return Answer(200, (("Content-Type", content_type),), mark + text.encode(codec, _UNKNOWN))

    return answer


def _by_header(slug: str, codec: str, label: str, word: str) -> Exhibit:
    return _charset_exhibit(slug, _answer_encoded(codec, f"{_BARE}; charset={label}"), word)


def _by_meta(slug: str, codec: str, label: str, word: str, head: str = _META) -> Exhibit:
    return _charset_exhibit(slug, _answer_encoded(codec, _BARE, head=head.format(label)), word)


def _charset_exhibit(
    slug: str, answer: Callable[[ExhibitContext], Answer], word: str = "", lesson: str = "reads the letters"
) -> Exhibit:
    return Exhibit(slug=slug, feature=Feature.CHARSETS, answer=answer, lesson=lesson, word=word)


_FINDS: Final = "finds the link, whatever it makes of the letters"

CHARSETS: Final = (
    _charset_exhibit("utf-8-mark", _answer_encoded("utf-8", _BARE, mark=b"\xef\xbb\xbf"), "中文"),
    _charset_exhibit("utf-16-little", _answer_encoded("utf-16-le", _BARE, mark=b"\xff\xfe"), "日本語"),
    _charset_exhibit("utf-16-big", _answer_encoded("utf-16-be", _BARE, mark=b"\xfe\xff"), "日本語"),
    _by_header("utf-16-header", "utf-16-le", "utf-16le", "日本語"),
    _by_header("iso-2022-jp", "iso2022_jp", "iso-2022-jp", "日本"),
    _by_meta("iso-2022-jp-meta", "iso2022_jp", "iso-2022-jp", "日本", _EQUIVALENT),
    _by_header("euc-jp", "euc_jp", "EUC-JP", "東京"),
    _by_meta("euc-jp-meta", "euc_jp", "euc-jp", "東京"),
    _by_header("shift-jis", "cp932", "Shift_JIS", "京都"),
    _by_meta("x-sjis", "cp932", "x-sjis", "京都", _EQUIVALENT),
    _by_header("euc-kr", "cp949", "euc-kr", "한국"),
    _by_meta("gb-meta", "gb18030", "gb2312", "北京"),
    _by_header("big-five", "big5", "big5", "台北"),
    _by_header("koi", "koi8_r", "koi8-r", "мир"),
    _by_meta("central", "cp1250", "windows-1250", "żółw"),
    _by_header("cyrillic", "cp1251", "windows-1251", "привет"),
    _by_header("western", "cp1252", "windows-1252", "œuvre-€"),
    _by_header("latin", "cp1252", "iso-8859-1", "€é"),
    _by_meta("greek", "cp1253", "windows-1253", "αβγ"),
    _by_header("turkish", "cp1254", "iso-8859-9", "ığş"),
    _by_header("hebrew", "cp1255", "windows-1255", "שלום"),
    _by_meta("arabic", "cp1256", "windows-1256", "سلام"),
    _by_header("baltic", "cp1257", "windows-1257", "ąžuolas"),
    _charset_exhibit(
        "mark-over-header", _answer_encoded("utf-8", f"{_BARE}; charset=iso-8859-1", mark=b"\xef\xbb\xbf"), "é"
    ),
    _charset_exhibit(
        "header-over-meta", _answer_encoded("utf-8", f"{_BARE}; charset=utf-8", head=_META.format("latin1")), "ü"
    ),
    # A readable meta element cannot be in UTF-16, so UTF-8 is assumed.
    _by_meta("meta-utf-16", "utf-8", "utf-16", "ß"),
    _charset_exhibit("wrong-utf-8", _answer_encoded("cp1252", f"{_BARE}; charset=utf-8"), lesson=_FINDS),
    _charset_exhibit("wrong-latin", _answer_encoded("utf-8", f"{_BARE}; charset=iso-8859-1"), lesson=_FINDS),
    _charset_exhibit("wrong-japanese", _answer_encoded("euc_jp", f"{_BARE}; charset=shift_jis"), lesson=_FINDS),
    _charset_exhibit("unknown-charset", _answer_encoded("utf-8", f"{_BARE}; charset=klingon"), lesson=_FINDS),
    _charset_exhibit("undeclared", _answer_encoded("cp932", _BARE), lesson=_FINDS),
)
