"""The bytes of a header become the URL that browsers go to."""

from __future__ import annotations

import upa_url
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bigcrawl.url.canonical import canonicalize, join
from bigcrawl.url.header import VALUE_BYTES_MAX, text_of, url_in
from tests.support.locations import PAGE, ROWS, Row
from tests.support.running.tables import each
from tests.support.sizes import examples

BYTES = st.lists(
    st.sampled_from(
        [b"/", b"\\", b"?", b"#", b":", b"//", b"..", b"%2e", b"%", b"|", b" ", b"'", b"a", b"http:", b"h.x"]
    )
    | st.binary(min_size=1, max_size=2)
    | st.text(min_size=1, max_size=2).map(lambda text: text.encode("utf-8", "replace")),
    max_size=8,
).map(b"".join)


@each("row", ROWS, ids=lambda row: row.name)
def test_header_names_the_url_that_browsers_go_to(row: Row) -> None:
    """Whatever it was joined with: a canonical URL, as the frontier has it."""
    assert url_in([row.value], row.base) == row.url
    if row.url is not None:
        assert canonicalize(row.url) == row.url


def by_another_parser(base: str, value: bytes) -> str | None:
    """The URL by a second implementation of the WHATWG standard, each byte beyond ASCII escaped before."""
    written = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value)
    try:
        url = upa_url.URL(written, base)
    except (RuntimeError, ValueError):
        return None
    url.hash = ""
    return url.href if url.protocol in ("http:", "https:") else None


@each("row", ROWS, ids=lambda row: row.name)
def test_another_parser_reads_the_table_alike(row: Row) -> None:
    """So the table is not that of one library."""
    assert by_another_parser(row.base, row.value) == row.url


@settings(max_examples=examples(500))
@given(BYTES, st.sampled_from([PAGE, "https://h.example//a//b", "http://[::1]:8080/%2e/?q"]))
@example(b"http://h\xc2\xad.example/", PAGE)
def test_any_bytes_are_read_as_by_another_parser(value: bytes, base: str) -> None:
    """The empty value names nothing."""
    assert url_in([value], base) == (by_another_parser(base, value) if value else None)


def test_first_value_that_is_not_empty_counts() -> None:
    """As in Chromium."""
    assert url_in([b"", b"/a", b"/b"], PAGE) == "http://h.example/a"
    assert url_in([b"", b""], PAGE) is None
    assert url_in([], PAGE) is None
    assert url_in(None, PAGE) is None


@given(st.binary(max_size=20))
def test_text_has_the_bytes(value: bytes) -> None:
    """A parser escapes them one by one."""
    escaped = join(PAGE, "/x" + text_of(b"?" + value.replace(b"#", b"")))
    assert escaped == by_another_parser(PAGE, b"/x?" + value.replace(b"#", b""))


def test_longer_values_are_not_read() -> None:
    """A name takes long to encode; what the longest costs is among the known bombs of redirects."""
    assert url_in([b"/" + b"a" * (VALUE_BYTES_MAX - 1)], PAGE) is not None
    assert url_in([b"/" + b"a" * VALUE_BYTES_MAX], PAGE) is None
