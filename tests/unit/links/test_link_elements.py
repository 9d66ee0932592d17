"""`<link>` leads to pages by some of its relations, if it is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import html5lib
import pytest

from bigcrawl.links.page import extract_links, read_page
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

# HTML, 4.6.7: link types, ASCII case-insensitive, separated by ASCII whitespace. RFC 5988 for `previous`.
FOLLOWED = {"next", "prev", "previous", "alternate", "canonical"}
RELATIONS = (
    *(
        "next",
        "prev",
        "previous",
        "alternate",
        "canonical",
        "NEXT",
        "Alternate",
        "alternate stylesheet",
        "next nofollow",
    ),
    *("\tnext\n", "stylesheet", "icon", "preload", "dns-prefetch", "nextpage", "", "amphtml"),
)
FORMS = ("<link rel='{}' href='/n'>", '<LINK HREF="/n" type=x REL="{}" />', "<link rel='{}' href=/n media=x><p>")


@pytest.mark.parametrize("form", FORMS)
@each("relation", RELATIONS)
def test_element_leads_to_a_page_by_its_relation(relation: str, form: str) -> None:
    """By default it leads to none."""
    body = form.format(relation) + "<a href='/a'>a</a>"
    page: Any = SimpleNamespace(url="http://a.example/", body=body.encode(), headers={})
    link = html5lib.parse(body, namespaceHTMLElements=False).find(".//link")
    told = set(link.get("rel").lower().split())
    is_followed = bool(told & FOLLOWED) and "nofollow" not in told
    assert link.get("href") == "/n"
    assert extract_links(page, tags=("a", "link")) == ["http://a.example/n"] * is_followed + ["http://a.example/a"]
    assert extract_links(page) == ["http://a.example/a"]
    assert (read_page(page).page_canonical is not None) == ("canonical" in told)
