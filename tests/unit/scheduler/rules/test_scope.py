"""Scopes: what of a link's place decides whether it is followed."""

from __future__ import annotations

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.scope import CrawlScope, parse_names, seed_names
from bigcrawl.url.domain import PublicSuffixes

PLD = PublicSuffixes.bundled().pld
PAGE = "http://www.a.example/dir/page.html"


def scope_of(kind: str, *seeds: str) -> CrawlScope:
    return CrawlScope(kind, seed_names(kind, seeds, PLD), PLD)


def kept(scope: CrawlScope, *urls: str, page: str = PAGE) -> list[str]:
    return list(filter(scope.leads_from(page), urls))


def test_any_scope_holds_every_url() -> None:
    """Nothing is asked of a link."""
    assert kept(scope_of("any"), "http://b.example/") == ["http://b.example/"]


def test_host_scope_is_the_hosts_of_page_and_seeds() -> None:
    """Whatever scheme, port or path; not hosts below or beside."""
    scope = scope_of("host", "https://seed.example/x")
    inside = ["http://www.a.example/y", "https://www.a.example:8443/", "http://seed.example/", "http://seed.example./z"]
    outside = ["http://a.example/", "http://below.seed.example/", "http://xseed.example/", "http://b.example/"]
    assert kept(scope, *inside, *outside) == inside
    assert kept(scope, *inside, *outside, page="") == inside[2:], "without a page, the seeds alone"


def test_prefix_of_an_authority_is_no_other_host() -> None:
    """A page's authority is compared to its end, user names are none."""
    scope = scope_of("host")
    outside = ["http://www.a.example.evil.example/", "http://www.a.example@evil.example/"]
    assert kept(scope, *outside) == []


def test_pld_scope_is_all_hosts_of_the_plds_of_page_and_seeds() -> None:
    """By the public-suffix list: not the hosts of a public suffix."""
    scope = scope_of("pld", "http://www.seed.co.uk/")
    inside = ["http://a.example/", "http://x.y.a.example/", "http://seed.co.uk/", "http://m.seed.co.uk/"]
    assert kept(scope, *inside, "http://other.co.uk/", "http://b.example/") == inside


def test_prefix_scope_is_below_the_directories_of_seeds() -> None:
    """To the last slash of a seed's path, on its host and port; a page brings nothing."""
    scope = scope_of(
        "prefix", "http://a.example/docs/index.html?x=/y/", "http://a.example/deep/er/", "http://b.example/"
    )
    inside = [
        "http://a.example/docs/",
        "https://a.example/docs/x/y?q",
        "http://a.example/docs",
        "http://a.example/deep/er/z",
        "http://b.example/anything/at/all",
    ]
    outside = [
        "http://a.example/",
        "http://a.example/docsx/",
        "http://a.example/deep/z",
        "http://a.example:81/docs/x",
        "http://www.a.example/dir/other.html",
        "http://c.example/docs/",
        "http://a.example/x?/docs/",
    ]
    assert kept(scope, *inside, *outside) == inside


def test_list_scope_is_what_its_entries_cover() -> None:
    """Hosts, PLDs, names below a name, and directories."""
    names = parse_names(["www.a.example", "b.example", "*.c.example.net", "D.example/docs", "http://e.example:81/x/"])
    scope = CrawlScope("list", names, PLD)
    inside = [
        "http://www.a.example/",
        "http://any.b.example/",
        "http://x.c.example.net/",
        "http://d.example/docs",
        "http://d.example/docs/x",
        "http://e.example:81/x/y",
    ]
    outside = [
        "http://m.a.example/",
        "http://c.example.net/",
        "http://d.example/",
        "http://e.example/x/y",
        "http://www.d.example/docs/x",
    ]
    assert kept(scope, *inside, *outside) == inside


def test_redirected_seed_brings_its_host() -> None:
    """A page is in scope, so what is on its host is too, although no seed names it."""
    assert kept(scope_of("host", "http://old.example/"), "http://www.new.example/2", page="http://www.new.example/1")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("re:/calendar/", "a scope has no patterns"),
        ("a.example/docs/*", "no host with a directory"),
        ("a.example/?q=/", "no host with a directory"),
        ("ftp://a.example/x/", "no host with a directory"),
        ("a b", "must be a host"),
        ("", "must be a host"),
    ],
)
def test_entry_that_names_nothing_is_an_error_with_a_remedy(entry: str, message: str) -> None:
    """The message has the entry and what it should be."""
    with pytest.raises(ConfigError, match=message):
        parse_names([entry])


def test_long_path_costs_no_more_than_the_longest_name() -> None:
    """Only as many segments are looked at as the directories in scope have."""
    scope = scope_of("prefix", "http://a.example/x/")
    looked: list[str] = []
    scope._covers_directory = lambda directory: bool(looked.append(directory))  # type: ignore[assignment, func-returns-value]
    kept(scope, "http://a.example/" + "y/" * 3_000)
    assert looked == ["a.example/y/"]
