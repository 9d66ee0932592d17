"""What the operator says about pages and hosts."""

from __future__ import annotations

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_rendering.rules import BlockedHosts, PageChoice

SHELL = "<div id=root></div><script src=/app.js></script>"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://app.example/x", "rule"),
        ("https://app.example/print/x", ""),
        ("https://app.example/", "rule"),
        ("https://other.example/", "shell"),
        ("http://a.example/s?q=1", "rule"),
        ("http://a.example/sxq=1", "shell"),
        ("https://[::1]/x", "rule"),
    ],
)
def test_patterns_go_before_what_bytes_show(url: str, reason: str) -> None:
    always = ["https://app.example/*", "*/s?q=1", "https://[::1]/*"]
    choice = PageChoice(always, ["*/print/*"], detects=True)
    assert choice.verdict_on(url, lambda: SHELL).reason == reason


def test_only_named_pages_are_rendered_where_bytes_do_not_count() -> None:
    """Then no page is read."""
    choice = PageChoice(["https://app.example/*"], [], detects=False)
    assert not choice.verdict_on("https://other.example/", pytest.fail)
    assert choice.verdict_on("https://app.example/", pytest.fail)


def test_a_pattern_that_is_no_url_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"BIGCRAWL_RENDER_NEVER has 'app\.example'; a pattern is a URL with \*"):
        PageChoice([], ["app.example"], detects=True)


def test_a_hostile_url_does_not_make_patterns_slow() -> None:
    choice = PageChoice(["*a*a*a*a*a*a*a*a*b"], [], detects=False)
    assert not choice.verdict_on("https://a.example/" + "a" * 8_000, str)


@pytest.mark.parametrize(
    "line", ["ads.example", "0.0.0.0 ads.example", "||ads.example^", "*.ads.example", "ADS.example"]
)
def test_a_host_is_blocked_with_its_subdomains(line: str) -> None:
    blocked = BlockedHosts([line, "! a comment", "example.com##.ad"])
    assert len(blocked) == 1
    assert blocked.has("ads.example")
    assert blocked.has("x.ads.example")
    assert not blocked.has("badads.example")
    assert not BlockedHosts([]).has("ads.example")
