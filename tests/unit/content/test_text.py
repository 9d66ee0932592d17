from __future__ import annotations

import pytest

from bigcrawl.content.text import TEXT_BYTES_MAX, text_of


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<p>Hello, <b>World</b>!</p>", b"hello world"),
        (b"<SCRIPT>var a = '<p>no</p>';</Script><p>yes", b"yes"),
        (b"<style>p{}</style>one<style>no", b"one"),
        (b"<scripted>two</scripted>", b"two"),
        (b"<a title='>'>three", b"three"),
        (b"1 < 2 and <3", b"1 2 and 3"),
        (b"four<p unclosed", b"four"),
        ("<p>Grüße, 世界</p>".encode(), "grüße 世界".encode()),
        ("<p>eins。zwei".encode(), "eins。zwei".encode()),
        (b"plain\r\n\ttext", b"plain text"),
        (b"", b""),
    ],
)
def test_words_of_a_page_are_its_text_in_lower_case(body: bytes, words: bytes) -> None:
    """Tags, scripts and styles are no text; a sign that begins no tag is a blank."""
    # A quote does not hide the end of a tag here, and punctuation outside ASCII is letters: copies have the same.
    assert text_of(body).split() == words.split()


@pytest.mark.parametrize("body", [b"word " * 50_000, b"<" * 300_000, b"<script" * 50_000, b"<style><" * 50_000])
def test_text_of_a_huge_page_is_bounded(body: bytes) -> None:
    """Of a long page only its begin and its end are read, and nothing is read twice."""
    assert len(text_of(body)) <= TEXT_BYTES_MAX + 1


def test_a_long_page_is_read_at_both_ends() -> None:
    """What differs only at the end of a long page is not the same text."""
    body = b"word " * 50_000
    assert text_of(body + b"one") != text_of(body + b"two")
