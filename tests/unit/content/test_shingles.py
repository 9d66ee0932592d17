from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.content.shingles import SAMPLED_MIN, SAMPLED_PART, shingles_of, similarity
from bigcrawl.content.text import texts_of
from tests.unit.content.pages import edited, hashes_of, page, words_of


def true_similarity(some: bytes, others: bytes) -> float:
    """Jaccard of the sets of all four-word phrases, made word by word."""
    first, second = ({tuple(words[at : at + 4]) for at in range(len(words) - 3)} for words in words_of(some, others))
    return len(first & second) / len(first | second)


def test_similarity_is_about_that_of_phrases_of_four_words() -> None:
    """Windows of bytes, of a quarter of the words, tell the same as a comparison word by word."""
    body = page(1)
    for changes in (0, 5, 20, 60, 200):
        other = edited(body, changes, changes)
        expected = true_similarity(body, other)
        found = similarity(hashes_of(body), hashes_of(other))
        assert abs(found - expected) < 0.06, changes


def test_of_a_long_text_a_quarter_of_the_words_counts() -> None:
    """Of a short one each does."""
    for words in (100, 400, 1_000, 3_000):
        body = page(1, words)
        [found] = words_of(body)
        _, [counted], [told] = shingles_of(texts_of([body]))
        is_long = sum(len(word) + 1 for word in found) >= SAMPLED_MIN
        assert told == counted * (SAMPLED_PART if is_long else 1)
        assert told == pytest.approx(len(found), rel=0.15) if is_long else told == len(found)


def test_order_and_repeats_of_phrases_do_not_count() -> None:
    """Shingles are a set."""
    hashes = hashes_of(page(1))
    assert similarity(hashes, np.concatenate([hashes[::-1], hashes])) == 1
    assert similarity(hashes, hashes_of(page(2))) < 0.02


def test_a_page_without_words_has_no_shingles() -> None:
    """Nothing is made of the zeros around it."""
    for body in (b"", b" ", b"   ", b"\x00" * 100, b"<p>", b"<" * 100):
        assert len(hashes_of(body)) == 0
    assert similarity(hashes_of(b""), hashes_of(b"")) == 0


def test_a_page_has_the_same_shingles_whatever_it_is_read_with() -> None:
    """Also those of its last words have nothing of the next page."""
    bodies = [page(1, 60), b"", b"one two three", page(2, 90), "漢字を読む".encode(), b"<p unclosed", page(3, 30)]
    hashes, ends, _ = shingles_of(texts_of(bodies))
    for body, found in zip(bodies, np.split(hashes, ends[:-1]), strict=True):
        assert found.tolist() == hashes_of(body).tolist()


def test_a_script_without_blanks_has_shingles() -> None:
    """Each character of a Japanese text begins one, and of a long text a quarter of them, by their bytes."""
    text = "クローラはページを集めて索引を作ります。" * 3
    assert len(hashes_of(text.encode())) > len(text) // 5
