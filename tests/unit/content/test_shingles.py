from __future__ import annotations

import numpy as np

from bigcrawl.content.sketches import shingles_of, similarity
from bigcrawl.content.text import texts_of
from tests.unit.content.pages import edited, hashes_of, page, words_of


def true_similarity(some: bytes, others: bytes) -> float:
    """Jaccard of the sets of all four-word phrases, made word by word."""
    first, second = ({tuple(words[at : at + 4]) for at in range(len(words) - 3)} for words in words_of(some, others))
    return len(first & second) / len(first | second)


def test_similarity_is_about_that_of_phrases_of_four_words() -> None:
    """Windows of bytes tell the same as a comparison word by word."""
    body = page(1)
    for changes in (0, 5, 20, 60, 200):
        other = edited(body, changes, changes)
        expected = true_similarity(body, other)
        found = similarity(hashes_of(body), hashes_of(other))
        assert abs(found - expected) < 0.02, changes


def test_each_word_begins_a_shingle() -> None:
    for words in (100, 400, 1_000, 3_000):
        body = page(1, words)
        [found] = words_of(body)
        assert len(hashes_of(body)) == len(found)


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
    hashes, ends = shingles_of(texts_of(bodies))
    for body, found in zip(bodies, np.split(hashes, ends[:-1]), strict=True):
        assert found.tolist() == hashes_of(body).tolist()


def test_a_script_without_blanks_has_shingles() -> None:
    """Each character of a Japanese text begins one."""
    text = "クローラはページを集めて索引を作ります。" * 3
    assert len(hashes_of(text.encode())) == len(text)
