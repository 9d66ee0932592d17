from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import idna
import pytest
import tldextract

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.canonical import canonicalize, host_of
from bigcrawl.url.domain import PublicSuffixes, bundled_text
from tests.support.running.tables import each

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def suffixes() -> PublicSuffixes:
    return PublicSuffixes.bundled()


@each(
    "host, pld",
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("com", "com"),
        ("co.uk", "co.uk"),
        ("www.ck", "www.ck"),  # an exception to *.ck
        ("a.b.ck", "a.b.ck"),  # b.ck is a suffix by *.ck
        ("b.ck", "b.ck"),
        ("a.city.kobe.jp", "city.kobe.jp"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("a.b.github.io", "github.io"),
        ("localhost", "localhost"),
        ("a.b.internal", "b.internal"),
        ("b.internal", "b.internal"),
        ("a.com.internal", "com.internal"),
        ("127.0.0.1", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8::1", "2001:db8::1"),
        ("::1", "::1"),
        ("_dmarc.example.org", "example.org"),
        (".", "."),
        ("a..b", ".b"),
        ("a.example.com..", "example.com"),
        ("a..com", "a..com"),
        ("a.xn--fiqs8s", "a.xn--fiqs8s"),
        ("a.b.xn--fiqs8s", "b.xn--fiqs8s"),
        ("a.b.xn--no-suffix-9wa", "b.xn--no-suffix-9wa"),
    ],
)
def test_pld_is_one_label_below_the_public_suffix(suffixes: PublicSuffixes, host: str, pld: str) -> None:
    """Addresses, single labels and suffixes are their own PLD; an unknown suffix counts as one label."""
    assert suffixes.pld(host) == pld
    assert suffixes.pld(host) == pld  # from the cache


def test_private_suffixes_count_only_when_asked_for(suffixes: PublicSuffixes) -> None:
    """With `private`, sites of a hosting company are PLDs of their own; the text is the same."""
    private = PublicSuffixes.bundled(private=True)
    assert private.pld("a.b.github.io") == "b.github.io"
    assert private.text == suffixes.text


def test_a_copy_made_from_the_text_is_the_same_list(suffixes: PublicSuffixes) -> None:
    """A node that joins makes its list from the crawl record, and gives every host the same PLD."""
    copy = PublicSuffixes.from_text(suffixes.text)
    assert copy.text == suffixes.text
    for host in ("a.b.example.co.uk", "a.b.ck", "a.xn--55qx5d.cn", "x.y.meråker.no", "a.b.internal"):
        assert copy.pld(host) == suffixes.pld(host)


def test_the_longest_rule_prevails_whichever_kind_it_is() -> None:
    """By the algorithm of publicsuffix.org; a rule below a wildcard hides it from nobody else."""
    suffixes = PublicSuffixes.from_text(b"example\n*.example\n*.in.example\n!out.example\na.b.example\n")
    hosts = {"x.in.example": "x.in.example", "in.example": "in.example", "y.x.in.example": "y.x.in.example"}
    hosts |= {"w.out.example": "out.example", "z.a.b.example": "z.a.b.example", "c.b.example": "c.b.example"}
    assert {host: suffixes.pld(host) for host in hosts} == hosts


def test_a_list_is_parsed_once_a_process(suffixes: PublicSuffixes) -> None:
    """Equal texts share what was parsed, and hosts are remembered by each; with `private` it is another list."""
    copies = [PublicSuffixes.from_text(bytes(bytearray(suffixes.text))) for _ in range(2)]
    assert {id(copy._suffixes) for copy in copies} == {id(suffixes._suffixes)}
    copies[0].pld("a.example.com")
    assert "1 hosts cached" in repr(copies[0])
    assert "0 hosts cached" in repr(copies[1])
    assert PublicSuffixes.from_text(suffixes.text, private=True).pld("a.b.github.io") == "b.github.io"


def test_labels_of_hosts_are_not_decoded(suffixes: PublicSuffixes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding one takes up to 100 µs, and a page may name 20,000 hosts below `xn--` labels; the list has theirs."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a label was decoded")

    monkeypatch.setattr(idna, "decode", refuse)
    assert suffixes.pld("a.b.xn--mgbai9azgqp6j") == "b.xn--mgbai9azgqp6j"
    assert suffixes.pld("a.xn--80ak6aa92e.xn--55qx5d.cn") == "xn--80ak6aa92e.xn--55qx5d.cn"
    assert suffixes.pld("a.b.xn--" + "a" * 55) == "b.xn--" + "a" * 55


def extractor(*, private: bool) -> tldextract.TLDExtract:
    """One that has the list of the installed tldextract."""
    return tldextract.TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=private)


@pytest.mark.parametrize("private", [False, True])
def test_plds_are_those_of_tldextract(*, private: bool) -> None:
    """A crawl that goes on must keep each URL's partition: every suffix of the list, below and above it."""
    suffixes, theirs = PublicSuffixes.bundled(private=private), extractor(private=private)
    for at, suffix in enumerate(extractor(private=True).tlds):
        if at % 20 and suffix.isascii() and not suffix.startswith(("!", "*")):
            continue
        name = suffix.removeprefix("!").replace("*", "any")
        for host in (f"a.b.{name}", f"a.{name}", name, f"a.{name.partition('.')[2]}"):
            canonical = host_of(canonicalize(f"http://{host}/"))
            found = theirs.extract_str(canonical)
            expected = found.top_domain_under_public_suffix if found.suffix else ".".join(canonical.split(".")[-2:])
            assert suffixes.pld(canonical) == (expected or canonical)


def test_another_list_gives_other_plds() -> None:
    """The text decides, not what is installed; names in it are read as UTF-8."""
    other = PublicSuffixes.from_text("// ours\nexample\nkawasaki.example\n例え\n".encode())
    assert other.pld("a.b.kawasaki.example") == "b.kawasaki.example"
    assert other.pld("a.b.co.uk") == "co.uk"
    assert other.pld("a.b.xn--r8jz45g") == "b.xn--r8jz45g"


def test_labels_are_spelled_as_in_hosts() -> None:
    """Each of the bundled list that is not ASCII."""
    text = bundled_text().decode()
    labels = {label.removeprefix("!") for line in text.splitlines() for label in line.split(".") if not label.isascii()}
    assert len(labels) > 100
    for label in labels:
        host = host_of(canonicalize(f"http://{label}.example/"))
        assert PublicSuffixes.from_text(f"{label}.example".encode()).pld(f"www.a.{host}") == f"a.{host}"


def test_a_label_that_no_host_can_have_stays_as_it_is() -> None:
    """A list with a mistake in one line is as good as without it."""
    other = PublicSuffixes.from_text("example\n⒈.example\n".encode())
    assert other.pld("a.b.example") == "b.example"


@pytest.mark.parametrize("text", [b"", b"// only a comment\n\n"])
def test_a_text_without_suffixes_is_an_error(text: bytes) -> None:
    """An empty list would make every host of a country one PLD, so it is refused."""
    with pytest.raises(ConfigError, match="no suffix"):
        PublicSuffixes.from_text(text)


def test_nothing_is_fetched_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffixes: PublicSuffixes
) -> None:
    """Lists are made without a connection, a name look-up or a file, whatever the environment says."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "TLDEXTRACT_CACHE"):
        monkeypatch.setenv(name, os.fspath(tmp_path))
    monkeypatch.setenv("TLDEXTRACT_PUBLIC_SUFFIX_LIST_URLS", "http://127.0.0.1:1/list")
    assert PublicSuffixes.bundled().text == suffixes.text
    assert PublicSuffixes.from_text(suffixes.text).pld("a.example.com") == "example.com"
    assert list(tmp_path.iterdir()) == []


def test_the_cache_of_hosts_is_bounded(suffixes: PublicSuffixes) -> None:
    """No more hosts are remembered than `hosts_cached_max`."""
    small = PublicSuffixes.from_text(suffixes.text, hosts_cached_max=10)
    for number in range(100):
        small.pld(f"www.site{number}.com")
    assert "10 hosts cached" in repr(small)
