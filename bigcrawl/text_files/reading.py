from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_find_ends = re.compile("\r\n|\r|\n").finditer
_CHUNK: Final = 1 << 16
BLANKS: Final = " \t\r\n\f\v\u00a0\u200b\ufeff"
"""Characters that editors and spreadsheets leave around a word."""


def codec_of(begin: bytes) -> str:
    """Return the codec of a text, by its byte-order mark or the zeros of UTF-16 in its first four bytes; else UTF-8."""
    for mark, codec in _MARKS:
        if begin.startswith(mark):
            return codec
    if begin[:2].count(0) == 1 and len(begin) > 1:
        return "utf-16-be" if begin[0] == 0 else "utf-16-le"
    return "utf-8"


def read_text(path: Path) -> str:
    """Return the text of a file without its byte-order mark. Raises OSError, or ValueError if it is not text."""
    data = path.read_bytes()
    return data.decode(codec_of(data[:4]))


def lines(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text)


def lines_of(file: IO[bytes], chars_max: int) -> Iterator[str]:
    """Yield the lines of a binary file, stripped, with invalid bytes replaced; ValueError beyond `chars_max`."""
    read = getattr(file, "read1", file.read)  # reads from a pipe without waiting for more
    data = read(_CHUNK)
    decoder = codecs.getincrementaldecoder(codec_of(data[:4]))("replace")
    held = ""
    while True:
        held += decoder.decode(data, not data)
        at = 0
        for end in _find_ends(held):
            if data and end.end() == len(held) and end[0] == "\r":  # perhaps half of a CR LF
                break
            yield held[at : end.start()].strip(BLANKS)
            at = end.end()
        held = held[at:]
        if len(held) > chars_max:
            raise ValueError(f"a line has more than {chars_max:,} characters")
        if not data:
            if held:
                yield held.strip(BLANKS)
            return
        data = read(_CHUNK)
