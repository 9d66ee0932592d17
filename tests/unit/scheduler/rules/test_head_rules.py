"""What is asked by HEAD first: patterns of robots.txt, and a wrong one ends the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.page_rules import HeadRules
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path


def rules(tmp_path: Path, **settings: Any) -> HeadRules:
    return HeadRules(make_config(tmp_path, "crawl", **settings))


def test_patterns_are_those_of_robots_txt(tmp_path: Path) -> None:
    """For path and query; nothing is asked without one."""
    found = rules(tmp_path, head_first=["/*.pdf$", "/download/", "/*?file="])
    asked = ["/a.pdf", "/b/c.pdf", "/download/", "/download/x", "/get?file=3"]
    assert all(found.needs_head(f"http://a.example{path}") for path in asked)
    assert not any(found.needs_head(f"http://a.example{path}") for path in ("/", "/a.pdf?x", "/a/download/", "/a.html"))
    assert not rules(tmp_path)


@pytest.mark.parametrize("pattern", ["*.pdf of all hosts", "pdf"])
def test_a_wrong_pattern_ends_the_start(tmp_path: Path, pattern: str) -> None:
    """One line says what is wrong and shows a valid one."""
    with pytest.raises(ConfigError, match=r"BIGCRAWL_HEAD_FIRST has .*must be a pattern of paths as in robots.txt"):
        rules(tmp_path, head_first=[pattern])
    with pytest.raises(ConfigError, match="1,001 patterns; at most 1,000 are allowed"):
        rules(tmp_path, head_first=[f"/{n}" for n in range(1_001)])


@pytest.mark.parametrize(("settings", "rule"), [({"truncate": False}, "size"), ({"truncate": True}, "")])
def test_size_counts_if_larger_answers_fail(tmp_path: Path, settings: dict[str, Any], rule: str) -> None:
    """With truncation a large page has its use; and without a limit none is too large."""
    found = rules(tmp_path, head_first=["/"], DOWNLOAD_MAXSIZE=10, **settings)
    assert found.dropping_rule(200, b"", b" 11 ") == rule
    assert found.dropping_rule(200, b"", b"9" * 40) == "", "no number that anybody means"
    assert rules(tmp_path, head_first=["/"], truncate=False).dropping_rule(200, b"", b"11") == ""
