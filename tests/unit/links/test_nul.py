"""NUL in a reference is U+FFFD, as HTML's tokenizer has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import html5lib
import pytest

from bigcrawl.links.page import extract_links
from bigcrawl.url.canonical import canonicalize
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

# HTML, 13.2.5.36 to 13.2.5.38: unexpected-null-character in an attribute value.
TAGS = [
    f"{before}{value}{after}"
    for before, after in (('<a href="', '">'), ("<a href='", "'>"), ("<a href=", ">"), ('<a class=x href="', '" id=y>'))
    for value in ("/a\0b", "\0/a", "/a\0", "/a?b=\0c", "/a\0?b#\0", "http://b.example/\0", "a\0\0b", "//b.example/c\0")
]


@each("tag", TAGS, ids=ascii)
def test_reference_is_that_of_html5lib(tag: str) -> None:
    """In quotes of both kinds and without."""
    page: Any = SimpleNamespace(url="http://a.example/", body=f"<p>{tag}x</a>".encode(), headers={})
    href = html5lib.parse(page.body, namespaceHTMLElements=False).find(".//a").get("href")
    assert "\0" not in href
    base = "" if "//" in href else "http://a.example" if href.startswith("/") else "http://a.example/"
    expected = canonicalize(("http:" if href.startswith("//") else base) + href)
    assert extract_links(page) == [expected]
