"""The main job's name for a crawl: the same command must find the same crawl again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bigcrawl.main_job import crawl_name

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ONE, TWO = "http://a.example/", "https://b.example/x"


def test_same_seeds_are_the_same_crawl() -> None:
    """Order and spacing of the URLs do not matter."""
    assert crawl_name(f"{ONE} {TWO}") == crawl_name(f"  {TWO}\n{ONE} ")


def test_other_seeds_are_another_crawl() -> None:
    """One URL more or less is another crawl: it would find other pages."""
    assert len({crawl_name(seeds) for seeds in (ONE, TWO, f"{ONE} {TWO}", "http://a.example/x")}) == 4


def test_file_of_seeds_is_known_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edited seeds file stays the same crawl; relative, absolute and home-relative names are one file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "seeds.txt"
    file.write_text(ONE)
    name = crawl_name("seeds.txt")
    file.write_text(f"{ONE}\n{TWO}")
    assert name == crawl_name("seeds.txt") == crawl_name(str(file)) == crawl_name("~/seeds.txt")
    assert name != crawl_name("other.txt")


def test_name_is_one_that_the_settings_take() -> None:
    """Letters, digits and dashes only: it names directories and Redis keys."""
    assert re.fullmatch(r"seeds-[0-9a-f]{10}", crawl_name(ONE))
