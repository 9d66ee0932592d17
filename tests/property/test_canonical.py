"""Laws of the canonical form, over URLs built to be awkward."""

from __future__ import annotations

import ada_url
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bigcrawl.url.canonical import Joiner, LinkRoom, UrlError, authority_of, canonicalize, host_of, join

pytestmark = pytest.mark.usefixtures("twin")

PIECES = st.sampled_from(
    [
        *(
            "/",
            "//",
            ".",
            "..",
            "%2e",
            "%2E%2e",
            "\\",
            "?",
            "#",
            "@",
            ":",
            ";",
            "&",
            "=",
            "+",
            "%",
            "%4",
            "%41",
        ),
        *(
            "a",
            "B",
            "0",
            "ü",
            "例",
            "\u00ad",
            "\u3002",
            " ",
            "\t",
            "\n",
            "\x00",
            "'",
            '"',
            "<",
            "|",
            "^",
            "~",
        ),
        *("index.html", "a/b", "x=1", "http:", "https://", "javascript:", "xn--", "[::1]", "127.1", "0x7f"),
    ]
)
REFERENCES = st.lists(PIECES, max_size=8).map("".join)
HOSTS = st.sampled_from(
    [
        "example.com",
        "EXAMPLE.com.",
        "münchen.de",
        "127.1",
        "[::1]",
        "a:b@host.example",
        "h:8080",
        "h:80",
        "[fe80::0001]:1",
    ]
)
URLS = st.builds(
    lambda scheme, host, rest: f"{scheme}://{host}/{rest}",
    st.sampled_from(["http", "HTTPS"]),
    HOSTS,
    REFERENCES,
)


def canonical_or_none(url: str) -> str | None:
    try:
        return canonicalize(url, url_max_bytes=1_000_000)
    except UrlError:
        return None


@given(st.one_of(URLS, REFERENCES, st.text()))
@example("http://example.com/a?#")
def test_canonical_form_is_idempotent(url: str) -> None:
    """The canonical form of a canonical form is itself, ASCII, and without a fragment."""
    canonical = canonical_or_none(url)
    if canonical is not None:
        assert canonicalize(canonical, url_max_bytes=1_000_000) == canonical
        assert canonical.isascii()
        assert "#" not in canonical


@given(URLS)
def test_canonical_form_is_the_serialisation_up_to_the_fragment(url: str) -> None:
    """The quick way (joining with nothing) gives what serialising without user, up to the first #, gives."""
    canonical = canonical_or_none(url)
    if canonical is not None:
        parsed = ada_url.URL(url)
        parsed.username = parsed.password = ""
        assert canonical == parsed.href.partition("#")[0]


@given(URLS, REFERENCES)
@example("http://example.com/a/b?c/d", "x/y")
@example("http://h/", "a:b")
def test_joiner_agrees_with_the_parser(base: str, reference: str) -> None:
    """The short way for plain references gives what the WHATWG parser gives, and that is canonical."""
    canonical_base = canonical_or_none(base)
    if canonical_base is None:
        return
    joined = Joiner(base)(reference)
    assert joined == join(canonical_base, reference)
    if joined is not None:
        assert canonical_or_none(joined) == joined


@given(URLS, st.from_regex(r"/?[A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*/?(\?[!-~]*)?(#[ -~]*)?", fullmatch=True))
def test_joiner_agrees_with_the_parser_on_plain_references(base: str, reference: str) -> None:
    """As above, with references most of which take the short way."""
    canonical_base = canonical_or_none(base)
    if canonical_base is not None:
        assert Joiner(base)(reference) == join(canonical_base, reference)


DOTS = st.lists(st.sampled_from(["./", "../"]), max_size=4).map("".join)
ORIGINS = st.builds(
    lambda scheme, host: scheme + "//" + host,
    st.sampled_from(["", "http:", "HTTPS:", "hTtP:"]),
    st.one_of(
        st.sampled_from(
            ["example.com", "Example.COM.", "a:80", "a:443", "a:", "127.1", "1.2.3.256", "xn--a", "a..b", ":1"]
        ),
        st.from_regex(r"[A-Za-z0-9.:-]{1,12}", fullmatch=True),
    ),
)
PATHS = st.from_regex(r"(/?[A-Za-z0-9_.~!$%&'()*+,;=@:-]{0,6}){0,4}(\?[!-~]{0,8})?(#[ -~]{0,4})?", fullmatch=True)
BLANKS = st.text("\x00\t\n\r \x1f\x7f\u00a0", max_size=2)
SHORT_WAYS = st.builds(
    lambda before, start, rest, after: before + start + rest + after,
    BLANKS,
    st.one_of(st.just(""), st.just("/"), DOTS, ORIGINS, st.just("?")),
    PATHS,
    BLANKS,
)


@given(URLS, SHORT_WAYS)
@example("http://h/a/b?c", "?d")
@example("http://h/a//b", "../x")
@example("http://h/", "../../x/../y")
@example("http://h/a/", "../#f")
@example("https://h/a", "//other.example")
@example("http://h/a", "HTTP://Other.example:80/b?c#d")
@example("http://h/a", " /b ")
@example("http://h/a", "/%2e%2e/b")
@example("http://h/a", "b:c")
def test_joiner_agrees_with_the_parser_on_every_short_way(base: str, reference: str) -> None:
    """From the root, from a directory above, with a host, as a query alone, with blanks around: what ada gives."""
    canonical_base = canonical_or_none(base)
    if canonical_base is not None:
        assert Joiner(base)(reference) == join(canonical_base, reference)


@given(SHORT_WAYS)
@example("http://1.2.3.4:8080/a/b.html?c=d")
@example("HTTP://Other.example:80/b?c#d")
@example("https://a.example/%2e%2e/b")
@example("https://a.example./")
@example("//a.example/b")
@example("http://1.2.3.256/")
def test_canonical_form_is_the_parsers_on_every_short_way(url: str) -> None:
    """A plain absolute URL is not parsed, and its canonical form is what ada gives; what ada refuses is refused."""
    try:
        parsed = ada_url.normalize_url(url).partition("#")[0]
    except ValueError:
        parsed = ""
    expected = parsed if parsed.startswith(("http://", "https://")) else None
    assert canonical_or_none(url) == expected


@given(URLS, st.lists(st.one_of(SHORT_WAYS, REFERENCES), max_size=12))
def test_many_references_are_joined_as_one_by_one(base: str, references: list[str]) -> None:
    """All at once gives what each alone gives, in order, each once; only what is not plain is spelled anew."""
    if canonical_or_none(base) is None:
        return
    joiner = Joiner(base)
    asked: list[str] = []

    def respell(reference: str) -> str | None:
        asked.append(reference)
        return None if len(reference) % 3 == 0 else reference

    found = joiner.join_all(references, respell)
    kept = [reference for reference in references if reference not in asked or len(reference) % 3]
    assert found == list(dict.fromkeys(url for url in map(joiner, kept) if url is not None))
    assert all(reference.partition("#")[0].isascii() for reference in references if reference not in asked)


@given(st.lists(st.one_of(SHORT_WAYS, REFERENCES), max_size=12), st.integers(20, 60), st.integers(0, 400))
@example(["/a", "/a", "/b"], 20, 60)
@example(["/a", "/a", "/b"], 20, 40)
@example(["/a", "//1.2.3.400/"], 20, 400)
@example(["/a", "/" + "b" * 19], 20, 400)
def test_room_is_used_up_url_by_url(references: list[str], longest: int, most: int) -> None:
    """Repeats and long URLs count too; what comes after the last character that there is room for is left out."""
    references = [reference for reference in references if len(reference) <= longest]
    joiner, room, expected = Joiner("http://example.com/"), LinkRoom(longest, most), LinkRoom(longest, most)
    urls = []
    for reference in references:
        if expected.bytes_left < 0:
            expected.is_used_up = True
            break
        url = joiner(reference) or ""
        expected.bytes_left -= len(url)
        if len(url) > longest:
            expected.too_long += 1
        elif url:
            urls.append(url)
    assert joiner.join_all(references, str, room) == list(dict.fromkeys(urls))
    room.parser_bytes_left = expected.parser_bytes_left
    assert room == expected


@given(URLS)
def test_host_and_authority_are_what_the_parser_says(url: str) -> None:
    """Cutting the canonical string gives the parser's own hostname, port and scheme."""
    canonical = canonical_or_none(url)
    if canonical is None:
        return
    parsed = ada_url.URL(canonical)
    hostname = parsed.hostname.strip("[]")
    assert host_of(canonical) == (hostname[:-1] if len(hostname) > 1 and hostname[-1] == "." else hostname)
    assert authority_of(canonical) == parsed.origin
