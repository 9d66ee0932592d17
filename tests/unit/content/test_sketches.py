from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.content.shingles import shingles_of, similarity
from bigcrawl.content.sketches import ALIKE_MIN, PLACES, SKETCH_WORDS, places_alike, sketch_of, sketch_of_shingles
from bigcrawl.content.text import text_of
from tests.unit.content.pages import edited, page


def alike(some: bytes, others: bytes) -> int:
    first, second = sketch_of(some), sketch_of(others)
    assert first is not None
    assert second is not None
    return int(places_alike(first.packed[np.newaxis], second.packed[np.newaxis])[0])


def test_sketches_tell_how_similar_pages_are() -> None:
    """The places that are equal estimate the similarity, besides one in sixteen that is equal by chance."""
    body = page(1)
    for changes in (0, 3, 10, 40, 120):
        other = edited(body, changes, changes)
        true = similarity(shingles_of(text_of(body)), shingles_of(text_of(other)))
        estimate = (alike(body, other) / PLACES - 1 / 16) * 16 / 15
        assert abs(estimate - true) < 0.13, changes


def test_near_copies_share_a_band_and_others_do_not() -> None:
    """A few changed words leave a band as it is; other pages share none."""
    for seed in range(20):
        body = page(seed)
        first, second, other = sketch_of(body), sketch_of(edited(body, seed, 5)), sketch_of(page(seed + 100))
        assert first is not None
        assert second is not None
        assert other is not None
        assert (first.bands == second.bands).any()
        assert not (first.bands == other.bands).any()
        assert alike(body, edited(body, seed, 5)) >= ALIKE_MIN > alike(body, page(seed + 100))


def test_a_change_of_markup_and_scripts_is_no_change() -> None:
    """The sketch is of what a reader sees."""
    body = page(1)
    other = body.replace(b"nonce = 1", b"nonce = 2; x = '<p>'").replace(b'class="text"', b"")
    first, second = sketch_of(body), sketch_of(other)
    assert first is not None
    assert second is not None
    assert first.packed.tolist() == second.packed.tolist()


@pytest.mark.parametrize("body", [b"", b"<p>some words only</p>", b"<p>" * 5_000])
def test_a_page_of_few_words_has_no_sketch(body: bytes) -> None:
    """Too little is known of it to call it a copy."""
    assert sketch_of(body) is None


def test_one_shingle_is_sketched() -> None:
    """It stands for each place, and for each band."""
    sketch = sketch_of_shingles(np.array([7], dtype=np.uint64))
    assert sketch.packed.shape == (SKETCH_WORDS,)
    assert len(set(sketch.packed.tolist())) == 1


def test_places_are_counted_one_by_one() -> None:
    """By the word of a count in Python, for sketches that differ anywhere."""
    rng = np.random.default_rng(1)
    some = rng.integers(0, 1 << 63, (50, SKETCH_WORDS), dtype=np.uint64)
    others = some.copy()
    others[rng.random(some.shape) < 0.5] ^= np.uint64(1 << 37)
    others[::3] = rng.integers(0, 1 << 63, (17, SKETCH_WORDS), dtype=np.uint64)
    expected = [
        sum((int(a) >> at & 15) == (int(b) >> at & 15) for a, b in zip(x, y, strict=True) for at in range(0, 64, 4))
        for x, y in zip(some, others, strict=True)
    ]
    assert places_alike(some, others).tolist() == expected


def test_sketches_never_change() -> None:
    """Those on disk are compared with those of later versions."""
    sketch = sketch_of_shingles(np.arange(1, 200, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    assert (hex(int(sketch.packed[0])), hex(int(sketch.bands[0]))) == ("0xad369cf25be147ad", "0x7d3d1c219224c24e")
