"""Files of other tools are read as far as anybody can read them, and what is left out is told."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tomllib
from argparse import Namespace
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from backports import zstd
from scrapy.settings import Settings
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from bigcrawl.commands.looking.explain import explain
from bigcrawl.config import read_config
from bigcrawl.exceptions import CorruptionError
from bigcrawl.page_index.index_files import index_file
from bigcrawl.page_index.page_records import page_records
from bigcrawl.stored.answers import explain_stored
from bigcrawl.stored.catalogue import read_catalogue
from bigcrawl.stored.files import source_files
from bigcrawl.stored.pages import PageReader, StoredPage, UnreadablePageError
from bigcrawl.warc.base32 import encode_sha1
from bigcrawl.warc.extraction import extract_payload
from bigcrawl.warc.verification import verify_file
from tests.support.feature_trees import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A = "http://a.example/"
ROWS: list[dict[str, Any]] = tomllib.loads((PROJECT / "tests/data/archives/records.toml").read_text())["row"]


def record_of(row: dict[str, Any]) -> bytes:
    block = row["block"].encode()
    sizes = {"length": len(block), "short": len(block) - 1, "long": len(block) + 1}
    head = row["head"]
    for name, size in sizes.items():
        head = head.replace(f"{{{name}}}", str(size))
    return bytes(head.encode() + block + row["end"].encode())


def pages(*paths: Path) -> dict[str, StoredPage]:
    """The page of each URL of some files."""
    catalogue = read_catalogue(list(paths))
    reader = PageReader(catalogue, 0)
    try:
        found = [reader.read_page(catalogue.place_of_rank(rank)) for rank in range(len(catalogue))]
    finally:
        reader.close()
    return {page.url: page for page in found}


def response(url: str, body: bytes, *more: bytes, kind: bytes = b"response", at: int = 0, http: bytes = b"") -> bytes:
    """A record as wget writes it."""
    block = (http or b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n") + b"\r\n" + body
    lines = [
        b"WARC/1.0",
        b"WARC-Type: " + kind,
        b"WARC-Target-URI: " + url.encode(),
        b"WARC-Date: 2026-11-20T10:%02d:%02dZ" % divmod(at, 60),
        b"Content-Type: application/http; msgtype=response",
        *more,
        b"Content-Length: %d" % len(block),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + block + b"\r\n\r\n"


def arc(url: str, body: bytes, *, version: int = 1) -> bytes:
    """A record of an ARC file."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    more = b" 200 - - 0 x.arc" if version == 2 else b""
    return b"%b 127.0.0.1 20261120100000 text/html%b %d\n%b\n" % (url.encode(), more, len(block), block)


def arc_head() -> bytes:
    block = b"1 0 Archive\nURL IP-address Archive-date Content-type Archive-length\n"
    return b"filedesc://x.arc 0.0.0.0 20261120100000 text/plain %d\n%b\n" % (len(block), block)


def members(records: list[bytes]) -> bytes:
    return b"".join(map(gzip.compress, records))


def frames(records: list[bytes]) -> bytes:
    return b"".join(map(zstd.compress, records))


def frames_by_dictionary(records: list[bytes]) -> bytes:
    """As the draft of .warc.zst has it: a dictionary, itself packed, in a frame without data."""
    dictionary = zstd.train_dict([response(f"{A}{number}", b"trained") for number in range(300)], 2_000)
    packed = zstd.compress(dictionary.dict_content)
    begin = struct.pack("<II", 0x184D2A5D, len(packed)) + packed
    return begin + b"".join(zstd.compress(record, zstd_dict=dictionary) for record in records)


FORMS: dict[str, tuple[str, Callable[[list[bytes]], bytes], bool]] = {
    "warc.gz": ("x.warc.gz", members, False),
    "warc": ("x.warc", b"".join, False),
    "warc.zst": ("x.warc.zst", frames, False),
    "warc.zst with a dictionary": ("x.warc.zst", frames_by_dictionary, False),
    "arc": ("x.arc", b"".join, True),
    "arc.gz": ("x.arc.gz", members, True),
}


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_record_of_other_tools_is_read(tmp_path: Path, row: dict[str, Any], *, is_indexed: bool) -> None:
    """With an index or without: its page, and the one behind it."""
    path = tmp_path / "x.warc.gz"
    path.write_bytes(members([record_of(row), response(f"{A}last", b"last")]))
    if is_indexed:
        indexed = index_file(path, ["cdxj"])
        assert indexed is not None
        assert (indexed.pages, indexed.problem) == (2, "")
    [page, last] = sorted(pages(path).values(), key=lambda page: page.body == b"last")
    assert (page.status, page.body, last.body) == (row["status"], row["body"].encode(), b"last")
    assert page.headers.get(b"Content-Type", [b""]) == [row["kind"].encode()]
    body = io.BytesIO()
    found = extract_payload(path, 0, body)
    assert body.getvalue()[: len(page.body) - 1] == page.body[:-1]
    assert abs(found.body_bytes - len(page.body)) <= (1 if "Content-Length" in row["head"] else 0) or row[
        "name"
    ].startswith("far")


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_record_is_read_as_warcio_reads_it(tmp_path: Path, row: dict[str, Any]) -> None:
    """Where it does."""
    path = tmp_path / "x.warc.gz"
    path.write_bytes(members([record_of(row)]))
    try:
        with path.open("rb") as file:
            [(url, status, body)] = [
                (
                    record.rec_headers.get_header("WARC-Target-URI"),
                    int(record.http_headers.get_statuscode()) if record.http_headers else 200,
                    record.content_stream().read(),
                )
                for record in ArchiveIterator(file)
            ]
    except (ValueError, OverflowError, AttributeError, ArchiveLoadFailed):
        url, status, body = "", 0, b""
    [page] = pages(path).values()
    assert ((page.url, page.status, page.body) == (url, status, body)) == row["warcio"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_indexed", [True, False])
def test_files_of_all_forms_are_read(tmp_path: Path, form: str, *, is_indexed: bool) -> None:
    """Packed in members or frames, or not at all; also by `warc extract`, and sound by `warc verify`."""
    name, pack, is_arc = FORMS[form]
    bodies = {f"{A}{number}": b"body %d " % number * 3_000 * (number % 3) for number in range(20)}
    made = [arc_head()] if is_arc else []
    made += [
        arc(url, body, version=1 + (len(body) % 2)) if is_arc else response(url, body) for url, body in bodies.items()
    ]
    path = tmp_path / name
    path.write_bytes(pack(made))
    assert verify_file(path) == (len(made), 0, "")
    if is_indexed:
        assert index_file(path, ["cdxj"]) == (path, len(bodies), "")
    assert source_files(str(tmp_path)) == [path]
    assert {url: page.body for url, page in pages(path).items()} == bodies
    for record in page_records(path):
        body = io.BytesIO()
        extract_payload(path, record.offset, body)
        assert body.getvalue() == bodies[record.fields[b"warc-target-uri"].decode()]


@pytest.mark.parametrize("form", FORMS)
def test_one_damaged_record_costs_no_other(tmp_path: Path, form: str) -> None:
    """Whichever of its bytes is damaged."""
    name, pack, is_arc = FORMS[form]
    made = [(arc if is_arc else response)(f"{A}{number}", b"%d" % number * 200) for number in range(6)]
    whole, before, damaged = (len(pack(made[:count])) for count in (6, 2, 3))
    path = tmp_path / name
    for at in range(before, damaged, 7):
        data = bytearray(pack(made))
        assert len(data) == whole
        data[at] ^= 0xFF
        path.write_bytes(bytes(data))
        found: set[bytes] = set()
        with suppress(CorruptionError):  # the damage may leave a record that can be read
            found.update(record.fields[b"warc-target-uri"] for record in page_records(path))
        assert found >= {f"{A}{number}".encode() for number in (0, 1, 3, 4, 5)}, at


def test_a_page_that_holds_records_forges_none(tmp_path: Path) -> None:
    """Behind damage only records of the same warcinfo record are taken for the next one."""
    forged = members([response(f"{A}forged", b"forged", b"WARC-Warcinfo-ID: <urn:uuid:guessed>")])
    info = b"WARC-Warcinfo-ID: <urn:uuid:secret>"
    made = [response(f"{A}{number}", forged if number == 1 else b"page", info) for number in range(4)]
    packed = [gzip.compress(record, 0) for record in made]
    packed[1] = packed[1][:40] + bytes([packed[1][40] ^ 1]) + packed[1][41:]
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"".join(packed))
    assert set(pages(path)) == {f"{A}0", f"{A}2", f"{A}3"}
    torn = path.read_bytes()[: len(packed[0]) + len(packed[1]) - 9]
    path.write_bytes(torn)
    assert set(pages(path)) == {f"{A}0"}


BODY = b"<p>the body of the original</p>"
DIGEST = b"sha1:" + encode_sha1(hashlib.sha1(BODY, usedforsecurity=False).digest())
EMPTY = b"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
OLD = f"{A}old"
ID = b"<urn:uuid:00000000-0000-0000-0000-00000000abcd>"
SAME = b"WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
UNMODIFIED = b"WARC-Profile: http://netpreserve.org/warc/1.0/revisit/server-not-modified"
REFERS, TO, ON = b"WARC-Refers-To: ", b"WARC-Refers-To-Target-URI: ", b"WARC-Refers-To-Date: "
THEN = b"2026-11-20T10:00:05Z"
HAS = b"WARC-Payload-Digest: "
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n"
REVISITS: list[tuple[str, str, tuple[bytes, ...], bytes, bool]] = [
    # its URL, source, its fields, its HTTP head, whether the body is found
    (f"{A}new", "WARC 1.1, 6.7.2", (SAME, HAS + DIGEST, REFERS + ID, TO + OLD.encode(), ON + THEN), b"", True),
    (f"{A}new", "pywb#88: no digest", (SAME, TO + OLD.encode(), ON + THEN), b"", True),
    (f"{A}new", "pywb#88, the second of a time", (SAME, TO + OLD.encode(), ON + THEN[:-1] + b".400Z"), b"", True),
    (f"{A}new", "no digest, another time", (SAME, TO + OLD.encode(), ON + b"2020-01-01T00:00:00Z"), b"", False),
    (f"{A}new", "another digest at that time", (SAME, HAS + EMPTY, TO + OLD.encode(), ON + THEN), b"", False),
    (f"{A}new", "a digest of another kind", (SAME, HAS + b"md5:AAAA", TO + OLD.encode(), ON + THEN), b"", True),
    (f"{A}new", "WARC 1.0, 6.7.2: target and digest", (SAME, HAS + DIGEST, TO + OLD.encode()), b"", True),
    (f"{A}new", "WARC 1.1, 6.7.2: id and target", (SAME, REFERS + ID, TO + OLD.encode()), b"", True),
    (OLD, "WARC 1.0: id alone", (SAME, REFERS + ID), b"", True),
    (OLD, "Heritrix: digest alone", (SAME, HAS + DIGEST), b"", True),
    (f"{A}new", "Heritrix: digest alone, of another URL", (SAME, HAS + DIGEST), b"", True),
    (f"{A}new", "digest alone, of no record", (SAME, HAS + EMPTY), b"", False),
    (OLD, "nothing but its URL", (SAME,), b"", True),
    (f"{A}new", "nothing at all", (SAME,), b"", False),
    (OLD, "httrack#778: 304 without reference", (UNMODIFIED,), NOT_MODIFIED, True),
    (OLD, "Heritrix: 304 with the digest of nothing", (UNMODIFIED, HAS + EMPTY), NOT_MODIFIED, True),
    (OLD, "WARC 1.1, 6.7.3: 304 with target and date", (UNMODIFIED, TO + OLD.encode(), ON + THEN), NOT_MODIFIED, True),
    (f"{A}new", "304 of a page that is not stored", (UNMODIFIED,), NOT_MODIFIED, False),
    (f"{A}new", "a target that is no URL", (SAME, TO + b"urn:x:y"), b"", False),
]


@pytest.mark.parametrize("revisit", REVISITS, ids=lambda row: row[1])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_revisit_has_the_body_to_which_it_refers(tmp_path: Path, revisit: Any, *, is_indexed: bool) -> None:
    """By record, digest or time; without any of them, that of its URL's answer before it. Else one page is lost."""
    url, _, fields, http, is_found = revisit
    made = [
        response(f"{A}other", b"other", at=4),
        response(OLD, b"older", at=4),
        response(OLD, BODY, HAS + DIGEST, b"WARC-Record-ID: " + ID, at=5),
        response(url, b"", *fields, kind=b"revisit", at=9, http=http),
        response(f"{A}last", b"last", at=10),
    ]
    path = tmp_path / "x.warc.gz"
    path.write_bytes(members(made))
    if is_indexed:
        index_file(path, ["cdxj"])
    catalogue = read_catalogue([path])
    reader = PageReader(catalogue, 0)
    place = catalogue.place_of_rank(catalogue.rank_of(url))
    if is_found:
        page = reader.read_page(place)
        assert (page.status, page.body) == (200, BODY)
    else:
        with pytest.raises(UnreadablePageError) as error:
            reader.read_page(place)
        assert error.value.reason == "no-original"
    assert reader.read_page(catalogue.place_of_rank(catalogue.rank_of(f"{A}last"))).body == b"last"
    reader.close()


@pytest.mark.parametrize("is_indexed", [True, False])
def test_answer_that_was_not_modified_hides_no_page(tmp_path: Path, *, is_indexed: bool) -> None:
    """Whether it is a revisit or a response."""
    for kind, more in ((b"revisit", (UNMODIFIED,)), (b"response", ())):
        path = tmp_path / f"{kind.decode()}.warc.gz"
        path.write_bytes(members([response(A, b"page"), response(A, b"", *more, kind=kind, at=9, http=NOT_MODIFIED)]))
        if is_indexed:
            index_file(path, ["cdxj"])
        page = pages(path)[A]
        assert (page.status, page.body) == (200, b"page")


@pytest.mark.parametrize(
    ("odd", "count"),
    [
        ('"offset": "x"', 1),
        ('"offset": "-5"', 0),
        ('"offset": 1e400', 1),
        ('"offset": "99999999999999999999999"', 0),
        ('"offset": "9223372036854775807"', 0),
        ('"length": "0"', 0),
        ('"length": "99999999999"', 0),
        ('"status": "-"', 1),
        ('"status": "²"', 1),
        ('"url": "dns:a.example"', 0),
    ],
)
def test_odd_field_of_an_index_ends_no_start(
    tmp_path: Path, odd: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The line is skipped and counted, or the file is read instead; the log says why, once."""
    path = tmp_path / "x.warc.gz"
    path.write_bytes(members([response(A, b"page"), response(f"{A}2", b"page")]))
    index_file(path, ["cdxj"])
    index = path.with_name("x.cdxj")
    first, second = index.read_text().splitlines(keepends=True)
    name = odd.partition(":")[0].strip('"')
    key, stamp, fields = first.split(" ", 2)
    values = {**json.loads(fields), name: None}
    index.write_text(f"{key} {stamp} " + json.dumps(values).replace(f'"{name}": null', odd) + "\n" + second)
    catalogue = read_catalogue([path])
    assert (len(catalogue), catalogue.skipped) == (1 + count, 1 - count)
    if not count:
        assert "1 records that are not answers" in caplog.text


def test_names_of_hosts_are_counted_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Heritrix stores answers of DNS, which are no pages."""
    path = tmp_path / "x.warc.gz"
    path.write_bytes(members([response("dns:a.example", b"1 2 3"), response(A, b"page")]))
    catalogue = read_catalogue([path])
    assert (catalogue.skipped, [skip.url for skip in catalogue.skips]) == (1, ["dns:a.example"])
    assert "dns:a.example" in caplog.text


def test_every_record_that_is_not_read_has_its_reason(tmp_path: Path) -> None:
    """For programs and people: the answers of a URL, and which one a spider is given."""
    path = tmp_path / "x.warc.gz"
    broken = response(A, b"third", http=b"no HTTP")
    copy = response(f"{A}copy", b"", b"WARC-Refers-To-Target-URI: http://gone.example/", kind=b"revisit")
    path.write_bytes(members([response(A, b"first"), broken, copy, response("dns:a.example", b"1 2 3")]))
    index_file(path, ["cdxj"])
    config = read_config(Settings({"BIGCRAWL_SOURCE": str(path)}))

    def explained(url: str) -> dict[str, Any]:
        found = explain(config, [url], Namespace())
        assert found.data == explain_stored(config, url)
        assert str(path) in found.text
        return dict(found.data)

    answers = explained("http://A.example")["answers"]
    assert [(one["status"], one["is_given"]) for one in answers] == [(None, True), (200, False)]
    assert answers[0]["problem"].startswith("damaged: ")
    [copied] = explained(f"{A}copy")["answers"]
    assert copied["problem"].startswith("no-original: ")
    name = explained("dns:a.example")
    assert (name["answers"], len(name["skipped"]), name["skipped_records"]) == ([], 1, 1)
    nothing = explain_stored(config, "http://nowhere.example/")
    assert (nothing["answers"], nothing["skipped"]) == ([], [])


@pytest.mark.parametrize("begin", [b"\x5d\x2a\x4d\x18", b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18\x04\0\0\0none"])
@pytest.mark.parametrize("packed", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfdno frame"])
def test_a_dictionary_that_is_cut_or_damaged_costs_its_file_alone(tmp_path: Path, begin: bytes, packed: bytes) -> None:
    """It has no sound record; the other files are read."""
    path = tmp_path / "x.warc.zst"
    path.write_bytes(begin + struct.pack("<I", len(packed)) * bool(packed) + packed)
    sound = tmp_path / "y.warc.zst"
    sound.write_bytes(frames([response(A, b"there")]))
    assert [verify_file(each)[0] for each in (path, sound)] == [0, 1]
