from __future__ import annotations

import hashlib
import subprocess
import sys
from base64 import b32encode
from io import BytesIO
from uuid import RFC_4122, UUID

import pytest
from fastwarc.warc import ArchiveIterator as FastwarcIterator
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from bigcrawl.exceptions import ContractError
from bigcrawl.warc.records import (
    Conversion,
    Exchange,
    Note,
    Origin,
    exchange_records,
    new_record_id,
    related_record,
    warcinfo_record,
)
from tests.unit.warc.reading import Record, exchange, parse_record

INFO_ID = b"<urn:uuid:00000000-0000-4000-8000-000000000000>"
FORKING = """
import os
from bigcrawl.warc.records import new_record_id
new_record_id()
child = os.fork()
if child:
    os.waitpid(child, 0)
print(*(new_record_id().decode() for _ in range(200)), flush=True)
"""


def records(of: Exchange) -> tuple[Record, Record]:
    response, request = exchange_records(of, INFO_ID)
    return parse_record(response), parse_record(request)


def test_record_ids_are_random_uuids() -> None:
    """Version 4 of RFC 9562, as URNs in angle brackets, and never the same."""
    ids = {new_record_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    for record_id in ids:
        text = record_id.decode()
        uuid = UUID(text.removeprefix("<urn:uuid:").removesuffix(">"))
        assert text == f"<urn:uuid:{uuid}>"
        assert (uuid.version, uuid.variant) == (4, RFC_4122)


def test_a_forked_process_gives_other_ids() -> None:
    """Ids that were made before the fork are given by the parent alone."""
    given = subprocess.run([sys.executable, "-c", FORKING], check=True, capture_output=True, timeout=30).stdout.split()
    assert len(given) == 400
    assert len(set(given)) == 400


def digest(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()  # what WARC files use  # noqa: S324


def test_request_names_its_response_and_shares_its_place_and_time() -> None:
    """The request points at the response, and both carry the same URL, date, address and warcinfo."""
    response, request = records(exchange(7))
    assert request.headers["WARC-Concurrent-To"] == response.headers["WARC-Record-ID"]
    for record in response, request:
        assert record.headers["WARC-Target-URI"] == "http://a.example/7"
        assert record.headers["WARC-Date"] == "2023-11-14T22:13:20.123Z"
        assert record.headers["WARC-IP-Address"] == "127.0.0.1"
        assert record.headers["WARC-Warcinfo-ID"] == INFO_ID.decode()
        assert record.headers["Content-Type"] == f"application/http; msgtype={record.type}"


def test_note_refers_to_its_page_and_forges_no_record() -> None:
    """A metadata record of the page's URL, with the fields a line each, whatever they hold; two readers read it."""
    page = exchange(7)._replace(record_id=b"<urn:uuid:11111111-1111-4111-8111-111111111111>")
    response, _ = records(page)
    assert page.record_id is not None
    assert response.headers["WARC-Record-ID"] == page.record_id.decode()
    fields = {"robots": "noindex", "canonical": "http://a.example/x\r\n\r\nWARC/1.1\r\nevil: \u00e9"}
    data = related_record(Note("http://a.example/7", page.record_id, 1_700_000_000_123, fields), INFO_ID)
    note = parse_record(data)
    assert note.type == "metadata"
    assert note.headers["WARC-Refers-To"] == response.headers["WARC-Record-ID"]
    assert note.headers["WARC-Target-URI"] == "http://a.example/7"
    assert note.headers["WARC-Block-Digest"] == digest(note.block)
    lines = note.block.decode().split("\r\n")
    assert lines == ["robots: noindex", "canonical: http://a.example/x WARC/1.1 evil: \u00e9", ""]
    assert [record.rec_type for record in WarcioIterator(BytesIO(data))] == ["metadata"]
    assert len(list(FastwarcIterator(BytesIO(data)))) == 1


def test_another_form_of_a_page_refers_to_its_answer() -> None:
    """A conversion record with a type of its own; two readers read it, and nothing of the page forges a record."""
    page = exchange(7, record_id=new_record_id())
    assert page.record_id is not None
    block = "<p>\u00e9</p>\r\n\r\nWARC/1.1".encode()
    item = Conversion("http://a.example/7#x", page.record_id, 1_700_000_000_123, "text/html; charset=utf-8", block)
    data = related_record(item, INFO_ID)
    record = parse_record(data)
    assert record.type == "conversion"
    assert record.headers["WARC-Refers-To"] == page.record_id.decode()
    assert record.headers["WARC-Target-URI"] == "http://a.example/7"
    assert record.headers["Content-Type"] == "text/html; charset=utf-8"
    assert record.headers["WARC-Payload-Digest"] == record.headers["WARC-Block-Digest"] == digest(block)
    assert record.block == block
    assert [found.rec_type for found in WarcioIterator(BytesIO(data))] == ["conversion"]
    assert len(list(FastwarcIterator(BytesIO(data)))) == 1


def test_a_copy_refers_to_its_original_and_has_no_body() -> None:
    """A revisit record: own address, date, id and headers, the digest of the payload; two readers read it."""
    page = exchange(7, b"<p>same</p>", response_headers=[(b"Content-Type", b"text/html"), (b"Content-Length", b"11")])
    origin = Origin("http://b.example/\u00e9#x", 1_600_000_000_123, b"<urn:uuid:11111111-1111-4111-8111-111111111111>")
    data, request_data = exchange_records(page, INFO_ID, origin=origin)
    revisit, request = parse_record(data), parse_record(request_data)
    whole, _ = records(page)
    assert revisit.type == "revisit"
    assert revisit.headers["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    assert revisit.headers["WARC-Refers-To"] == origin.record_id.decode()
    assert revisit.headers["WARC-Refers-To-Target-URI"] == "http://b.example/%C3%A9"
    assert revisit.headers["WARC-Refers-To-Date"] == "2020-09-13T12:26:40.123Z"
    assert revisit.block == whole.block.removesuffix(b"<p>same</p>")
    assert revisit.block.endswith(b"Content-Length: 11\r\n\r\n")
    assert revisit.headers["WARC-Block-Digest"] == digest(revisit.block)
    for name in "WARC-Target-URI", "WARC-Date", "WARC-IP-Address", "WARC-Warcinfo-ID", "WARC-Payload-Digest":
        assert revisit.headers[name] == whole.headers[name]
    assert request.headers["WARC-Concurrent-To"] == revisit.headers["WARC-Record-ID"]
    (read,) = WarcioIterator(BytesIO(data))
    assert (read.rec_type, read.http_headers.get_header("Content-Type")) == ("revisit", "text/html")
    assert len(list(FastwarcIterator(BytesIO(data), verify_digests=True))) == 1


def test_a_hostile_address_of_an_original_forges_no_header() -> None:
    """Line breaks in it are escaped."""
    origin = Origin("http://b.example/\r\nWARC-Type: response", 0, b"<urn:uuid:0>")
    revisit = parse_record(exchange_records(exchange(7), INFO_ID, origin=origin)[0])
    assert revisit.type == "revisit"
    assert revisit.headers["WARC-Refers-To-Target-URI"] == "http://b.example/%0D%0AWARC-Type:%20response"


def test_digests_are_of_the_block_and_of_the_body() -> None:
    """Both digests can be recomputed from the bytes in the record."""
    response, request = records(exchange(1, b"body", method="POST", request_body=b"form=1"))
    for record, body in (response, b"body"), (request, b"form=1"):
        assert record.headers["WARC-Block-Digest"] == digest(record.block)
        assert record.headers["WARC-Payload-Digest"] == digest(body)


name = st.text("abcdefghijklmnopqrstuvwxyzABCDEFG-", min_size=1, max_size=8).map(str.encode)
value = st.binary(max_size=20).map(lambda raw: raw.translate(None, b"\r\n"))


@given(st.lists(st.tuples(name.map(b"X-".__add__), value), max_size=6), st.binary(max_size=200))
def test_headers_and_body_are_kept_byte_for_byte(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Order, case, duplicates and bytes of response headers, and the body, come back as they were."""
    response, _ = records(exchange(1, body, response_headers=headers))
    assert response.http_head == [b"HTTP/1.1 200 OK", *(name + b": " + value for name, value in headers)]
    assert response.body == body


@given(st.binary(max_size=60), st.binary(max_size=60))
@example(b"content-length", b"9")
@example(b"Transfer-Encoding", b"chunked")
def test_a_header_cannot_forge_lines_or_records(name: bytes, value: bytes) -> None:
    """Whatever bytes a server sends as a header stay within one line of one record."""
    hostile = exchange(1, response_headers=[(name, value + b"\r\n\r\nWARC/1.1\r\n\nX: y\r")])
    response, _ = records(hostile)
    # A length that is none is kept under another name, and ours stands behind it.
    added = [b"Content-Length: %d" % len(hostile.response_body)] if name.lower() == b"content-length" else []
    assert len(response.http_head) == 2 + len(added)
    assert response.http_head[2:] == added
    assert response.body == hostile.response_body


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_no_line_ending_of_a_header_ends_its_line(ending: bytes) -> None:
    """Each one alone; readers differ in which they take for an end."""
    response, _ = records(exchange(1, response_headers=[(b"Server", b"s" + ending + b"X: y")]))
    assert response.http_head[1:] == [b"Server: s X: y"]


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"response_headers": [(b"Content-Length", b"4")]}, [b"Content-Length: 4"]),
        (
            {"response_headers": [(b"Content-Length", b"900"), (b"Server", b"s")]},
            [b"X-Crawler-Content-Length: 900", b"Content-Length: 4", b"Server: s"],
        ),
        (
            {"response_headers": [(b"Content-Length", b"5"), (b"content-length", b"6")]},
            [b"X-Crawler-Content-Length: 5", b"Content-Length: 4", b"X-Crawler-Content-Length: 6"],
        ),
        (
            {"response_headers": [(b"transfer-encoding", b"chunked")]},
            [b"X-Crawler-Transfer-Encoding: chunked"],
        ),
        ({"response_headers": [(b"Content-Encoding", b"gzip")]}, [b"Content-Encoding: gzip"]),
        ({"response_headers": [(b"Content-Length", b"900")], "method": "HEAD"}, [b"Content-Length: 900"]),
        ({"response_headers": [(b"Content-Length", b"900")], "status": 304}, [b"Content-Length: 900"]),
    ],
)
def test_headers_that_would_lie_about_the_body_are_renamed(changes: dict, kept: list[bytes]) -> None:
    """Chunking and lengths that do not fit move to X-Crawler- names; where no body belongs, nothing does."""
    response, _ = records(exchange(1, b"body", **changes))
    assert response.http_head[1:] == kept


@pytest.mark.parametrize(
    ("url", "target", "host", "path"),
    [
        ("http://a.example", "http://a.example", b"a.example", b"/"),
        ("http://a.example:80/x?y#z", "http://a.example:80/x?y", b"a.example", b"/x?y"),
        ("https://a.example:80/", "https://a.example:80/", b"a.example:80", b"/"),
        ("https://a.example:443/", "https://a.example:443/", b"a.example", b"/"),
        ("http://u:p@a.example/", "http://a.example/", b"a.example", b"/"),
        ("http://u@v@a.example:80/@x", "http://a.example:80/@x", b"a.example", b"/@x"),
        ("HTTP://a.example:80/?q=a@b:80", "HTTP://a.example:80/?q=a@b:80", b"a.example", b"/?q=a@b:80"),
        ("http://a.example?q=/", "http://a.example?q=/", b"a.example", b"/?q=/"),
        ("http://[::1]:8080/%7e", "http://[::1]:8080/%7e", b"[::1]:8080", b"/%7e"),
        (
            "http://a.example/a b\r\nX: y",
            "http://a.example/a%20b%0D%0AX:%20y",
            b"a.example",
            b"/a%20b%0D%0AX:%20y",
        ),
        ("http://a.example/\u00e4", "http://a.example/%C3%A4", b"a.example", b"/%C3%A4"),
    ],
)
def test_url_becomes_target_host_and_request_line(url: str, target: str, host: bytes, path: bytes) -> None:
    """The record's URL has no fragment; the request has the origin form, and Host as browsers send it."""
    response, request = records(exchange(1, url=url))
    assert response.headers["WARC-Target-URI"] == target
    assert request.http_head[:2] == [b"GET " + path + b" HTTP/1.1", b"Host: " + host]


def test_request_is_completed_as_download_handlers_do() -> None:
    """Host and Content-Length are added where Scrapy's headers lack them, and never doubled."""
    _, post = records(exchange(1, method="POST", request_body=b"a=1", request_headers=[(b"Host", b"b.example")]))
    assert post.http_head == [b"POST /1 HTTP/1.1", b"Host: b.example", b"Content-Length: 3"]
    _, empty = records(exchange(1, method="POST", request_headers=[(b"Content-Length", b"0")]))
    assert empty.http_head == [b"POST /1 HTTP/1.1", b"Host: a.example", b"Content-Length: 0"]
    _, silent = records(exchange(1, method="POST", request_headers=[]))
    assert silent.http_head == [b"POST /1 HTTP/1.1", b"Host: a.example", b"Content-Length: 0"]
    _, odd = records(exchange(1, request_body=b"a=1", request_headers=[(b"Accept", b"*/*"), (b"DNT", b"1")]))
    assert odd.http_head == [b"GET /1 HTTP/1.1", b"Host: a.example", b"Accept: */*", b"DNT: 1", b"Content-Length: 3"]


def test_proxy_credentials_are_not_stored() -> None:
    """Proxy-Authorization was not sent to the server and stays out of the file."""
    _, request = records(exchange(1, request_headers=[(b"proxy-authorization", b"Basic c2VjcmV0")]))
    assert request.http_head == [b"GET /1 HTTP/1.1", b"Host: a.example"]


@pytest.mark.parametrize(
    ("protocol", "version", "named"),
    [(None, b"HTTP/1.1", None), ("HTTP/1.0", b"HTTP/1.0", None), ("h2", b"HTTP/1.1", "h2")],
)
def test_later_protocols_are_written_as_http_1_1_and_named(
    protocol: str | None, version: bytes, named: str | None
) -> None:
    """Readers parse HTTP/1 only, so that is the form; the real protocol stands in WARC-Protocol."""
    response, request = records(exchange(1, protocol=protocol))
    assert response.http_head[0] == version + b" 200 OK"
    assert response.headers.get("WARC-Protocol") == request.headers.get("WARC-Protocol") == named


@pytest.mark.parametrize(
    ("status", "reason", "line"),
    [(404, None, "404 Not Found"), (599, None, "599"), (200, "Fine", "200 Fine")],
)
def test_status_lines_are_read_by_other_readers(status: int, reason: str | None, line: str) -> None:
    """The reason is the server's, else the registered one, else empty; warcio and fastwarc agree."""
    data, _ = exchange_records(exchange(1, status=status, reason=reason), INFO_ID)
    assert next(iter(WarcioIterator(BytesIO(data)))).http_headers.statusline == line
    assert next(iter(FastwarcIterator(BytesIO(data)))).http_headers.status_code == status


def test_a_url_without_a_host_is_a_mistake_of_the_caller() -> None:
    """It has no Host to write; the message has the URL."""
    with pytest.raises(ContractError, match="/1' is not absolute"):
        records(exchange(1, url="/1"))


def test_notes_of_an_exchange_are_its_last_record() -> None:
    """They refer to the response; an exchange without notes has two records."""
    response, _, note = map(parse_record, exchange_records(exchange(1, notes={"depth": "3"}), INFO_ID))
    assert note.type == "metadata"
    assert note.headers["WARC-Refers-To"] == response.headers["WARC-Record-ID"]
    assert note.block == b"depth: 3\r\n"


def test_truncation_is_said() -> None:
    """A body that is not whole carries WARC-Truncated with the reason; a whole one does not."""
    assert records(exchange(1, truncated="disconnect"))[0].headers["WARC-Truncated"] == "disconnect"
    assert "WARC-Truncated" not in records(exchange(1))[0].headers


def test_warcinfo_lists_its_fields() -> None:
    """The fields handed in stand in the block, one a line, and cannot forge others."""
    record = parse_record(warcinfo_record(INFO_ID, "f.warc.gz", 0, {"software": "s", "isPartOf": "a\r\nb: c"}))
    assert record.headers["WARC-Filename"] == "f.warc.gz"
    assert record.headers["WARC-Date"] == "1970-01-01T00:00:00.000Z"
    assert record.block == b"format: WARC File Format 1.1\r\nsoftware: s\r\nisPartOf: a b: c\r\n"
