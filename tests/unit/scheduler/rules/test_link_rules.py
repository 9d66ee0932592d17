"""Filters of links: which rule drops what, and how wrong rules are told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.link_rules import LinkRules

SITE = "http://a.example"


def rules_of(**settings: Any) -> LinkRules:
    return LinkRules(read_config({}).filters.replace(**settings))


def against(rules: LinkRules, *targets: str) -> list[str]:
    return [rules.dropping_rule(target if "://" in target else SITE + target) for target in targets]


def test_without_rules_nothing_is_asked() -> None:
    """So that links cost nothing more in crawls without filters."""
    assert not rules_of()
    assert rules_of(characters="?")


def test_schemes_that_are_not_named_are_dropped() -> None:
    assert against(rules_of(schemes=("https",)), "http://a.example/", "https://a.example/") == ["scheme", ""]


def test_extension_is_that_of_the_last_segment() -> None:
    """In any case; not of a host, a directory or a query."""
    rules = rules_of(extensions=("pdf", ".ZIP"))
    dropped = ["/x.pdf", "/a/x.PDF?y", "/x.tar.zip"]
    assert against(rules, *dropped) == ["extension"] * 3
    assert against(rules, "/", "/pdf", "/x.pdf/", "/x?y.pdf", "http://a.pdf/") == [""] * 5


def test_non_html_stands_for_what_is_no_page() -> None:
    """Pictures, programs, archives; not pages that programs make, nor sitemaps."""
    rules = rules_of(extensions=("non-html", "asp"))
    assert against(rules, "/i.jpeg", "/i.woff2", "/i.docx", "/i.asp") == ["extension"] * 4
    assert against(rules, "/i.html", "/i.php", "/i.com", "/sitemap.xml", "/sitemap.xml.gz", "/i") == [""] * 6


def test_paths_are_matched_as_in_robots_txt() -> None:
    """The longest line decides, and Allow on a tie; the query belongs to what is matched."""
    rules = rules_of(paths=("Disallow: /", "allow:/docs/", "Disallow: /*.cgi$", "Disallow: /docs/*?print="))
    assert against(rules, "/docs/", "/docs/a?b", "/docs/a?print=1", "/x", "/docs/x.cgi") == [
        "",
        "",
        "path",
        "path",
        "path",
    ]


def test_directories_are_counted_without_the_file() -> None:
    rules = rules_of(directories_max=2)
    assert against(rules, "/", "/a/b/c.html", "/a/b/", "/a/b/c/", "/a?b/c/d/e") == ["", "", "", "directory-depth", ""]


def test_characters_are_looked_for_in_path_and_query() -> None:
    """Not in the host; characters that mean something in expressions are themselves."""
    rules = rules_of(characters="?^]\\-;")
    assert against(rules, "/a?b", "/a;b", "/a-b", "http://a-b.example/") == ["characters"] * 3 + [""]


def test_function_of_the_project_decides_last(caplog: pytest.LogCaptureFixture) -> None:
    """It is called for what no other rule drops; where it fails, the link is followed, and this is told once."""
    rules = rules_of(function=f"{__name__}.wants", characters="?")
    assert against(rules, "/yes", "/no", "/no?x") == ["", "function", "characters"]
    with caplog.at_level(logging.ERROR):
        assert against(rules, "/fails", "/fails") == ["", ""]
    assert caplog.text.count("BIGCRAWL_FILTER failed for http://a.example/fails") == 1


def wants(url: str) -> bool:
    if url.endswith("/fails"):
        raise ValueError(url)
    return not url.endswith("/no")


def says_maybe(_: str) -> str:
    return "maybe"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schemes": ("ftp",)}, "FILTER_SCHEMES has 'ftp'; must be http or https"),
        ({"extensions": ("*.pdf",)}, "FILTER_EXTENSIONS has '\\*.pdf'; must be letters and digits"),
        ({"paths": ("/x",)}, "FILTER_PATHS has '/x'; must be a line as in robots.txt"),
        ({"paths": ("Disallow: x",)}, "FILTER_PATHS has 'Disallow: x'; must be"),
        ({"paths": ("Disallow: /x",) * 1_001}, "FILTER_PATHS has 1,001 lines; at most 1,000 are allowed"),
        ({"characters": "é"}, "FILTER_CHARACTERS is 'é'; must be visible ASCII"),
        ({"function": "no.such.function"}, "FILTER is 'no.such.function', which cannot be imported"),
        ({"function": f"{__name__}.says_maybe"}, "which returned 'maybe'; must return True"),
    ],
)
def test_wrong_rule_is_an_error_with_a_remedy(settings: dict[str, Any], message: str) -> None:
    """One line: which setting, which value, what it should be."""
    with pytest.raises(ConfigError, match=message):
        rules_of(**settings)
