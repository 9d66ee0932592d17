"""The words of texts, and lists of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_forms.options import TERMS_OF_TEXT_MAX, read_words, terms_of

if TYPE_CHECKING:
    from pathlib import Path


def test_words_are_those_of_3_to_24_letters_once() -> None:
    assert terms_of("An Ape, the ape's aunt; Öl-Ämter 1984 b2b a_b " + "x" * 25) == [
        "ape",
        "the",
        "aunt",
        "ämter",
        "b2b",
    ]
    assert len(terms_of(" ".join(f"word{number}" for number in range(999)))) == TERMS_OF_TEXT_MAX


def test_a_list_is_a_file_or_words(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("\ufeff# bees\nhoney bee\r\n\nhoney bee\nwax\n", "utf-8")
    assert read_words(str(file)) == ["honey bee", "wax"]
    assert read_words("honey wax honey") == ["honey", "wax"]
    assert read_words(" ") == []


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"words is '.*none.txt', which cannot be read"):
        read_words(str(tmp_path / "none.txt"))
