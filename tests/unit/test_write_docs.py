"""The reference pages: what is new comes without hand work, and what was written by hand stays."""

from __future__ import annotations

import re

import pytest

from bigcrawl.default_settings import TABLE
from bigcrawl.table_rows import Setting
from scripts import write_docs
from scripts.write_docs import PageError, with_block, with_sections

OURS, NOTHING = re.compile("### BIG"), re.compile(r"(?!)")
FACTS = re.compile(r"\A\s*Default .*\n")


def settings_text() -> str:
    return (write_docs.DOCS / "settings.md").read_text("utf-8")


def test_a_new_setting_has_its_place_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the table becomes a row on the page and a section behind that of the row before it; the rest stays."""
    new = Setting("BIGCRAWL_NEW", 3, int, "What is new.", "things", 1, 1_000, alike=True)
    at = next(i for i, row in enumerate(TABLE) if isinstance(row, Setting) and row.name == "BIGCRAWL_HOST_DELAY")
    monkeypatch.setattr(write_docs, "TABLE", (*TABLE[: at + 1], new, *TABLE[at + 1 :]))
    page = write_docs.settings_page(settings_text())
    assert "| [BIGCRAWL_NEW](#bigcrawl_new) | `3` things | What is new. |" in page
    section = "### BIGCRAWL_NEW\n\nDefault `3` things; from 1 to 1,000; the same on all nodes.\n\n"
    assert section + "### BIGCRAWL_HOST_DELAY_MIN" in page
    without = page.replace(section, "").replace("| [BIGCRAWL_NEW](#bigcrawl_new) | `3` things | What is new. |\n", "")
    assert without == settings_text()


def test_a_setting_that_is_gone_takes_no_prose_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A section whose setting was renamed or removed is an error that names it, not text that is lost."""
    monkeypatch.setattr(
        write_docs, "TABLE", tuple(row for row in TABLE if getattr(row, "name", "") != "BIGCRAWL_SPEED")
    )
    with pytest.raises(PageError, match="BIGCRAWL_SPEED"):
        write_docs.settings_page(settings_text())


def test_facts_are_written_anew_and_prose_stays() -> None:
    """The line of facts is replaced, what stands below it and beside our sections is kept; twice is once."""
    page = "# T\n\nIntro.\n\n## Own\n\nBy hand.\n\n### BIG_A\n\nDefault 1.\n\nProse of A.\n"
    wanted = {"### BIG_A": "Default 2.", "### BIG_B": "Default 3."}
    once = with_sections(page, wanted, OURS, FACTS)
    assert once == (
        "# T\n\nIntro.\n\n## Own\n\nBy hand.\n\n### BIG_A\n\nDefault 2.\n\nProse of A.\n\n### BIG_B\n\nDefault 3.\n"
    )
    assert with_sections(once, wanted, OURS, FACTS) == once


def test_a_group_of_settings_has_one_table() -> None:
    """Each group has its table once, and so has the page's opening: an old one is not kept as if written by hand."""
    groups = [row for row in TABLE if isinstance(row, str)]
    assert len(re.findall(r"^\| setting \| default \| meaning \|", settings_text(), re.MULTILINE)) == len(groups) + 1


def test_a_section_that_is_there_twice_is_told() -> None:
    """A merge may leave two sections of one setting: neither is thrown away."""
    with pytest.raises(PageError, match="BIG_A"):
        with_sections("# T\n\n### BIG_A\n\nOne.\n\n### BIG_A\n\nOther.\n", {"### BIG_A": ""}, OURS, NOTHING)


def test_a_block_is_there_once() -> None:
    """A page that lacks a block, or has it twice, is an error that names it."""
    marks = "<!-- begin: x -->\nold\n<!-- end -->\n"
    assert with_block(marks, "x", "new") == "<!-- begin: x -->\n\nnew\n<!-- end -->\n"
    for page in ("", marks * 2):
        with pytest.raises(PageError, match="begin: x"):
            with_block(page, "x", "new")
