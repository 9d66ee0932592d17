"""Pages are found in files without an index, those that refer to another for their body too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.reading import find_page
from bigcrawl.warc.segments import WarcWriter
from tests.unit.warc.reading import exchange, gzip_members, parse_record

if TYPE_CHECKING:
    from pathlib import Path


def test_a_page_is_found_that_is_stored_by_reference(tmp_path: Path) -> None:
    """Where its own record is, with its headers."""
    writer = WarcWriter(tmp_path, "c", "n", origins=RecentOrigins(10))
    for number in range(2):
        writer.write(exchange(number, b"%0600d" % 1, record_id=b"<urn:uuid:%d>" % number))
    writer.close()
    found = find_page(tmp_path, lambda url: url.endswith(b"/1"), 0)
    assert found is not None
    (member,) = gzip_members(found.path.read_bytes()[found.offset : found.offset + found.size])
    record = parse_record(member)
    assert (record.type, record.headers["WARC-Target-URI"]) == ("revisit", "http://a.example/1")


def test_a_file_that_is_moved_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """An uploader may take it between two looks."""
    writer = WarcWriter(tmp_path, "c", "n")
    writer.write(exchange(1, b"a page"))
    writer.close()
    for name in ("0.warc.gz", "x.warc.gz.open"):
        (tmp_path / name).symlink_to(tmp_path / "moved.warc.gz")
    assert find_page(tmp_path, lambda url: url.endswith(b"/1"), 0) is not None
