"""Listings of directories whose URL lacks its final slash: links are below the directory (Nexplorer, 002 §3.3.1)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import html5lib
import pytest
from scrapy.http import HtmlResponse

from bigcrawl.links.page import extract_links
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

# What servers write: the title, the URL's path, and why.
LISTINGS = [
    ("Index of /pub", "/pub"),  # Apache, mod_autoindex with DirectorySlash Off
    ("Index of /pub/", "/pub"),  # nginx, lighttpd
    ("Index of /pub/docs", "/pub/docs"),
    ("index of /pub", "/pub"),
    ("  Index of /pub\n", "/pub"),
    ("Index of pub", "/pub"),  # thttpd
    ("Index of: /pub", "/pub"),
    ("Index of http://a.example/pub/", "/pub"),
    ("Index of /my files", "/my%20files"),  # unescaped
    ("Index of /my%20files/", "/my%20files"),
    ("Index of /größe", "/gr%C3%B6%C3%9Fe"),
    ("Index of /a&amp;b", "/a&b"),  # HTML, 13.1.4
    ("Index of /pub", "/pub?C=N;O=D"),  # by a column of Apache's
    ("Directory listing for /pub/", "/pub"),  # http.server, twisted.web
    ("Directory listing for /pub", "/pub"),
    ("Directory Listing For [/pub/]", "/pub"),  # Tomcat
    ("Directory Listing For /pub/", "/pub"),
    ("Directory: /pub/", "/pub"),  # Jetty
    ("Directory of /pub", "/pub"),
    ("Directory /pub", "/pub"),
    ("listing directory /pub", "/pub"),  # serve-index
    ("Listing of /pub/", "/pub"),
    ("File listing for /pub", "/pub"),
    ("a.example - /pub/", "/pub"),  # IIS
    ("192.0.2.1 - /pub/docs/", "/pub/docs"),
]
# Not a listing, or one that needs no help: title, path, body, and what the link leads to.
OTHERS = [
    ("Index of /pub/", "/pub/", "<a href=x>", "/pub/x"),  # with its slash
    ("Index of /other", "/pub", "<a href=x>", "/x"),  # it speaks of another
    ("Index of /", "/pub", "<a href=x>", "/x"),
    ("Index of /pub and more", "/pub", "<a href=x>", "/x"),
    ("How to write an index of /pub", "/pub", "<a href=x>", "/x"),
    ("Directory", "/pub", "<a href=x>", "/x"),
    ("Our directory of people", "/people", "<a href=x>", "/x"),
    ("pub", "/pub", "<a href=x>", "/x"),
    ("", "/pub", "<a href=x>", "/x"),
    ("Index of /pub", "/pub", "<base href='/b/'><a href=x>", "/b/x"),  # HTML, 4.2.3: the base counts
    ("Index of /pub", "/pub", "<a href='pub/x'>", "/pub/x"),  # the server has seen to it
    ("Index of /pub", "/pub", "<a href='/x'>", "/x"),
    ("Index of /pub", "/pub", "<a href='../x'>", "/x"),
    ("Index of /pub", "/pub", "<a href='?C=M'>", "/pub/?C=M"),
    ("Index of /pub", "", "<a href=x>", "/x"),
    ("Index of /pub", "/Pub", "<a href=x>", "/x"),
]


def links(path: str, body: str) -> list[str]:
    page: Any = SimpleNamespace(url=f"http://a.example{path}", body=body.encode(), headers={})
    return extract_links(page)


@pytest.mark.parametrize("form", ["<title>{}</title>", "<HTML><HEAD><TITLE\n>{}</TITLE></HEAD>", "<title lang=en>{}"])
@each("title, path", LISTINGS)
def test_relative_links_of_a_listing_are_below_it(title: str, path: str, form: str) -> None:
    """The same as if the URL had its slash, which an independent parser of the page joins."""
    body = form.format(title) + "</title><h1>Index</h1><a href='x.html'>x</a> <a href='sub/'>s</a><a href='../'>up</a>"
    body = "<meta charset=utf-8>" + body
    directory = path.partition("?")[0]
    stands = html5lib.parse(body, namespaceHTMLElements=False)
    response = HtmlResponse(f"http://a.example{directory}/", body=body.encode())
    assert links(path, body) == [response.urljoin(a.get("href")) for a in stands.iter("a")]


@each("title, path, body, target", OTHERS)
def test_other_pages_keep_their_base(title: str, path: str, body: str, target: str) -> None:
    """A page may speak of listings, name another path, or have a base of its own."""
    assert links(path, f"<title>{title}</title>{body}") == [f"http://a.example{target}"]


def test_title_far_down_or_without_end_costs_nothing() -> None:
    """It is looked for at the beginning, and its length is bounded."""
    assert links("/pub", "<p>" * 5_000 + "<title>Index of /pub</title><a href=x>") == ["http://a.example/x"]
    assert links("/pub", "<title>Index of " + "[" * 500_000 + "</title><a href=x>") == ["http://a.example/x"]
