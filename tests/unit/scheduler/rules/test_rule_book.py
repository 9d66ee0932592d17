"""Which limit of which rule applies to a host or a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.rules.budget_rules import NO_LIMITS, RuleBook, parse_rules
from bigcrawl.url.domain import PublicSuffixes
from tests.support.keys import pld_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.scheduler.rules.budget_rules import Limits

SUFFIXES = PublicSuffixes.bundled()


def book(written: Mapping[str, Mapping[str, object]]) -> RuleBook:
    return RuleBook(parse_rules(written), SUFFIXES.pld, pld_key)


def told(limits: Limits) -> dict[str, tuple[int, str]]:
    return {name: (limit.value, limit.rule) for name, limit in limits.items()}


def test_without_a_rule_nothing_applies() -> None:
    """Hosts that no rule names have no limits; of a name only what lies below it is below it."""
    rules = book({"example.com": {"budget": 5}, "*.blog.test": {"budget": 5}})
    for host in ("example.org", "com", "notexample.com", "blog.test", "xblog.test", "127.0.0.1", "::1"):
        assert rules.for_host(host) is NO_LIMITS
        assert rules.for_url(host, f"http://{host}/") is NO_LIMITS
    assert book({}).for_host("example.com") is NO_LIMITS


def test_the_most_specific_rule_wins_limit_by_limit() -> None:
    """Host before PLD before the longest *. before re:, each limit from the first that has it."""
    rules = book({
        "re:example": {"budget": 1, "pages": 1, "bytes": 1, "depth": 1},
        "*.uk": {"budget": 2, "bytes": 2, "depth": 2},
        "*.shop.example.co.uk": {"bytes": 3, "depth": 3},
        "example.co.uk": {"budget": 4, "depth": 4},
        "www.shop.example.co.uk": {"budget": 5},
    })  # fmt: skip
    host = "www.shop.example.co.uk"
    assert told(rules.for_url(host, f"http://{host}/")) == {
        "budget": (5, "www.shop.example.co.uk"),
        "pages": (1, "re:example"),
        "bytes": (3, "*.shop.example.co.uk"),
        "depth": (4, "example.co.uk"),
    }
    assert told(rules.for_host("example.co.uk")) == {
        "budget": (4, "example.co.uk"),
        "bytes": (2, "*.uk"),
        "depth": (4, "example.co.uk"),
    }


def test_directory_goes_before_its_host() -> None:
    """The longest that a URL begins with, limit by limit; it is of one host, and its URLs are counted together."""
    rules = book({
        "Example.com/docs/": {"budget": 1, "depth": 1},
        "example.com/docs/old": {"budget": 2},
        "example.com": {"budget": 3, "pages": 3},
        "re:/docs/": {"budget": 4, "bytes": 4},
    })  # fmt: skip
    assert rules.needs_urls
    found = rules.for_url("example.com", "http://example.com:8080/docs/old.html?a=/")
    assert told(found) == {
        "budget": (2, "example.com/docs/old"),
        "pages": (3, "example.com"),
        "bytes": (4, "re:/docs/"),
        "depth": (1, "example.com/docs/"),
    }
    assert found["budget"].account != found["depth"].account != found["pages"].account
    assert told(rules.for_url("example.com", "https://example.com/docs"))["budget"] == (3, "example.com")
    assert told(rules.for_url("www.example.com", "http://www.example.com/docs/"))["budget"] == (3, "example.com")
    assert len(rules) == 4


def test_star_is_every_host_by_itself() -> None:
    """Behind all names, before patterns; each host counts alone, whatever its PLD."""
    rules = book({"*": {"pages": 9, "depth": 3}, "*.uk": {"pages": 5}, "re:x": {"depth": 1, "bytes": 1}})
    assert told(rules.for_url("a.uk", "http://a.uk/x")) == {
        "pages": (5, "*.uk"),
        "depth": (3, "*"),
        "bytes": (1, "re:x"),
    }
    accounts = {rules.for_host(host)["pages"].account for host in ("a.test", "www.a.test", "::1")}
    assert len(accounts) == 3
    assert rules.pld_budgets() == book({"*": {"budget": 5}}).pld_budgets() == {}


def test_of_several_patterns_the_smallest_value_counts() -> None:
    """No order among patterns is needed, and each limit is compared by itself."""
    rules = book({"re:/a": {"budget": 9, "pages": 1}, "re:/a/b": {"budget": 3, "pages": 7}, "re:/c": {"budget": 0}})
    limits = rules.for_url("x.test", "http://x.test/a/b")
    assert told(limits) == {"budget": (3, "re:/a/b"), "pages": (1, "re:/a")}


def test_a_limit_counts_together_what_its_name_says() -> None:
    """A PLD's limit counts by the PLD's key, a host's and a star's by host, a pattern's by pattern and PLD."""
    rules = book({
        "example.com": {"budget": 1}, "a.example.com": {"pages": 1}, "*.blog.test": {"budget": 1},
        "re:cal": {"bytes": 1},
    })  # fmt: skip
    account = [rules.for_host(host)["budget"] for host in ("example.com", "www.example.com", "a.example.com")]
    assert {limit.account for limit in account if limit} == {pld_key("example.com")}
    ones = rules.for_host("one.blog.test")["budget"]
    others = rules.for_host("two.blog.test")["budget"]
    host = rules.for_host("a.example.com")["pages"]
    cal = [rules.for_url(host, f"http://{host}/cal")["bytes"] for host in ("b.example.com", "c.example.com")]
    other_cal = rules.for_url("x.test", "http://x.test/cal")["bytes"]
    accounts = [limit.account for limit in (ones, others, host, cal[0], other_cal) if limit]
    assert len(set(accounts)) == len(accounts) == 5
    assert cal[0] == cal[1]
    assert pld_key("blog.test") not in accounts


def test_the_budgets_of_whole_plds_are_told_by_key() -> None:
    """Hosts below a PLD, stars, and rules without a budget are not among them."""
    rules = book({
        "example.com": {"budget": 5}, "www.example.com": {"budget": 6}, "b.test": {"pages": 7},
        "*.c.test": {"budget": 8}, "10.0.0.1": {"budget": 0},
    })  # fmt: skip
    assert rules.pld_budgets() == {pld_key("example.com"): 5, pld_key("10.0.0.1"): 0}


def test_urls_are_needed_for_patterns_only() -> None:
    """Without re: rules a host is all that is looked at."""
    assert not book({"a.test": {"budget": 5}, "*.b.test": {"depth": 5}}).needs_urls
    assert book({"re:x": {"budget": 5}}).needs_urls
