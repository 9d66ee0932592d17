"""Files that users write are read whatever their editor has made of marks, encodings and line ends."""

from __future__ import annotations

import io
import random
from codecs import BOM_UTF8
from typing import TYPE_CHECKING

import pytest

from bigcrawl.commands.steering.add import _given_lines
from bigcrawl.config import read_config
from bigcrawl.spiders.seeds import Seeds
from bigcrawl.text_files.reading import lines_of
from bigcrawl_foreign.url_lists import _lines_of

if TYPE_CHECKING:
    from pathlib import Path

URLS = ["http://a.example/", "http://b.example/ü", "http://c.example/"]
# Unicode 16.0, section 23.8 (byte-order marks); RFC 3629, section 6; RFC 2781, section 4.3; RFC 4180 for CRLF.
ENCODINGS = {
    "UTF-8": lambda text: text.encode(),
    "UTF-8 with a mark": lambda text: BOM_UTF8 + text.encode(),
    "UTF-16 of this machine, with a mark": lambda text: text.encode("utf-16"),
    "UTF-16 LE with a mark": lambda text: ("\ufeff" + text).encode("utf-16-le"),
    "UTF-16 BE with a mark": lambda text: ("\ufeff" + text).encode("utf-16-be"),
    "UTF-16 LE": lambda text: text.encode("utf-16-le"),
    "UTF-16 BE": lambda text: text.encode("utf-16-be"),
    "UTF-32 with a mark": lambda text: text.encode("utf-32"),
}
ENDS = {
    "LF": "\n",
    "CRLF": "\r\n",
    "CR": "\r",
    "CRLF and blanks": " \t\r\n",
    "NBSP": "\u00a0\n",
    "zero width": "\u200b\r\n",
}
FORMS = [
    pytest.param(encode(ends.join(URLS) + last), id=f"{name}, {end}, {'ended' if last else 'not ended'}")
    for name, encode in ENCODINGS.items()
    for end, ends in ENDS.items()
    for last in (ends, "")
]


@pytest.mark.parametrize("data", FORMS)
def test_each_reader_finds_the_lines(tmp_path: Path, data: bytes) -> None:
    """Seeds, URLs to add, lists to import, and lists in settings."""
    path = tmp_path / "urls"
    path.write_bytes(data)
    canonical = [URLS[0], "http://b.example/%C3%BC", URLS[2]]
    assert [url for batch in Seeds(path).url_batches() for url in batch] == canonical
    assert [getattr(given, "url", "") for given in _given_lines([str(path)])] == URLS
    assert [line for line in _lines_of(path) if line] == URLS
    assert list(read_config({"BIGCRAWL_BLACKLIST": str(path)}).pace.blacklist) == URLS


class Pieces(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._size if self.tell() else max(self._size, 4))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 16])
def test_lines_are_those_of_python(size: int) -> None:
    """Of any text, in pieces of any size."""
    dice = random.Random(size)
    for codec in ("utf-8-sig", "utf-16", "utf-32"):
        text = "a" + "".join(dice.choice("ab\r\n\rü€😀") for _ in range(2_000))
        data = text.encode(codec)
        file = Pieces(data, size)
        expected = [line.strip("\n") for line in io.TextIOWrapper(io.BytesIO(data), codec)]
        assert list(lines_of(file, 1 << 20)) == expected


def test_line_without_end_is_refused() -> None:
    """It is no list."""
    with pytest.raises(ValueError, match="more than 1,000 characters"):
        list(lines_of(io.BytesIO(b"x" * 200_000), 1_000))
