"""Which line of robots.txt decides over a URL: held to what it says alone, to expressions, and to another parser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from bigcrawl.politeness.robots_match import RobotsMatcher, normalize_path
from bigcrawl.politeness.robots_policy import RobotsRules
from tests.support.costs.proportion import assert_costs

PATTERNS = st.text(alphabet="ab/*$", max_size=6).map("/{}".format)
LINES = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), PATTERNS).map(": ".join), max_size=6)
PATHS = st.text(alphabet="ab/", max_size=8).map("/{}".format)


@pytest.mark.parametrize(
    ("lines", "path", "line"),
    [
        (["Disallow: /"], "/a", "Disallow: /"),
        (["Disallow: /", "Disallow: /private"], "/private/x", "Disallow: /private"),
        (["Disallow: /*.pdf$", "Disallow: /x"], "/x/a.pdf", "Disallow: /*.pdf$"),
        (["Disallow: /*?id="], "/a?id=3", "Disallow: /*?id="),
        (["Disallow: /a$"], "/a", "Disallow: /a$"),
        (["Allow: /a", "Disallow: /"], "/b", "Disallow: /"),
        (["Allow: /a", "Disallow: /"], "/ab", ""),
        (["Disallow: /a.b"], "/axb", ""),
        ([], "/a", ""),
    ],
)
def test_longest_line_that_matches_decides(lines: list[str], path: str, line: str) -> None:
    """As in the RFC; with wildcards, to the end, and with a query."""
    rules = RobotsRules(tuple(lines))
    assert rules.forbidding_line(f"https://a.example:8443{path}") == line
    assert rules.lines == tuple(lines)


@given(lines=LINES, path=PATHS)
def test_line_that_is_named_forbids_the_url_alone(lines: list[str], path: str) -> None:
    """Each forbidden URL has such a line, and no allowed one has."""
    rules, url = RobotsRules(tuple(lines)), f"http://a.example{path}"
    line = rules.forbidding_line(url)
    assert bool(line) is not rules.is_allowed(url)
    if line:
        assert line in lines
        assert not RobotsRules((line,)).is_allowed(url)


def octets_of(line: str) -> int:
    """Of a line's pattern in the one spelling; its stars and the dollar at its end are one each."""
    pattern = line.partition(" ")[2]
    return len(normalize_path(pattern.removesuffix("$"), is_pattern=True)) + pattern.endswith("$")


@given(lines=LINES, path=PATHS)
def test_longest_pattern_that_matches_alone_decides_of_all(lines: list[str], path: str) -> None:
    """Of the lines that match alone, one with most octets decides, an Allow before a Disallow (§2.2.2)."""
    matching = [line for line in lines if RobotsMatcher([line]).deciding_line(path)]
    best = max(matching, key=lambda line: (octets_of(line), line.startswith("A")), default="Allow")
    assert RobotsMatcher(lines).is_allowed(path) is best.startswith("Allow")


@given(st.text("ab*", max_size=7), st.booleans(), st.text("ab", max_size=9))
def test_line_matches_as_its_pattern_says(pattern: str, has_end: bool, path: str) -> None:
    """`*` is anything, `$` at the end the end: as an expression of the same meaning has it."""
    wanted = re.match(".*".join(map(re.escape, pattern.split("*"))) + ("$" if has_end else ""), path) is not None
    assert bool(RobotsMatcher([f"Disallow: {pattern}{'$' * has_end}"]).deciding_line(path)) == wanted


@given(
    lines=st.lists(
        st.tuples(st.sampled_from(["Allow: /", "Disallow: /"]), st.text("ab/*", max_size=6)).map("".join), max_size=5
    ),
    path=st.text("ab/", max_size=8).map("/{}".format),
)
def test_another_parser_agrees_where_it_follows_the_rfc(lines: list[str], path: str) -> None:
    """protego, which was written by others, says the same of plain letters and stars."""
    other = Protego.parse("\n".join(["User-agent: *", *lines]))
    assert RobotsMatcher(lines).is_allowed(path) is other.can_fetch(f"http://a.example{path}", "*")


def test_hostile_pattern_is_matched_without_going_back() -> None:
    """Forty stars against a URL that fits all but the end: searched with going back, it would take years."""
    path = "/" + "a" * 8_000
    assert RobotsMatcher(["Disallow: /" + "a*" * 40 + "b"]).is_allowed(path)
    assert not RobotsMatcher(["Disallow: /" + "a*" * 40 + "$"]).is_allowed(path)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/%61b", "/ab"),
        ("/~a", "/%7ea"),
        ("/a:b@c,d;e!f'(g)", "/a%3Ab%40c%2Cd%3be%21f%27%28g%29"),
        ("/a*b$c", "/a%2Ab%24c"),
        ("/\u30c4", "/%E3%83%84"),
        ('/a"<b', "/a%22%3cb"),
        ("/?u=http://x/?y", "/?u=http%3A%2F%2Fx%2F%3Fy"),
    ],
)
def test_what_is_the_same_to_a_server_has_one_spelling(one: str, other: str) -> None:
    """In a path and in a query; and it is spelled already (§2.2.2)."""
    assert normalize_path(one) == normalize_path(other) == normalize_path(normalize_path(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a/b", "/a%2Fb"),
        ("/a?b", "/a%3Fb"),
        ("/?a&b", "/?a%26b"),
        ("/?a=b", "/?a%3Db"),
        ("/a+b", "/a%2Bb"),
        ("/a#", "/a%2523"),
        ("/a", "/A"),
        ("/%E9", "/%C3%A9"),
    ],
)
def test_what_is_another_url_has_another_spelling(one: str, other: str) -> None:
    """An escaped delimiter delimits nothing."""
    assert normalize_path(one) != normalize_path(other)


def test_many_wildcards_and_a_long_url_are_not_sought_through() -> None:
    """What a match may cost is bounded: such a URL is forbidden by one of the patterns, a short one decided over."""
    lines = [f"Disallow: /*no{n}*x" for n in range(3_000)]
    matcher = RobotsMatcher([*lines, "Disallow: /closed", "Allow: /open"])
    assert matcher.deciding_line("/a/no7/x") == "Disallow: /*no7*x"
    assert matcher.is_allowed("/a/b")
    assert matcher.deciding_line("/a" * 2_000) in lines
    assert not matcher.is_allowed("/open" * 1_000)
    assert matcher.deciding_line("/closed" * 1_000) == "Disallow: /closed"
    few = RobotsMatcher([*lines[:50], "Disallow: /closed", "Allow: /open"])
    path = "/a" * 2_000
    assert_costs(
        2, lambda: [matcher.is_allowed(path) for _ in range(50)], lambda: [few.is_allowed(path) for _ in range(50)]
    )


def test_a_few_wildcards_are_sought_in_the_longest_url() -> None:
    """The bound is met by absurd files only."""
    matcher = RobotsMatcher([f"Disallow: /*no{n}*x" for n in range(50)])
    assert matcher.is_allowed("/a" * 4_000)
    assert not matcher.is_allowed("/a" * 4_000 + "no7x")


def test_wildcards_that_allow_do_not_open_what_is_not_sought() -> None:
    """Where only Allow lines have wildcards, what they would allow stays as the others have it."""
    lines = [f"Allow: /*yes{n}*x" for n in range(3_000)]
    assert not RobotsMatcher([*lines, "Disallow: /"]).is_allowed("/a" * 2_000)
    assert RobotsMatcher([*lines, "Disallow: /b"]).is_allowed("/a" * 2_000)
