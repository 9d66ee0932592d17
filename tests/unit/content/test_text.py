from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl.content.text import GAP_BYTES, TEXT_BYTES_MAX, texts_of
from tests.support.sizes import examples
from tests.unit.content.pages import words_of

SCRIPTS = re.compile(rb"(?ais)<(script|style)\b.*?(?=</\1\b|\Z)")
MARKS = [b"<", b">", b" ", b"=", b"\0", b"_", b"@[`{\x7f/:", b"a", b"Z", b"s", b"9", b"word ", "é世".encode(), b"\xff"]
TAGS = [b"<p>", b"</p", b"<!--", b"<s", b"<script>", b"</script>", b"<STYLE", b"</style"]
PIECES = st.sampled_from(MARKS + TAGS)
BODIES = st.lists(PIECES, max_size=30).map(b"".join)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<p>Hello, <b>World</b>!</p>", b"hello world"),
        (b"<SCRIPT>var a = '<p>no</p>';</Script><p>yes", b"yes"),
        (b"<style>p{}</style>one<style>no", b"one"),
        (b"<scripted>two</scripted>", b"two"),
        (b"<a title='>'>three", b"three"),
        (b"1 < 2 and < 3", b"1 2 and 3"),
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
    assert words_of(body) == [words.split()]


def read_byte_by_byte(body: bytes) -> list[bytes]:
    text, is_tag = bytearray(), False
    body = SCRIPTS.sub(b" ", body)
    for at, byte in enumerate(body):
        is_tag |= byte == ord("<") and body[at + 1 : at + 2] > b" "
        is_letter = byte >= 0x80 or chr(byte).isalnum()
        text.append(byte if is_letter and not is_tag else 0x20)
        is_tag &= byte != ord(">")
    return bytes(text).lower().split()


@settings(max_examples=examples(400))
@given(st.lists(BODIES, min_size=1, max_size=5))
def test_pages_that_are_read_together_have_the_words_of_each(bodies: list[bytes]) -> None:
    """By the word of a loop over their bytes, whatever they leave open; a tag has a meaning in its own page only."""
    assert words_of(*bodies) == [read_byte_by_byte(body) for body in bodies]


@settings(max_examples=examples(100))
@given(st.lists(BODIES, min_size=1, max_size=5))
def test_one_zero_stands_before_a_word_and_many_between_pages(bodies: list[bytes]) -> None:
    """However many signs and tags were there; the first word of a page may have one more."""
    words, ends = texts_of(bodies)
    gap = bytes(GAP_BYTES)
    expected = [b"".join(b"\0" + word for word in read_byte_by_byte(body)) for body in bodies]
    found, start = words.tobytes(), GAP_BYTES - 1
    for text, end in zip(expected, ends, strict=True):
        assert found[start:end].lstrip(b"\0") == text[1:]
        assert found[end : end + GAP_BYTES] == gap
        start = end + GAP_BYTES
    assert found[: GAP_BYTES - 1] == gap[1:]


@pytest.mark.parametrize("body", [b"word " * 50_000, b"<" * 300_000, b"<script" * 50_000, b"<style><" * 50_000])
def test_text_of_a_huge_page_is_bounded(body: bytes) -> None:
    """Of a long page only its begin and its end are read, and nothing is read twice."""
    assert len(texts_of([body, body]).words) <= 2 * TEXT_BYTES_MAX + 3 * GAP_BYTES


def test_a_long_page_is_read_at_both_ends() -> None:
    """What differs only at the end of a long page is not the same text."""
    body = b"word " * 50_000
    first, second = words_of(body + b"one", body + b"two")
    assert first != second
