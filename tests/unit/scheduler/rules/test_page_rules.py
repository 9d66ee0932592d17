"""Filters of pages: what is received, what the spider sees, and how wrong rules are told."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.records.outcomes import PAGE_RULES, number_of, rule_of
from bigcrawl.scheduler.rules.languages import MARKUP, SAMPLE, _load_model, visible_text
from bigcrawl.scheduler.rules.page_rules import TEXT_BYTES, PageRules, parse_page_rules

ENGLISH = "<p>Bees live in hives and gather honey from the flowers of the meadows around their home.</p>"
GERMAN = "<p>Bienen leben in Stöcken und sammeln Honig von den Blumen auf den Wiesen um ihr Zuhause.</p>"


def rules_of(**settings: Any) -> PageRules:
    return PageRules(read_config({}).filters.replace(**settings))


def against(rules: PageRules, page: str) -> str:
    return rules.dropping_rule(lambda size: page[:size])


def test_without_rules_no_page_is_read() -> None:
    """So that pages cost nothing more in crawls without filters."""
    assert not rules_of()
    assert rules_of().dropping_rule(lambda _: pytest.fail("it was read")) == ""


def test_types_are_named_one_by_one_or_by_kind() -> None:
    """In any case."""
    rules = rules_of(media_types=("Text/HTML", "image/*"))
    assert rules
    assert all(map(rules.accepts_type, ["text/html", "image/png"]))
    assert not any(map(rules.accepts_type, ["text/plain", "application/pdf", "imagex/png", "text/htmlx"]))
    assert rules_of().accepts_type("application/pdf")


def test_reserved_texts_are_found_in_any_case() -> None:
    """Within the part that is searched, in upper and lower case, beyond ASCII too."""
    rules = rules_of(strings=("Under Construction", "ÄRGER"))
    assert against(rules, "<p>UNDER construction</p>") == against(rules, "ärger") == "string"
    assert against(rules, "under  construction") == ""
    assert against(rules, "x" * TEXT_BYTES + "under construction") == ""


def test_pages_in_other_languages_are_dropped() -> None:
    """Judged by their text; one that has hardly any passes."""
    rules = rules_of(languages=("EN", "fr"))
    assert [against(rules, page) for page in (ENGLISH, GERMAN, "<p>Ja!</p>", "")] == ["", "language", "", ""]
    assert against(rules_of(languages=("de",)), GERMAN) == ""


def test_markup_is_no_text() -> None:
    """Tags, comments, scripts and styles, closed or not, say nothing about the language."""
    page = "<html><style>a { b }</style><SCRIPT>if (a < b) {}</SCRIPT x><!-- no > --> one\n <b class='x'>two</b><svg>"
    assert visible_text(page) == "one two"
    assert visible_text("<script>for ever") == visible_text("<!-- for ever") == visible_text("<for ever") == ""


def test_sample_of_a_page_is_bounded() -> None:
    """However long it is, and however many tags it has."""
    assert len(visible_text("word " * 10_000)) == SAMPLE
    assert visible_text("<a>" * MARKUP + "late") == visible_text("<script>" * MARKUP) == ""


def test_charsets_are_known_by_any_of_their_names() -> None:
    """Those of the HTML standard: a page of latin-1 is read as windows-1252."""
    rules = parse_page_rules({"a.example": {"charsets": "Latin-1, SJIS"}})["a.example"]["charsets"]
    names = ("windows-1252", "iso-8859-1", "shift_jis", "cp932", "utf-8", "nonsense")
    assert [rules.accepts_charset(name) for name in names] == [True, True, True, True, False, False]
    with pytest.raises(ConfigError, match="charsets has 'klingon'; must be a charset such as utf-8"):
        parse_page_rules({"a.example": {"charsets": "klingon"}})


def test_numbers_of_rules_are_their_order() -> None:
    """They are stored with outcomes, where 0 is no rule."""
    assert [rule_of(number_of(rule)) for rule in PAGE_RULES] == [*PAGE_RULES]
    assert list(PAGE_RULES) == ["media-type", "string", "language", "charset"]
    assert [rule_of(0), rule_of(5), rule_of(0xFFFF)] == [None] * 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"media_types": ("html",)}, "FILTER_MEDIA_TYPES has 'html'; must be a type such as text/html"),
        ({"media_types": ("*/*",)}, "FILTER_MEDIA_TYPES has '\\*/\\*'"),
        ({"strings": tuple(map(str, range(101)))}, "FILTER_STRINGS has 101 texts; at most 100 are allowed"),
        ({"strings": ("x" * 201,)}, "FILTER_STRINGS has a text of 201 characters, 'xxxx.*at most 200 are allowed"),
        ({"languages": ("en", "klingon")}, "FILTER_LANGUAGES has 'klingon'; must be codes as in ISO 639-1"),
    ],
)
def test_wrong_rule_is_an_error_with_a_remedy(settings: dict[str, Any], message: str) -> None:
    """One line: which setting, which value, what it should be."""
    with pytest.raises(ConfigError, match=message):
        rules_of(**settings)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    _load_model.cache_clear()
    monkeypatch.delitem(sys.modules, "py3langid", raising=False)
    monkeypatch.setattr("bigcrawl.scheduler.rules.languages.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'pip install "bigcrawl\[languages\]"'):
        rules_of(languages=("en",))
