"""User and password in a URL: no part of what is fetched, refused where a user gives them, and shown nowhere."""

from __future__ import annotations

from itertools import product

import hyperlink
import pytest

from bigcrawl.url.canonical import Joiner, UrlError, authority_of, canonicalize, join, refuse_credentials
from bigcrawl.url.header import url_in
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

BASE = "https://base.example/d/p"
# URLs with a user or password, by the WHATWG URL Standard (4.4, authority state), and what is asked for.
WITH = [
    ("http://zoe:secret@a.example/", "http://a.example/"),  # RFC 3986, 3.2.1
    ("https://zoe:secret@a.example:8443/x?y", "https://a.example:8443/x?y"),
    ("http://zoe@a.example/", "http://a.example/"),  # a user alone
    ("http://:secret@a.example/", "http://a.example/"),  # a password alone
    ("http://zoe:@a.example/", "http://a.example/"),
    ("http://zoe:se:cret@a.example/", "http://a.example/"),  # the first colon divides
    ("http://zoe:se@cret@a.example/", "http://a.example/"),  # the last @ ends them
    ("http://zoe%40b.example:secret@a.example/", "http://a.example/"),
    ("http://zoe:sec%2Fret%3F%23@a.example/", "http://a.example/"),
    ("http://zoe:secret%00@a.example/", "http://a.example/"),
    ("http://zöe:sécret@a.example/", "http://a.example/"),
    ("http://zoe smith:secret@a.example/", "http://a.example/"),
    ("http://zoe:sec\tret@a.example/", "http://a.example/"),  # tabs and line ends are removed
    ("http://zoe:sec\nret@a.example/", "http://a.example/"),
    ("  http://zoe:secret@a.example/  ", "http://a.example/"),
    ("HTTP://ZOE:SECRET@A.EXAMPLE/", "http://a.example/"),
    ("http:\\\\zoe:secret@a.example\\x", "http://a.example/x"),  # special authority slashes state
    ("http:/zoe:secret@a.example/", "http://a.example/"),
    ("http:////zoe:secret@a.example/", "http://a.example/"),
    ("http://zoe:secret@a.example:80/", "http://a.example/"),
    ("http://zoe:secret@[::1]:81/", "http://[::1]:81/"),
    ("http://zoe:secret@0x7f.1/", "http://127.0.0.1/"),
    ("http://zoe:secret@münchen.example/", "http://xn--mnchen-3ya.example/"),
    ("http://zoe:secret@a.example./", "http://a.example./"),
    ("http://zoe:secret@a.example", "http://a.example/"),
    ("http://zoe:secret@a.example?q", "http://a.example/?q"),
    ("http://zoe:secret@a.example#f", "http://a.example/"),
    ("http://zoe:secret@a.example/x@y:z", "http://a.example/x@y:z"),
    ("http://www.bank.example@a.example/", "http://a.example/"),  # a host that it is not
    ("http://zoe:secret@a.example//x/../y", "http://a.example//y"),
]
# An @ that is no such sign.
WITHOUT = [
    ("http://a.example/@zoe", "http://a.example/@zoe"),
    ("http://a.example/x?mail=zoe@b.example", "http://a.example/x?mail=zoe@b.example"),
    ("http://a.example?zoe:secret@b.example", "http://a.example/?zoe:secret@b.example"),
    ("http://a.example#zoe:secret@b.example", "http://a.example/"),
    ("http://a.example\\zoe:secret@b.example", "http://a.example/zoe:secret@b.example"),
    ("http://a.example/http://zoe:secret@b.example", "http://a.example/http://zoe:secret@b.example"),
    ("http://@a.example/", "http://a.example/"),  # empty: as if it were not there
    ("http://:@a.example/", "http://a.example/"),
]
# No URLs, or none of the web: their passwords are not shown either.
UNREADABLE = [
    ("ftp://zoe:secret@a.example/", "scheme"),
    ("//zoe:secret@a.example/", "scheme"),
    ("zoe:secret@a.example/", "scheme"),
    ("http://zoe:sec/ret@a.example/", "syntax"),  # a slash ends the authority, and `sec` is not a port
    ("http://zoe:sec?ret@a.example/", "syntax"),
    ("http://zoe:sec#ret@a.example/", "syntax"),
    ("http://zoe:secret@/", "empty-host"),
    ("http://zoe:secret@a example/", "syntax"),
    ("http://zoe:secret@a.example:port/", "syntax"),
    ("http://zoe:secret@a.example/" + "x" * 9_000, "too-long"),
]


@each("url, asked", [*WITH, *WITHOUT])
def test_no_reader_of_urls_keeps_user_or_password(url: str, asked: str) -> None:
    """A link, a redirect, a base and a canonical URL have the key of the URL without them."""
    assert canonicalize(url) == asked
    assert join(BASE, url) == asked
    assert Joiner(BASE)(url) == asked
    assert Joiner(BASE).join_all([url], str) == [asked]
    assert url_in([url.strip().encode()], BASE) == asked
    assert Joiner(url)("/r") == f"{authority_of(asked)}/r"


@each("url", [url for url, _ in WITH])
def test_url_that_a_user_gives_with_them_is_refused(url: str) -> None:
    """The message says what to set instead, and has no part of them."""
    with pytest.raises(UrlError) as refused:
        refuse_credentials(url)
    assert refused.value.reason == "credentials"
    assert "HttpAuthMiddleware" in str(refused.value)
    _shows_no_secret(refused.value)


@pytest.mark.parametrize(("url", "_asked"), WITHOUT)
def test_url_without_them_is_not_refused(url: str, _asked: str) -> None:
    """An @ elsewhere, or with nothing before it, is none of them."""
    refuse_credentials(url)


@pytest.mark.parametrize(("url", "reason"), UNREADABLE)
def test_error_about_a_url_shows_no_password(url: str, reason: str) -> None:
    """Where it is not a URL, all before the last @ may be one."""
    refuse_credentials("http://a.example/")
    with pytest.raises(UrlError) as refused:
        canonicalize(url)
    assert refused.value.reason == reason
    _shows_no_secret(refused.value)


@pytest.mark.parametrize("host", ["a.example", "a.example:81", "[2001:db8::1]:443", "127.0.0.1"])
def test_an_independent_reader_finds_them_in_the_same_urls(host: str) -> None:
    """hyperlink (RFC 3986) divides the authority at the same place."""
    users = ["", "zoe@", "zoe:secret@", "zoe:@", ":secret@", "zoe:se:cret@", "%40:%3A@", "a.example:80@"]
    for scheme, user, path in product(("http", "https"), users, ("/", "/@x", "/?a@b:c", "/x:y@z")):
        url = f"{scheme}://{user}{host}{path}"
        read = hyperlink.URL.from_text(url)
        expected = read.replace(userinfo="").to_text()
        assert canonicalize(url) == canonicalize(expected)
        is_refused = False
        try:
            refuse_credentials(url)
        except UrlError:
            is_refused = True
        assert is_refused == bool(read.userinfo), url


def _shows_no_secret(error: UrlError) -> None:
    shown = f"{error} {error.url} {error.args}".lower()
    for part in ("secret", "sécret", "sec\\", "sec/", "sec?", "sec#", "cret", "ret@", "zoe", "zöe", "www.bank"):
        assert part not in shown, shown
