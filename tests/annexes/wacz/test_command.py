"""`scrapy frontier wacz`: what is in the file, and that it is whole or not there."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

import pytest

from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.warc.files import OsFiles
from bigcrawl_wacz import packing
from bigcrawl_wacz.packing import WaczArchive
from tests.support.replaying.wacz import assert_valid
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.commands.result import Result

A, B = "http://a.example/", "http://b.example/x?y=1"
HTML = [(b"Content-Type", b"text/html")]
DIGEST = "datapackage-digest.json"


def asked(warc: Path, *words: str, **settings: str) -> Result:
    config = read_config({"BIGCRAWL_WARC_DIR": str(warc), "BIGCRAWL_CRAWL": "news", **settings})
    return run_action(config, "wacz", parse_action("wacz", list(words)))


def html(url: str, title: str, at_s: int = 0, **changes: Any) -> Any:
    body = f"<title>{title}</title><p>{url}".encode() + b" " * 2000
    return page(url, body, at_s, response_headers=HTML)._replace(**changes)


def read(path: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The parts of a WACZ file, and its description; each part is stored, listed and has its hash."""
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {ZIP_STORED}
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    package = json.loads(parts.pop("datapackage.json"))
    digest = json.loads(parts.pop(DIGEST))
    with ZipFile(path) as archive:
        assert digest == {"path": "datapackage.json", "hash": sha256(archive.read("datapackage.json"))}
    listed = {one["path"]: (one["hash"], one["bytes"]) for one in package["resources"]}
    assert listed == {name: (sha256(data), len(data)) for name, data in parts.items()}
    assert len({one["name"] for one in package["resources"]}) == len(parts)
    return parts, package


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def listed_pages(parts: dict[str, bytes]) -> list[dict[str, str]]:
    head, *lines = parts["pages/pages.jsonl"].splitlines()
    assert json.loads(head)["format"] == "json-pages-1.0"
    return [json.loads(line) for line in lines]


def test_parts_are_those_of_the_standard(tmp_path: Path) -> None:
    """The files as they are, one sorted index, and pages with title and time; the crawl's name is the title."""
    warc = tmp_path / "warc"
    first = stored(warc, html(B, "Two"), html(A, "One &amp; only"), name="First_1")
    second = stored(warc, html(f"{A}again", "Three"), page(f"{A}robots.txt"), name="second")
    found = asked(warc, str(tmp_path / "crawl.wacz"))
    assert found.data == {
        "file": str(tmp_path / "crawl.wacz"),
        "bytes": (tmp_path / "crawl.wacz").stat().st_size,
        "files": 2,
        "captures": 4,
        "pages": 3,
        "open": [],
        "damaged": [],
    }
    parts, package = read(tmp_path / "crawl.wacz")
    assert (package["wacz_version"], package["title"]) == ("1.1.1", "news")
    assert {name: parts[f"archive/{name}"] for name in (first.name, second.name)} == {
        path.name: path.read_bytes() for path in (first, second)
    }
    lines = gzip.decompress(parts["indexes/index.cdx.gz"]).splitlines(keepends=True)
    cdxj = [line for path in warc.glob("*.cdxj") for line in path.read_bytes().splitlines(keepends=True)]
    assert lines == sorted(cdxj)
    assert [(one["url"], one["title"]) for one in listed_pages(parts)] == [
        (B, "Two"), (A, "One & only"), (f"{A}again", "Three")
    ]  # fmt: skip
    assert len({one["id"] for one in listed_pages(parts)}) == 3
    assert listed_pages(parts)[0]["ts"] == "2023-11-14T22:13:20.000Z"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.wacz", "warc"]


def test_index_is_found_by_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of the second file has the first key of a block, its place, and its hash."""
    monkeypatch.setattr(packing, "BLOCK_LINES", 3)
    stored(tmp_path / "warc", *(html(f"{A}{number}", "t") for number in range(8)))
    asked(tmp_path / "warc", str(tmp_path / "crawl.wacz"), "--title", "Eight")
    parts, package = read(tmp_path / "crawl.wacz")
    assert package["title"] == "Eight"
    data, (head, *rows) = parts["indexes/index.cdx.gz"], parts["indexes/index.idx"].splitlines()
    assert head == b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}'
    assert len(rows) == 3
    for row in rows:
        key, stamp, about = row.split(b" ", 2)
        place = json.loads(about)
        block = data[place["offset"] : place["offset"] + place["length"]]
        assert (place["digest"], place["filename"]) == (sha256(block), "index.cdx.gz")
        assert gzip.decompress(block).startswith(key + b" " + stamp + b" {")


def test_pages_are_html_that_was_found_and_no_part_of_another(tmp_path: Path) -> None:
    """Redirects, errors, pictures and requisites are archived, and not listed; a copy is listed without a title."""
    packed = gzip.compress(b"<title>Packed</title>")
    pages = [
        html(A, "Page", notes={"depth": "3"}),
        html(f"{A}copy", "Page")._replace(response_body=html(A, "Page").response_body),
        html(f"{A}frame", "Part", notes={"hopsFromSeed": "LLE"}),
        html(f"{A}gone", "Error", status=404),
        html(f"{A}moved", "Moved", status=301),
        page(f"{A}picture", b"\x89PNG\r\n\x1a\n", response_headers=[(b"Content-Type", b"image/png")]),
        page(f"{A}packed", packed, response_headers=[*HTML, (b"Content-Encoding", b"gzip")]),
        page(f"{A}broken", b"junk\0", response_headers=[*HTML, (b"Content-Encoding", b"gzip")]),
        page(f"{A}sniffed", b"<!doctype html><title>Sniffed</title>", response_headers=[]),
        html(f"{A}long", "t" * 9)._replace(response_body=b"<title>Long</title>" + b"x" * (3 << 20)),
        html(f"{A}robots.txt", "No"),
    ]
    stored(tmp_path / "warc", *pages, refers=True)
    asked(tmp_path / "warc", str(tmp_path / "crawl.wacz"))
    parts, _ = read(tmp_path / "crawl.wacz")
    titles = {one["url"].removeprefix(A): one.get("title", "") for one in listed_pages(parts)}
    assert titles == {"": "Page", "copy": "", "packed": "Packed", "broken": "", "sniffed": "Sniffed", "long": "Long"}


def test_what_was_made_of_a_page_is_no_page(tmp_path: Path) -> None:
    """Its text (a conversion) is packed and not indexed, its tree (a resource) is indexed and not listed."""
    path = stored(tmp_path / "warc", html(A, "Page"))
    with path.open("ab") as file:
        for kind in (b"conversion", b"resource"):
            fields = (
                b"WARC-Type: " + kind,
                b"WARC-Record-ID: <urn:uuid:" + kind + b">",
                b"WARC-Target-URI: " + A.encode(),
                b"WARC-Date: 2023-11-14T22:13:21Z",
                b"Content-Type: text/html",
                b"Content-Length: 4",
            )
            file.write(gzip.compress(b"\r\n".join((b"WARC/1.1", *fields, b"", b"<p>x\r\n\r\n"))))
    found = asked(tmp_path / "warc", str(tmp_path / "crawl.wacz"))
    assert (found.status, found.data["captures"], found.data["pages"]) == (0, 2, 1)
    parts, _ = read(tmp_path / "crawl.wacz")
    assert [one["title"] for one in listed_pages(parts)] == ["Page"]


def test_a_damaged_file_and_one_that_is_still_written_are_told(tmp_path: Path) -> None:
    """The damaged one is packed with an index of its sound records; the exit status is 1."""
    warc = tmp_path / "warc"
    path = stored(warc, html(A, "One"), html(B, "Two"))
    path.write_bytes(path.read_bytes()[:-900])
    (warc / "running.warc.gz.open").touch()
    found = asked(warc, str(tmp_path / "crawl.wacz"))
    assert (found.status, found.data["pages"], len(found.data["damaged"])) == (1, 1, 1)
    assert found.data["open"] == [str(warc / "running.warc.gz.open")]
    assert "1 files are still being written, and left out" in found.text
    parts, _ = read(tmp_path / "crawl.wacz")
    assert parts[f"archive/{path.name}"] == path.read_bytes()
    assert "running" not in str(parts.keys())


def test_what_is_wrong_is_told_with_a_remedy(tmp_path: Path) -> None:
    """No pages, only open files, no place, files that readers do not know, two of one name."""
    warc, to = tmp_path / "warc", str(tmp_path / "crawl.wacz")
    warc.mkdir()
    (warc / "c.warc.gz.open").touch()
    with pytest.raises(ConfigError, match=r"files that end in \.open are still being written"):
        asked(warc, to)
    with pytest.raises(ConfigError, match="-s BIGCRAWL_SOURCE"):
        asked(warc, to, BIGCRAWL_WARC_DIR="")
    path = stored(warc, html(A, "One"))
    for wrong in (tmp_path, tmp_path / "none" / "crawl.wacz"):
        with pytest.raises(ConfigError, match="is not a file in a directory that exists"):
            asked(warc, str(wrong))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ConfigError, match=f"2 files have the name {path.name}"):
        asked(warc, to, BIGCRAWL_SOURCE=str(tmp_path / "*" / "*.warc.gz"))
    (warc / "c.arc").write_bytes(b"filedesc://c.arc 0.0.0.0 20231114221320 text/plain 0\n\n")
    with pytest.raises(ConfigError, match=r"c\.arc cannot be in a WACZ file"):
        asked(warc, to, BIGCRAWL_SOURCE=str(warc / "*.arc"))
    assert not (tmp_path / "crawl.wacz").exists()


def test_a_call_that_fails_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, and if a file is rewritten meanwhile; nothing else is left."""
    stored(tmp_path / "warc", html(A, "One"))
    to = tmp_path / "crawl.wacz"
    asked(tmp_path / "warc", str(to))
    earlier = to.read_bytes()
    with monkeypatch.context() as context:
        context.setattr(OsFiles, "is_at", lambda *_: False)
        with pytest.raises(TransientStoreError, match="was rewritten meanwhile"):
            asked(tmp_path / "warc", str(to))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WaczArchive, "describe", full)
    with pytest.raises(TransientStoreError, match="No space left on device; a file of an earlier call is unchanged"):
        asked(tmp_path / "warc", str(to))
    assert to.read_bytes() == earlier
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.wacz", "warc"]


@pytest.mark.system
def test_py_wacz_finds_the_file_valid(tmp_path: Path) -> None:
    """Whatever the names of the files are; and not if a byte is changed."""
    for name in ("First_1", "c"):
        stored(tmp_path / "warc", html(f"{A}{name}", name), page(f"{B}&{name}"), name=name)
    asked(tmp_path / "warc", str(tmp_path / "crawl.wacz"))
    assert_valid(tmp_path / "crawl.wacz")
    changed = (tmp_path / "crawl.wacz").read_bytes().replace(b'"title": "First_1"', b'"title": "First_2"')
    (tmp_path / "changed.wacz").write_bytes(changed)
    with pytest.raises(AssertionError):
        assert_valid(tmp_path / "changed.wacz")
