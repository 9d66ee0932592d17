"""Search keys are those of the package surt, which pywb asks with."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.page_index.search_key import search_key
from tests.support.costs.proportion import assert_costs
from tests.unit.page_index.reference import never_ask_dns, reference_key

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTS = (
    *(
        "example.com",
        "www.Example.com",
        "www12.a.b.example",
        "1.2.3.4",
        "[::1]:8080",
        "user:pw@h.example",
        "h.example:80",
    ),
    *(
        "h.example:443",
        "h.example:8080",
        "h.example:",
        "a..b.",
        "xn--bcher-kva.example",
        "b%C3%BCcher.example",
        "127.1",
    ),
    *(
        "2130706433",
        "www.com",
        "",
        "%77ww.a.example",
        "host_x.example",
        "a.example:0080",
        "017.0.0.1",
        "1.2.3.4.5",
        "www.",
    ),
    *("www..a", "x@y@z", "b\u00fccher.example", "0x7f.1", "0", "300.1.1.1", "%0A"),
)
SEGMENTS = (
    *("", "a", "B", ".", "..", "%2e", "%2E%2e", "%2525", "x.aspx", "(S(abcdefghijklmnopqrstuvwx))", "c%20d", "\u00e9"),
    *("(abcdefghijklmnopqrstuvwx)", "a;b", "~u", "%zz", "a|b", "%", "%0a", "a%23b", "%2f", "%2%35", "index.html"),
)
ARGUMENTS = (
    *(
        "a=1",
        "A=2",
        "a",
        "b=",
        "=c",
        "",
        "sid=" + "a" * 32,
        "PHPSESSID=" + "0" * 32,
        "jsessionid=" + "f" * 32,
        "cfid=1",
    ),
    *("cftoken=2", "ASPSESSIONIDABCDEFGH=" + "A" * 24, "x=%26", "y=?", "xsid=" + "a" * 32, "\u00e9=1", "a=1=2", "+"),
)
SCHEMES = ("http://", "https://", "HTTP://", "http:////", "http://http://", "", "ftp://", "urn:", "dns:", "mailto:")


@st.composite
def urls(draw: st.DrawFn) -> bytes:
    """URLs of parts that the rules treat apart, good and bad."""
    url = draw(st.sampled_from(SCHEMES)) + draw(st.sampled_from(HOSTS))
    url += "".join("/" + segment for segment in draw(st.lists(st.sampled_from(SEGMENTS), max_size=4)))
    arguments = draw(st.none() | st.lists(st.sampled_from(ARGUMENTS), max_size=4))
    url += "" if arguments is None else "?" + "&".join(arguments)
    return (url + draw(st.sampled_from(("", "", "#x")))).encode()


@given(urls())
def test_the_key_of_any_url_is_that_of_surt(url: bytes) -> None:
    """Good URLs and bad ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostbyname_ex", never_ask_dns)
        try:
            expected = reference_key(url)
        except Exception:  # noqa: BLE001 - it refuses what is no URL, each in its way
            search_key(url)
        else:
            assert search_key(url) == expected


@given(st.binary(max_size=40))
def test_whatever_stands_for_a_url_has_a_key(url: bytes) -> None:
    """Bytes that are no URL are no error; what surt makes of them is its own."""
    assert isinstance(search_key(url), bytes)


def test_spellings_of_a_page_have_one_key() -> None:
    """Scheme, www, default port, case, session ids, and the order of arguments make no difference."""
    key = b"com,example)/a/b?x=1&y=2"
    session = "jsessionid=" + "0" * 32
    for url in (
        "http://example.com/A/b?y=2&x=1",
        "https://www.example.com:443/a/b/?x=1&y=2",
        f"http://example.com/a/b?x=1&y=2&{session}",
    ):
        assert search_key(url.encode()) in {key, key.replace(b"?x", b"?&x")}


COSTLY: dict[str, Callable[[int], bytes]] = {
    "escapes of escapes": lambda n: b"http://a/" + b"%25" * (21 * n) + b"41",
    "halves of escapes": lambda n: b"http://a/" + b"%2" * (20 * n) + b"%35" * (8 * n),
    "sessions": lambda n: b"http://a/?" + b"cfid=1&" * (9 * n),
    "ampersands": lambda n: b"http://a/?" + b"&" * (64 * n),
    "brackets": lambda n: b"http://a/" + b"(a(" * (20 * n) + b".aspx",
    "name": lambda n: b"http://" + "\u00e9".encode() * (30 * n),
    "number": lambda n: b"http://" + b"9" * (60 * n),
}


@pytest.mark.parametrize("kind", COSTLY)
def test_a_url_that_is_made_to_cost_costs_in_proportion(kind: str) -> None:
    """Eight times as long, it costs some eight times as much, however it nests."""
    long, short = COSTLY[kind](1_000), COSTLY[kind](125)
    assert search_key(long)
    assert_costs(24, lambda: search_key(long), lambda: search_key(short))


@pytest.mark.parametrize(
    "piece",
    [b"cfid=", b"cfid=a&", b"cfid=1&cftoken=", b"sid=", b"sid=" + b"a" * 31, b"aspsessionid", b"%63fid=", b"%0acfid="],
    ids=bytes.decode,
)
def test_what_looks_like_sessions_costs_in_proportion(piece: bytes) -> None:
    """Eight times as many cost some eight times as much, and not sixty-four."""
    many, few = (b"http://a/?" + piece * pieces for pieces in (8_000, 1_000))
    assert_costs(24, lambda: search_key(many), lambda: search_key(few))
