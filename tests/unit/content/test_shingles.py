from __future__ import annotations

import numpy as np

from bigcrawl.content.shingles import shingles_of, similarity
from bigcrawl.content.text import text_of
from tests.unit.content.pages import edited, page


def true_similarity(some: bytes, others: bytes) -> float:
    """Jaccard of the sets of all four-word phrases, made word by word."""
    first, second = (
        {tuple(words[at : at + 4]) for at in range(len(words) - 3)}
        for words in (text_of(body).split() for body in (some, others))
    )
    return len(first & second) / len(first | second)


def test_similarity_is_about_that_of_phrases_of_four_words() -> None:
    """Windows of bytes, of a quarter of the words, tell the same as a comparison word by word."""
    body = page(1)
    for changes in (0, 5, 20, 60, 200):
        other = edited(body, changes, changes)
        expected = true_similarity(body, other)
        found = similarity(shingles_of(text_of(body)), shingles_of(text_of(other)))
        assert abs(found - expected) < 0.06, changes


def test_order_and_repeats_of_phrases_do_not_count() -> None:
    """Shingles are a set."""
    shingles = shingles_of(text_of(page(1)))
    assert similarity(shingles, np.concatenate([shingles[::-1], shingles])) == 1
    assert similarity(shingles, shingles_of(text_of(page(2)))) < 0.02


def test_a_page_without_words_has_no_shingles() -> None:
    """Nothing is read beyond the text."""
    for text in (b"", b" ", b"   ", b"\x00" * 3):
        assert len(shingles_of(text)) <= 1
    assert similarity(shingles_of(b""), shingles_of(b"")) == 0


def test_a_script_without_blanks_has_shingles() -> None:
    """Each character of a Japanese text may begin one, a quarter of them do, by their bytes."""
    text = "クローラはページを集めて索引を作ります。" * 3
    assert len(shingles_of(text_of(text.encode()))) > len(text) // 5
