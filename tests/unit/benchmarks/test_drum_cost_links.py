"""IRLbot's l and p: each link of a page counts, as often as it is there."""

from __future__ import annotations

from benchmarks.drum_cost.links import ReadPage, crawl, links_of
from bigcrawl_simweb.model.web import Web

PAGE = b"""<a href=/x>.</a><a href="/x#top">.</a><a href=http://a.example/x>.</a><a href=y rel=nofollow>.</a>
<a href=mailto:a@a.example>.</a><a href=#here>.</a><a href=/z>.</a>"""


def test_each_link_counts_and_what_leads_to_no_page_does_not() -> None:
    found = links_of(ReadPage(PAGE, "http://a.example/"))
    assert found == {"http://a.example/x": 3, "http://a.example/y": 1, "http://a.example/z": 1}


def test_counts_of_a_crawl_are_those_of_the_webs_own_links() -> None:
    """Without redirects and errors, each page's links are the model's, and what is new is counted once."""
    web = Web(3, 20, 100)
    rows = list(crawl(web, 64, 3))
    assert [row.pages for row in rows[:-1]] == [8, 16, 32][: len(rows) - 1]
    for row in rows:
        assert row.seen <= row.urls + 1 <= row.links + 1
    assert sum(row.recent_links for row in rows) == rows[-1].links
    assert 1 + sum(row.recent_new for row in rows) == rows[-1].seen
