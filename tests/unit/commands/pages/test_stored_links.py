"""The links of a stored page are those that a crawl would follow."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from bigcrawl.commands.pages.stored_links import LinkReader
from bigcrawl.stored.pages import StoredPage

URL = "http://a.example/dir/"
BODY = b'<a href=x>x</a> <a href="//b.example" rel=nofollow>b</a> <a href=x#2>x</a>'
HTML = {b"Content-Type": [b"text/html"]}


def links(status: int = 200, body: bytes = BODY, *, obeys: bool = True, **headers: Any) -> list[str]:
    reader = LinkReader("bigcrawl", 1 << 20, obeys_nofollow=obeys)
    named = {name.replace("_", "-").encode(): values for name, values in headers.items()}
    return reader.links(StoredPage(URL, status, "HTTP/1.1", {**HTML, **named}, body), URL)


def test_links_of_a_page_are_canonical_and_each_is_there_once() -> None:
    """Without those marked nofollow, unless that is not obeyed."""
    assert links() == ["http://a.example/dir/x"]
    assert links(obeys=False) == ["http://a.example/dir/x", "http://b.example/"]
    assert links(404) == ["http://a.example/dir/x"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (BODY + b"<meta name=robots content=nofollow>", {}),
        (BODY, {"X_Robots_Tag": [b"none"]}),
        (BODY, {"Content_Type": [b"text/plain"]}),
        (b"", {}),
        (b"\0" + BODY, {"Content_Encoding": [b"gzip"]}),
        (gzip.compress(bytes(2 << 20) + BODY), {"Content_Encoding": [b"gzip"]}),
        (BODY, {"Content_Encoding": [b"gzip, gzip, gzip, gzip, gzip"]}),
    ],
)
def test_pages_without_links(body: bytes, headers: dict[str, Any]) -> None:
    """Closed ones, other types, and bodies that are not packed as they say, or too well."""
    assert links(body=body, **headers) == []


def test_packed_page_is_unpacked() -> None:
    """As often as it says."""
    once = gzip.compress(BODY)
    assert links(body=once, Content_Encoding=[b"gzip"]) == ["http://a.example/dir/x"]
    twice = gzip.compress(once)
    assert links(body=twice, Content_Encoding=[b"gzip", b"x-gzip"]) == ["http://a.example/dir/x"]


def test_redirect_leads_to_its_target() -> None:
    """Whatever its page says; one to nowhere leads nowhere."""
    assert links(301, Location=[b"../y"]) == ["http://a.example/y"]
    assert links(302, Location=[b"mailto:me@a.example"]) == []
    assert links(302) == []
    assert links(304, Location=[b"/y"]) == ["http://a.example/dir/x"]
