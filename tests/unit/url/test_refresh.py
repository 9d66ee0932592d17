from __future__ import annotations

import pytest

from bigcrawl.url.refresh import refresh_in


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=/next", "/next"),
        ("0;URL='/next'", "/next"),
        ('5 , url = "http://a.example/?q=1" and more', "http://a.example/?q=1"),
        ("\n\t 10 ;\f uRl\r=\n/next ", "/next "),
        ("0;/next", "/next"),
        ("0 /next", "/next"),
        ("0;'/next'", "/next"),
        ("0;'/next", "/next"),
        ("0.5;url=/next", "/next"),
        (".5;url=/next", "/next"),
        ("1..2.3;url=/next", "/next"),
        ("99999999999999999999;url=/next", "/next"),
        ("0;;url=/next", ";url=/next"),
        ("0;url=url=/next", "url=/next"),
        ("0;url /next", "url /next"),
        ("0;up'/x'", "up'/x'"),
        ("0;u", "u"),
        ("0;url=''/x", ""),
        ("0;url=javascript:x", "javascript:x"),
    ],
)
def test_target_is_what_browsers_go_to(content: str, target: str) -> None:
    """Blanks, quotes, the word url and the fraction of the delay may be there or not, in any case."""
    assert refresh_in(content).target == target


@pytest.mark.parametrize(
    "content", ["", " ", "5", "5;", "5; ", "0;url=", "x", "url=/x", "-1;url=/x", "5x;url=/x", "5x"]
)
def test_refresh_without_another_page_has_no_target(content: str) -> None:
    """No delay, no reference: the page itself is loaded again, or nothing happens."""
    assert refresh_in(content).target == ""
