"""Records and next pages of answers."""

from __future__ import annotations

import re

import pytest

from bigcrawl_forms.results import RECORDS_OF_PAGE_MAX, next_page_of, records_of

HERE = "http://a.example/search?q=bee&kind="


@pytest.mark.parametrize(
    ("here", "links", "expected"),
    [
        (HERE, {"/search?q=bee&kind=&page=2": "2", "/search?q=bee&kind=&page=3": "3"}, "/search?q=bee&kind=&page=2"),
        (HERE, {"/search?q=bee&page=2": "2"}, "/search?q=bee&page=2"),  # an empty value may be left out
        (HERE, {"/search?q=bee&kind=&page=1": "1"}, ""),
        (HERE + "&page=2", {"/search?q=bee&kind=&page=1": "1", "/search?q=bee&kind=&page=3": "3"}, "3"),
        (HERE + "&page=3", {"/search?q=bee&kind=&page=2": "2"}, ""),
        (HERE, {"/search?q=bee&kind=&start=20": "2", "/search?q=bee&kind=&start=40": "3"}, "start=20"),
        (HERE, {"/search?q=bee&kind=&year=1999": "1999"}, ""),  # which narrows the results
        (HERE, {"/search?q=wasp&kind=&page=2": "2"}, ""),
        (HERE, {"/search?q=bee&kind=x&page=2": "2"}, ""),
        (HERE, {"/search?q=bee&kind=&page=last": "last"}, ""),
        (HERE, {"/other?q=bee&kind=&page=2": "2"}, ""),
        (HERE, {"/search?token=abc": "Next page"}, "/search?token=abc"),
        (HERE, {"/search?token=abc": "»"}, "/search?token=abc"),
        (HERE, {"/search?token=abc": "next to nothing there is"}, ""),
        (HERE, {"/article/7": "Next"}, ""),
        (HERE, {"http://b.example/search?token=abc": "Next"}, ""),
        ("http://a.example/search/bee", {"/search/bee/page/2": "Next"}, "/search/bee/page/2"),
        ("http://a.example/search/bee/page/2", {"/search/bee/page/3": "Weiter"}, "/search/bee/page/3"),
        (HERE, {"/search?q=bee&kind=&page=99999999999999": "9"}, ""),
    ],
)
def test_next_page_is_the_next_of_the_same_query(here: str, links: dict[str, str], expected: str) -> None:
    urls = [url if "://" in url else f"http://a.example{url}" for url in links]
    found = next_page_of(here, urls, [*links.values()]) or ""
    assert found.endswith(expected)
    assert bool(found) == bool(expected)


def test_a_page_that_was_asked_is_no_next_page() -> None:
    urls = ["http://a.example/search?token=abc"]
    assert next_page_of(HERE, urls, ["Next"], asked=urls) is None


def test_records_are_links_to_the_forms_host_that_are_no_searches() -> None:
    urls = [
        *("http://a.example/r/1", "http://a.example/search?q=x", "http://b.example/r/2", "http://a.example/style.css"),
        *("http://a.example/search/page/2", "http://a.example/search/7", "http://a.example/search/8"),
    ]
    anchors = ["One", "x", "Two", "", "2", "Next", "Eight"]
    expected = ["http://a.example/r/1", "http://a.example/search/8"]
    assert records_of(urls, anchors, "http://a.example/search", None) == expected


def test_a_rule_says_which_links_are_records() -> None:
    urls = ["http://b.example/r/2", "http://a.example/r/1", "http://a.example/x"]
    found = records_of(urls, ["", "", ""], "http://a.example/search", re.compile(r"/r/\d+$").search)
    assert found == urls[:2]


def test_records_of_a_page_are_bounded() -> None:
    urls = [f"http://a.example/{number}" for number in range(9_000)]
    assert len(records_of(urls, [""] * len(urls), "http://a.example/s", None)) == RECORDS_OF_PAGE_MAX
