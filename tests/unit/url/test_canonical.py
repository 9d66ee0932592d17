from __future__ import annotations

import pytest

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.url.canonical import (
    URL_MAX_BYTES,
    Joiner,
    LinkRoom,
    UrlError,
    authority_of,
    canonicalize,
    host_of,
    join,
)
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

CANONICAL = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.com:80/A/../b?b=1&a=2#f#g", "http://example.com/b?b=1&a=2"),
    ("https://example.com:443/", "https://example.com/"),
    ("http://example.com:443/", "http://example.com:443/"),
    ("  http://example.com/\n", "http://example.com/"),
    ("http://exa\tmple.com/a\r\nb", "http://example.com/ab"),
    ("http:example.com", "http://example.com/"),
    ("http:\\\\example.com\\a", "http://example.com/a"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
    ("http://münchen.example/ü?ü", "http://xn--mnchen-3ya.example/%C3%BC?%C3%BC"),
    ("http://ex%41mple.com/", "http://example.com/"),
    ("http://example.com/a b?c d'", "http://example.com/a%20b?c%20d%27"),
    ("http://example.com/%7e/%2F", "http://example.com/%7e/%2F"),
    ("http://example.com/a/./b/%2e%2e/c", "http://example.com/a/c"),
    ("http://example.com/?", "http://example.com/?"),
    ("http://example.com/?#", "http://example.com/?"),
    ("http://example.com//a//b", "http://example.com//a//b"),
    ("http://example.com./", "http://example.com./"),
    ("http://example.com/a?b#c?d", "http://example.com/a?b"),
]


@each("url, canonical", CANONICAL)
def test_canonical_form_is_the_whatwg_serialisation_without_its_fragment(url: str, canonical: str) -> None:
    """Every spelling of a URL gives one string, and that string gives itself."""
    assert canonicalize(url) == canonical
    assert canonicalize(canonical) == canonical


@each(
    "url, reason",
    [
        ("", "scheme"),
        ("example.com/a", "scheme"),
        ("//example.com/a", "scheme"),
        ("/a", "scheme"),
        ("ftp://example.com/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("mailto:a@example.com", "scheme"),
        ("data:text/html,x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("http://", "empty-host"),
        ("https:///", "empty-host"),
        ("http://?a", "empty-host"),
        ("http://user@/", "empty-host"),
        ("http://:80/", "empty-host"),
        ("http://exa mple.com/", "syntax"),
        ("http://example.com:99999/", "syntax"),
        ("http://example.com:a/", "syntax"),
        ("http://[::1/", "syntax"),
        ("http://1.2.3.4.5/", "syntax"),
        ("http://example.com/\ud800", "syntax"),
        ("http://example.com/" + "a" * URL_MAX_BYTES, "too-long"),
        ("http://example.com/" + "ü" * (URL_MAX_BYTES // 6), "too-long"),
    ],
)
def test_what_is_no_url_to_crawl_is_refused_with_its_reason(url: str, reason: str) -> None:
    """A refusal says which of four reasons it has, as an error of bigcrawl's and a ValueError."""
    with pytest.raises(UrlError) as caught:
        canonicalize(url)
    assert caught.value.reason == reason
    assert isinstance(caught.value, BigcrawlError)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 400


def test_length_is_that_of_the_canonical_form_and_bounded_by_the_callers_number() -> None:
    """Exactly `url_max_bytes` is accepted, one byte more is not; a fragment does not count."""
    url = "http://example.com/abc"
    assert canonicalize(url + "#" + "f" * 99, url_max_bytes=len(url)) == url
    with pytest.raises(UrlError, match="longer"):
        canonicalize(url, url_max_bytes=len(url) - 1)


REFERENCES = [
    ("", "http://example.com/a/b?q"),
    ("#f", "http://example.com/a/b?q"),
    ("?x=1#f", "http://example.com/a/b?x=1"),
    ("c", "http://example.com/a/c"),
    ("c/d.html?e=%20&f", "http://example.com/a/c/d.html?e=%20&f"),
    ("/c#f\ng", "http://example.com/c"),
    ("/", "http://example.com/"),
    ("./c", "http://example.com/a/c"),
    ("../c", "http://example.com/c"),
    ("../../../c", "http://example.com/c"),
    ("c/../d/", "http://example.com/a/d/"),
    ("/c/.", "http://example.com/c/"),
    (".hidden", "http://example.com/a/.hidden"),
    ("//other.example/x", "http://other.example/x"),
    ("https://other.example", "https://other.example/"),
    ("http:c", "http://example.com/a/c"),
    (" /c d\n", "http://example.com/c%20d"),
    ("/c'd?e'f", "http://example.com/c'd?e%27f"),
    ("c:d", None),
    ("mailto:a@example.com", None),
    ("javascript:void(0)", None),
    ("http://[", None),
    ("http://example.com:x/", None),
    ("\ud800", None),
]


@each("reference, url", REFERENCES)
def test_references_are_joined_as_browsers_do(reference: str, url: str | None) -> None:
    """`join` and `Joiner` give the same canonical URL, or None for what cannot be crawled."""
    base = "http://example.com/a/b?q"
    assert join(base, reference) == url
    assert Joiner(base)(reference) == url


def test_joiner_takes_a_base_that_is_not_canonical() -> None:
    """The base is made canonical once, so plain references and others agree; junk is refused."""
    joiner = Joiner("HTTP://u:p@Example.com:80/x/../dir/page?a/b#c/d")
    assert joiner("y") == "http://example.com/dir/y"
    assert joiner("/y") == "http://example.com/y"
    assert joiner("./y") == "http://example.com/dir/y"
    with pytest.raises(UrlError):
        Joiner("about:blank")


@pytest.mark.parametrize(
    ("url", "host", "authority"),
    [
        ("http://example.com/a:b@c/", "example.com", "http://example.com"),
        ("https://example.com:8443/?@x", "example.com", "https://example.com:8443"),
        ("http://user:pass@example.com:81/", "example.com", "http://example.com:81"),
        ("http://user@example.com/", "example.com", "http://example.com"),
        ("http://[2001:db8::1]/", "2001:db8::1", "http://[2001:db8::1]"),
        ("http://u@[::1]:8080/", "::1", "http://[::1]:8080"),
        ("http://127.0.0.1:80/", "127.0.0.1", "http://127.0.0.1"),
        ("http://EXAMPLE.com./", "example.com", "http://example.com."),
        ("http://bücher.example/", "xn--bcher-kva.example", "http://xn--bcher-kva.example"),
        ("http://./", ".", "http://."),
    ],
)
def test_host_and_authority_leave_out_user_password_and_default_port(url: str, host: str, authority: str) -> None:
    """The host is the unit of delay, without port and final dot; the authority that of robots rules."""
    canonical = canonicalize(url)
    assert host_of(canonical) == host
    assert authority_of(canonical) == authority


def test_a_host_that_is_none_is_asked_for_once() -> None:
    """Not again together with the base, which may be long."""
    joiner = Joiner("http://site.example/" + "x" * 8_000 + "/")
    room = LinkRoom(parser_bytes_left=0)
    assert joiner.join_all(["//1.2.3.400/x", "//a:b", "http://1.2.3.401"], str, room) == []
    assert not room.is_used_up
