"""The blacklist: how entries are written, what they cover, and which of two places wins."""

from __future__ import annotations

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.features.traps.shape import KINDS
from bigcrawl.scheduler.records.queued_url import RANGES_SHIFT, TRAITS_SHIFT, UNCHECKED
from bigcrawl.scheduler.rules.blacklist import NOTHING, OFF, ON, Blacklist, in_force, parse_entries, parse_entry
from bigcrawl.url.domain import PublicSuffixes
from tests.unit.scheduler.world import queued

SUFFIXES = PublicSuffixes.from_text(b"com\ntest\norg\n", private=False)


def blacklist(*entries: str) -> Blacklist:
    return Blacklist(parse_entries(entries), SUFFIXES.pld)


def withheld(entries: tuple[str, ...], *urls: str) -> list[bool]:
    return [blacklist(*entries).withholds(url) for url in queued(*urls)]


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("www.example.com", [False, True, False, False]),
        ("example.com", [True, True, True, False]),
        ("*.example.com", [False, True, True, False]),
        ("re:/calendar", [False, False, True, True]),
        ("192.0.2.0/24", [False, False, False, False]),
    ],
)
def test_what_an_entry_covers(entry: str, wanted: list[bool]) -> None:
    """A host, a whole PLD, the hosts below a name, or URLs; addresses are no matter of names."""
    urls = ("http://example.com/", "http://www.example.com/", "http://m.example.com/calendar", "http://b.org/calendar")
    assert withheld((entry,), *urls) == wanted


def test_no_rule_of_a_host_stands_above_it() -> None:
    """A pattern holds also what other entries speak of: whichever covers a URL is enough."""
    assert withheld(("other.com", "re:x$"), "http://example.com/x", "http://example.com/y", "http://other.com/") == [
        True,
        False,
        True,
    ]


def test_addresses_are_compared_as_numbers() -> None:
    """One address, a range, IPv6; a name is no address."""
    made = blacklist("192.0.2.7", "198.51.100.77/24", "2001:db8::/32")
    assert [made.of_address(a) for a in ("192.0.2.7", "192.0.2.8", "198.51.100.1", "2001:db8::5", "a.com", "")] == [
        "192.0.2.7/32",
        None,
        "198.51.100.0/24",
        "2001:db8::/32",
        None,
        None,
    ]


def test_a_url_that_was_set_aside_for_its_address_stays_until_ranges_change() -> None:
    """Its mark is of all ranges of that time; its other flags stay as they are."""
    [url] = queued("http://example.com/")
    before = blacklist("192.0.2.0/24", "b.org")
    flags = UNCHECKED | (2 ** len(KINDS) - 1) << TRAITS_SHIFT
    marked = url._replace(flags=before.mark_flags(flags, by_address=True))
    assert marked.flags % (1 << RANGES_SHIFT) == flags
    assert before.withholds(marked)
    assert blacklist("192.0.2.0/24").withholds(marked)
    assert not blacklist("192.0.2.0/24", "198.51.100.0/24").withholds(marked)
    assert not NOTHING.withholds(marked)
    assert before.mark_flags(marked.flags, by_address=False) == flags


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (" WWW.Example.COM ", "www.example.com"),
        ("m\u00fcller.test", "xn--mller-kva.test"),
        ("192.0.2.7", "192.0.2.7/32"),
        ("192.0.2.7/24", "192.0.2.0/24"),
        ("[2001:DB8::1]", "2001:db8::1/128"),
        ("re:/a/b", "re:/a/b"),
        ("*.Blog.Test", "*.blog.test"),
    ],
)
def test_entries_have_one_spelling(written: str, wanted: str) -> None:
    """Names as A-labels in lower case, addresses as networks."""
    assert parse_entry(written) == wanted


@pytest.mark.parametrize("written", ["", "http://a.com/", "a.com/24", "192.0.2.0/33", "a b", "re:(", "*.", "a.com:80"])
def test_what_is_no_entry_is_refused(written: str) -> None:
    """The message names the setting and the entry."""
    with pytest.raises(ConfigError, match="BIGCRAWL_BLACKLIST has"):
        parse_entry(written)


def test_what_was_said_while_the_crawl_ran_wins() -> None:
    """On and off over the settings; what cannot be read is told and left out."""
    live = {b"a.com": OFF, b"c.com": ON, b"\xff": ON, b"no name": ON}
    entries, faults = in_force(parse_entries(["a.com", "b.com"]), live)
    assert entries == {"b.com", "c.com"}
    assert len(faults) == 2


def test_seed_at_a_closed_address_stays_until_the_settings_open_others() -> None:
    """Without an entry too; where all is open nothing is asked of a queued URL."""
    some, other = (Blacklist((), SUFFIXES.pld, opened) for opened in ("", "10.0.0.0/8"))
    [url] = queued("http://a.com/")
    kept = url._replace(flags=some.mark_flags(url.flags, by_address=True))
    assert some.withholding_check is not None
    assert other.withholding_check is not None
    assert [some.withholding_check(kept), some.withholding_check(url), other.withholding_check(kept), bool(some)] == [
        True,
        False,
        False,
        False,
    ]
    assert len({some.digest, other.digest, blacklist("a.com").digest, NOTHING.digest}) == 4
    assert Blacklist((), SUFFIXES.pld, None).withholding_check is None


def test_an_empty_list_is_false_and_covers_nothing() -> None:
    """A page then costs no more than that look."""
    assert not len(NOTHING)
    assert NOTHING.of_host("a.com") is None
    assert NOTHING.mark == 0
