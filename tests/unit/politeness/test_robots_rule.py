"""Which line of robots.txt forbids a URL: held to what the matcher says of each line alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.politeness.robots_policy import Rules, _matches

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
        (["Disallow: /a.b"], "/axb", ""),
        ([], "/a", ""),
    ],
)
def test_longest_line_that_matches_decides(lines: list[str], path: str, line: str) -> None:
    """As in the RFC; with wildcards, to the end, and with a query."""
    rules = Rules(tuple(lines))
    assert rules.forbidding_line(f"https://a.example:8443{path}") == line
    assert rules.lines == tuple(lines)


@given(lines=LINES, path=PATHS)
def test_line_that_is_named_forbids_the_url_alone(lines: list[str], path: str) -> None:
    """Each forbidden URL has such a line, and the matcher, which was written by others, agrees on it."""
    rules, url = Rules(tuple(lines)), f"http://a.example{path}"
    line = rules.forbidding_line(url)
    if not rules.is_allowed(url):
        assert line in lines
        assert not Rules((line,)).is_allowed(url)


@given(st.text("ab*", max_size=7), st.booleans(), st.text("ab", max_size=9))
def test_line_matches_as_its_pattern_says(pattern: str, has_end: bool, path: str) -> None:
    """`*` is anything, `$` at the end the end: as an expression of the same meaning has it."""
    wanted = re.match(".*".join(map(re.escape, pattern.split("*"))) + ("$" if has_end else ""), path) is not None
    assert _matches(pattern + "$" * has_end, path) == wanted


def test_hostile_pattern_is_matched_without_going_back() -> None:
    """Forty stars against a URL that fits all but the end: searched with going back, it would take years."""
    assert not _matches("/" + "a*" * 40 + "b", "/" + "a" * 8_000)
    assert _matches("/" + "a*" * 40 + "$", "/" + "a" * 8_000)
