"""Rules set by hand: read, refused, stored, merged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.budget_rules import merge_rules, parse_rules, read_live_rules, rule_json
from bigcrawl.scheduler.rules.names import parse_name

if TYPE_CHECKING:
    from collections.abc import Mapping


def refusal(written: Mapping[str, Mapping[str, object]]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_rules(written)
    return str(caught.value)


def test_rules_are_read_as_written() -> None:
    """Any of four limits, from 0 on; None is no limit."""
    written: dict[str, dict[str, object]] = {
        "example.com": {"budget": 500, "pages": 10**9},
        "*.blog.test": {"budget": 0, "bytes": None},
        "re:/calendar/": {"bytes": 10**12, "depth": 3},
    }
    assert parse_rules(written) == {
        "example.com": {"budget": 500, "pages": 10**9},
        "*.blog.test": {"budget": 0},
        "re:/calendar/": {"bytes": 10**12, "depth": 3},
    }


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.BÜCHER.example", "*.xn--bcher-kva.example"),
        ("*.de", "*.de"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("::1", "::1"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("re:^https://A", "re:^https://A"),
    ],
)
def test_a_name_is_compared_in_the_frontiers_spelling(name: str, normal: str) -> None:
    """Hosts as the frontier has them; patterns as they are. Reading a name again changes nothing."""
    assert parse_name(name) == normal
    assert parse_name(normal) == normal


@pytest.mark.parametrize(
    "name",
    [
        "", "*.", "*.*.a.test", "a.*.test", "https://a.test", "a.test/", "a.test:80", "[::1]:80", "u@a.test",
        "a b", "a.test?x", "a.test#x", "*.::1", "*.1.2.3.4", "a..test\\", "%zz", "-:-:-",
    ],
)  # fmt: skip
def test_what_is_no_name_is_refused(name: str) -> None:
    """URLs, ports, paths and stars elsewhere are said, with what a name may be."""
    message = refusal({name: {"budget": 5}})
    assert message.startswith(f"BIGCRAWL_BUDGET_RULES has {name!r}; must be a host (www.example.com)")


def test_a_pattern_must_be_one() -> None:
    """An expression that cannot be compiled ends the start."""
    assert "'re:(', which is not a valid regular expression: missing )" in refusal({"re:(": {}})


@pytest.mark.parametrize("value", [-1, 1.5, 5.0, "5", True, [], 1_000_001])
def test_a_limit_is_a_whole_number_within_its_bounds(value: object) -> None:
    """The message says which rule, which limit, the bounds and an example."""
    message = refusal({"a.test": {"budget": value}})
    assert message == (
        f"BIGCRAWL_BUDGET_RULES['a.test']: budget is {value!r}; must be a whole number from 0 to 1,000,000 URLs a "
        f"turn, e.g. 500"
    )


def test_an_unknown_limit_is_refused_with_the_one_that_was_meant() -> None:
    assert refusal({"a.test": {"page": 5}}) == (
        "BIGCRAWL_BUDGET_RULES['a.test'] has an unknown limit 'page'; did you mean pages?"
    )
    assert "must be one of budget, revisit, pages, bytes, priority, depth" in refusal({"a.test": {"zzz": 5}})


def test_one_name_has_one_rule() -> None:
    """Two spellings of a host are one host: which of the rules counts is not guessed."""
    assert "has 'a.test' twice" in refusal({"a.test": {"budget": 5}, "A.test": {"pages": 5}})


def test_what_redis_holds_is_read_again() -> None:
    """A rule written as JSON comes back, limit for limit."""
    rules = parse_rules({"a.test": {"budget": 0, "depth": 2}, "re:x": {"bytes": 1, "pages": 2}, "b.test": {}})
    stored = {name.encode(): rule_json(rule) for name, rule in rules.items()}
    assert json.loads(stored[b"re:x"]) == {"pages": 2, "bytes": 1}
    assert read_live_rules(stored) == (rules, [])


def test_a_rule_that_cannot_be_read_stops_no_other() -> None:
    """What is wrong in Redis is told, one message each, and left out."""
    fields = {
        b"a.test": b'{"budget": 5}',
        b"b.test": b'{"budget": -5}',
        b"c.test": b"{",
        b"d.test": b"[1]",
        b"\xff": b"{}",
        b"e.test": b"[" * 100_000,
        b"http://f.test/": b"{}",
    }
    rules, faults = read_live_rules(fields)
    assert rules == {"a.test": {"budget": 5}}
    assert len(faults) == 6
    assert all("the crawl's rules" in fault for fault in faults)


def test_the_crawls_rules_come_before_the_settings() -> None:
    """Name by name the crawl's own rule replaces the settings', and one without limits takes it away."""
    settings = parse_rules({"a.test": {"budget": 5, "depth": 3}, "b.test": {"pages": 9}, "c.test": {"pages": 1}})
    live = parse_rules({"a.test": {"budget": 7}, "c.test": {}, "d.test": {"bytes": 2}})
    assert merge_rules(settings, live) == {
        "a.test": {"budget": 7},
        "b.test": {"pages": 9},
        "d.test": {"bytes": 2},
    }
