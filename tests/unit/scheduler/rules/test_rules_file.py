"""The file of rules by site: what it says reaches the settings' tables, and what is wrong is named by its line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config, rules_file
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.rules_file import check_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = """\ufeff# all that is set by hand
Example.com    budget=500 delay=2.5 priority=-5
www.example.com/docs/  depth=3 revisit=3600
re:/\\d+\\.html$  pages=7   # a pattern keeps its backslashes
*  kinds=text/html,image/* eliminate="under construction, parked"
"""


def test_each_value_goes_to_the_table_of_its_setting(tmp_path: Path) -> None:
    """As numbers or texts; what the settings say themselves goes before it, value by value."""
    path = tmp_path / "rules.txt"
    path.write_text(RULES)
    check_rules(str(path))
    config = read_config(
        {
            "BIGCRAWL_RULES": str(path),
            "BIGCRAWL_BUDGET_RULES": {"Example.com": {"budget": 1}, "b.example": {"depth": 2}},
        }
    )
    assert config.budget.rules == {
        "Example.com": {"budget": 1, "priority": -5},
        "www.example.com/docs/": {"depth": 3, "revisit": 3600},
        r"re:/\d+\.html$": {"pages": 7},
        "b.example": {"depth": 2},
    }
    assert config.pace.delay_rules == {"Example.com": {"delay": 2.5}}
    assert config.filters.rules == {"*": {"kinds": "text/html,image/*", "eliminate": "under construction, parked"}}
    assert "BIGCRAWL_RULES" not in config.in_force, "a process that shows the crawl gets the tables"
    assert "BIGCRAWL_PAGE_RULES" in config.alike


def test_file_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("a.example budget=1\n")
    first = rules_file.read_rules(str(path))
    assert rules_file.read_rules(str(path)) is first
    path.write_text("a.example budget=2\n")
    os.utime(path, ns=(1, 1))
    assert rules_file.read_rules(str(path)) != first


def test_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes and in rules; one that is not there is named."""
    path = tmp_path / "rules.txt"
    path.write_text("".join(f"a{number}.example budget=1\n" for number in range(4)))
    monkeypatch.setattr(rules_file, "LINES_MAX", 3)
    with pytest.raises(ConfigError, match="has 4 rules; at most 3 are allowed"):
        check_rules(str(path))
    monkeypatch.setattr(rules_file, "BYTES_MAX", 10)
    with pytest.raises(ConfigError, match="a file of 80 bytes; at most 10 are allowed"):
        check_rules(str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        check_rules(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("example.com budget", "has 'budget'; a line must be a name, followed by words such as budget=500"),
        ("example.com", "sets nothing for 'example.com'"),
        ("exa mple.com budget=1", "has 'mple.com'"),
        ("example.com budjet=1", "has an unknown limit 'budjet'; did you mean budget?"),
        ("example.com budget=many", "budget is 'many'; must be a whole number from 0 to 1,000,000 URLs a turn"),
        ("example.com/a/ delay=1", "must be a host"),
        ("example.com delay=-1", "delay is -1; must be a number from 0"),
        ("example.com kinds=html", "kinds has 'html'; must be a type such as text/html"),
        ("example.com budget=1 budget=2", "has budget twice"),
        ('example.com eliminate="open', "cannot be read: a quotation mark is not closed"),
        ("a.example budget=1", "'a.example' has a rule in line 1 already; join them"),
    ],
)
def test_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(f"a.example budget=1 # fine\n\n{line}\n")
    with pytest.raises(ConfigError) as raised:
        check_rules(str(path))
    assert f"{path}, line 3" in str(raised.value)
    assert message in str(raised.value)
