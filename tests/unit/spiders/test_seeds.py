"""Files of seeds as editors and spreadsheets write them."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING

import pytest

from bigcrawl.spiders.seeds import Seeds

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "plain": b"http://a.example/\nhttp://b.example/\n",
    "mark": BOM_UTF8 + b"http://a.example/\nhttp://b.example/",
    "mark and CRLF": BOM_UTF8 + b"http://a.example/\r\nhttp://b.example/\r\n",
    "CR": b"http://a.example/\rhttp://b.example/\r",
    "UTF-16": "http://a.example/\r\nhttp://b.example/\r\n".encode("utf-16"),
    "UTF-16, the other end": "\ufeffhttp://a.example/\nhttp://b.example/".encode("utf-16-be"),
    "blanks and notes": b"  http://a.example/  \n\n# note\n\thttp://b.example/\t\n",
    "blanks of Unicode": "\u200bhttp://a.example/\u00a0\nhttp://b.example/\u200b\ufeff\n".encode(),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_each_line_is_a_seed(tmp_path: Path, text: bytes) -> None:
    """Whatever marks, line ends and blanks are around it."""
    (tmp_path / "seeds").write_bytes(text)
    found = [url for batch in Seeds(tmp_path / "seeds").url_batches() for url in batch]
    assert found == ["http://a.example/", "http://b.example/"]
