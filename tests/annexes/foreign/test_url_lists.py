"""Lists of URLs and indexes of archives: each line is sent, or told."""

from __future__ import annotations

import asyncio
import gzip
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_foreign.url_lists import LINE_CHARS_MAX, CdxFile, UrlList

if TYPE_CHECKING:
    from pathlib import Path

CDXJ = 'com,example)/a 20260102030405 {"url": "http://example.com/a", "status": "200"}'
CDX = "com,example)/b 20260102030405 http://example.com/b text/html 200 SHA1 - - 1043 333 file.warc.gz"


class Sender:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.left_out: list[str] = []

    async def send_url(self, where: str, url: str, priority: int, callback: str | None) -> None:
        assert (priority, callback) == (3, "parse_item")
        self.sent.append(url)

    def record_skipped(self, where: str, reason: str) -> None:
        self.left_out.append(f"{where.rpartition(', ')[2]}: {reason}")


def read(kind: Any, path: Path) -> Sender:
    sender: Any = Sender()
    source = kind(str(path), Namespace(priority=3, callback="parse_item"))
    assert asyncio.run(source.read_into(sender)) == []
    return sender


@pytest.mark.parametrize("is_packed", [False, True])
def test_urls_of_a_list_are_sent(tmp_path: Path, *, is_packed: bool) -> None:
    """One for each line; comments are none. A gzip file may have several members."""
    parts = ["\ufeffhttp://a.example/\n# none\n\n", "  http://b.example/é \r\n", "no url"]
    file = tmp_path / "list"
    file.write_bytes(b"".join(gzip.compress(part.encode()) if is_packed else part.encode() for part in parts))
    assert read(UrlList, file).sent == ["http://a.example/", "http://b.example/é", "no url"]


def test_urls_of_an_index_are_sent(tmp_path: Path) -> None:
    """Both formats, also in one file; what is neither is told by its line."""
    file = tmp_path / "index"
    lines = [
        " CDX N b a m s k r M S V g",
        "!meta",
        CDXJ,
        CDX,
        "short line",
        "a b {",
        "a b {}",
        'a b {"url": 5}',
        "a {[]",
    ]
    file.write_text("\n".join(lines) + "\n" + "a {" + "[" * 10_000)
    sender = read(CdxFile, file)
    assert sender.sent == ["http://example.com/a", "http://example.com/b"]
    assert [each.split(":")[0] for each in sender.left_out] == [f"line {number}" for number in (5, 6, 7, 8, 9, 10)]


def test_file_that_is_no_list_ends_the_import(tmp_path: Path) -> None:
    """Without reading a line that never ends; damaged gzip and a missing file are named, too."""
    file = tmp_path / "list"
    file.write_bytes(gzip.compress(b"http://a.example/\n" + b"x" * (LINE_CHARS_MAX + 1)))
    with pytest.raises(ConfigError, match="line 2: a line has more than 65,536 characters"):
        read(UrlList, file)
    file.write_bytes(gzip.compress(b"http://a.example/\n" * 1_000)[:-20])
    with pytest.raises(ConfigError, match="cannot read"):
        read(UrlList, file)
    with pytest.raises(ConfigError, match="No such file"):
        read(UrlList, tmp_path / "none")
